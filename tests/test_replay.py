# SPDX-License-Identifier: Apache-2.0
"""A recorded session drives a robot, and is shown to a policy."""

import csv
import json
import pathlib

import dataset_recorder
import numpy as np
import PIL.Image
import pytest
from scene import FPS, JOINTS, KINDS, ROWS, manifest, robot_file
from tendon_process import BIN, run, wait_until

LARGER = {"cameras": {"front": {"height": 96, "width": 128}}}  # AV1 has a least size
FRAMES = 30
HANG = pathlib.Path(BIN).with_name("libhang.so")


@pytest.fixture(scope="module")
def recorded(module_site):
    """One episode of a synthetic robot."""
    site, folder = module_site, module_site.folder / "data"
    site.serve()
    watch = site.watch()
    robot = site.robot(args=("--record", folder), robot=LARGER)

    wait_frames(watch, FRAMES)
    assert robot.stop() == 0
    return folder


def wait_frames(watch, least):
    def frames():
        return watch.newest.get("robot-1", {}).get("gauges", {}).get("record_frames", 0)

    wait_until(lambda: frames() >= least, f"no {least} frames are recorded")


def exported(folder):
    """The lines of what `tendon dataset export` wrote."""
    with (folder / "episode-000000.csv").open() as file:
        return list(csv.DictReader(file))


def columns(folder, feature):
    """Frames x channels."""
    rows = exported(folder)
    names = [name for name in rows[0] if name.startswith(f"{feature}/")]
    assert len(names) == len(KINDS), rows[0].keys()
    return np.array([[float(row[name]) for name in names] for row in rows])


def answers(states):
    """What the synthetic model says of each frame: src/engine/synthetic/model.h."""
    frame = np.arange(len(states))[:, None, None]
    k, j = np.arange(ROWS)[None, :, None], np.arange(len(KINDS))[None, None, :]
    moves = np.array([kind != "hold" for kind in KINDS.values()])

    def wave(n):
        return moves * 0.1 * np.sin(2 * np.pi * 0.25 / FPS * n + 0.7 * j)

    return states[:, None, :] + wave(frame + k) - wave(frame)


def distances(states, actions):
    """|recorded - predicted|, frames x steps x channels; beyond the end NaN."""
    ahead = np.arange(len(states))[:, None] + np.arange(ROWS)
    padded = np.vstack([actions, np.full((ROWS, actions.shape[1]), np.nan)])
    apart = padded[ahead] - answers(states)
    angles = np.array([kind == "angle" for kind in KINDS.values()])
    return np.abs(np.where(angles, np.arctan2(np.sin(apart), np.cos(apart)), apart))


def test_errors_are_those_of_the_formula(module_site, recorded, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(manifest(module_site.endpoint)))
    done = run("dataset", "replay", recorded, "--policy", policy, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    done = run("dataset", "export", recorded, tmp_path / "csv", "--no-pictures")
    assert done.returncode == 0, done.stderr
    states = columns(tmp_path / "csv", "observation.state")
    off = distances(states, columns(tmp_path / "csv", "action"))
    assert report["frames"] == len(states) >= FRAMES
    assert [channel["name"] for channel in report["channels"]] == list(KINDS)
    for i, channel in enumerate(report["channels"]):
        first, every = off[:, 0, i], off[:, :, i]
        assert channel["all"]["count"] == np.isfinite(every).sum()
        for name, of in (("first", first), ("all", every)):
            assert channel[name]["mean"] == pytest.approx(np.nanmean(of), abs=1e-5)
            assert channel[name]["max"] == pytest.approx(np.nanmax(of), abs=1e-5)


def play(states, late, below=ROWS // 2, new=0.7):
    """What a robot plays of those answers when each comes `late` frames later: it
    asks when half a chunk is left, and blends as LeRobot's weighted average, or as
    its file says."""
    chunks = answers(states)
    plan, cursor, coming, commands, held = dict(enumerate(chunks[0])), 0, None, [], 0
    for frame in range(len(states)):
        if coming and coming[0] <= frame:
            for step, row in enumerate(coming[2], coming[1]):
                old = plan.get(step)
                plan[step] = row if old is None else (1 - new) * old + new * row
            coming = None
        fresh = cursor in plan
        held += not fresh
        commands.append(plan[cursor] if fresh else commands[-1])
        cursor += fresh
        left = sum(step >= cursor for step in plan)
        if left <= below and not coming and frame + 1 < len(states):
            coming = (frame + max(late, 1), cursor, chunks[frame + 1])
    return np.array(commands), held


def played(site, folder, tmp_path, late, *more):
    """What `tendon dataset replay` says of it, and what it had to do with."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(manifest(site.endpoint)))
    latency = ("--latency", str(late * 1000 // FPS), *more)
    done = run("dataset", "replay", folder, "--policy", policy, "--json", *latency)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    done = run("dataset", "export", folder, tmp_path / "csv", "--no-pictures")
    assert done.returncode == 0, done.stderr
    states = columns(tmp_path / "csv", "observation.state")
    return report, states, columns(tmp_path / "csv", "action")


def check_played(report, actions, commands):
    off = np.abs(actions - commands)
    for i, (kind, channel) in enumerate(
        zip(KINDS.values(), report["channels"], strict=True)
    ):
        if kind != "linear":
            continue  # blended in a way of their own: docs/merge.md
        assert channel["played"]["count"] == len(actions)
        assert channel["played"]["mean"] == pytest.approx(off[:, i].mean(), abs=1e-5)
        assert channel["played"]["max"] == pytest.approx(off[:, i].max(), abs=1e-5)


@pytest.mark.parametrize("late", [0, 4, 30])
def test_a_robot_plays_it_in_virtual_time(module_site, recorded, tmp_path, late):
    report, states, actions = played(module_site, recorded, tmp_path, late)
    commands, held = play(states, late)
    assert (report["fresh"], report["held"]) == (len(states) - held, held)
    assert report["clamped"] == 0
    assert (held > 0) == (late > ROWS // 2)
    check_played(report, actions, commands)


def robot_of(site, folder, **changes):
    content = robot_file(site.endpoint, "arm", folder, **{"robot": LARGER} | changes)
    path = folder / "arm.yaml"
    path.write_text(json.dumps(content))
    return ("--robot", path)


def test_a_robots_own_settings_play_it(module_site, recorded, tmp_path):
    own = {"chunk_size_threshold": 0.2, "aggregate_fn_name": "latest_only"}
    arm = robot_of(module_site, tmp_path, **own)
    report, states, actions = played(module_site, recorded, tmp_path, 6, *arm)
    commands, held = play(states, 6, below=ROWS // 5, new=1)
    assert (report["fresh"], report["held"]) == (len(states) - held, held)
    assert held > 0
    check_played(report, actions, commands)


def test_a_robots_limits_hold_when_it_is_played(module_site, recorded, tmp_path):
    slow = {name: joint | {"max_speed": 0.001} for name, joint in JOINTS.items()}
    body = {"robot": LARGER | {"joints": slow}, "max_limit_hits": 10**6}
    arm = robot_of(module_site, tmp_path, **body)
    report, states, _ = played(module_site, recorded, tmp_path, 1, *arm)
    assert report["fresh"] == len(states)
    assert report["clamped"] > len(states) // 2


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"fps": 50}, "fps: this robot has 50, the session 100"),
        ({"actions_per_chunk": 21}, "this robot plays 21 a chunk"),
        ({"observe": "never"}, "observe: must be"),
        ({"max_action_age_s": 0.01}, "give it a larger max_action_age_s"),
    ],
)
def test_a_robot_that_does_not_fit_is_refused_with_the_reason(
    module_site, recorded, tmp_path, changes, why
):
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(manifest(module_site.endpoint)))
    arm = robot_of(module_site, tmp_path, **changes)
    latency = ("--latency", "100", *arm)
    done = run("dataset", "replay", recorded, "--policy", policy, *latency)
    assert done.returncode == 1
    assert why in done.stderr


def test_a_robot_of_other_joints_is_not_shown_it(module_site, recorded, tmp_path):
    others = {f"left_{name}": joint for name, joint in JOINTS.items()}
    content = manifest(module_site.endpoint, engine={"actions": others})
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(content))
    arm = robot_of(module_site, tmp_path, robot=LARGER | {"joints": others})
    latency = ("--latency", "100", *arm)
    done = run("dataset", "replay", recorded, "--policy", policy, *latency)
    assert done.returncode == 1
    assert "joint 0 is left_waist of this robot and waist in" in done.stderr


def test_a_robot_needs_answers_to_play(recorded):
    done = run("dataset", "replay", recorded, "--policy", "x", "--robot", "arm.yaml")
    assert done.returncode == 2
    assert "--latency when they come" in done.stderr


def test_nobody_waits_for_a_synthetic_policy(module_site, recorded, tmp_path):
    policy = tmp_path / "policy.yaml"
    minutes = {"latency": {"kind": "fixed", "ms": 60_000}}
    policy.write_text(json.dumps(manifest(module_site.endpoint, engine=minutes)))
    done = run("dataset", "replay", recorded, "--policy", policy, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["asked"] >= FRAMES


def test_a_robot_that_plays_says_itself_when_it_asks(recorded):
    args = ("dataset", "replay", recorded, "--policy", "x", "--every", "2")
    done = run(*args, "--latency", "10")
    assert done.returncode == 2
    assert "--every or --latency" in done.stderr


def test_a_plot_and_a_table_for_people(module_site, recorded, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(manifest(module_site.endpoint)))
    done = run(
        *("dataset", "replay", recorded, "--policy", policy),
        *("--every", "10", "--plot", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in KINDS)
    assert "predicted" in (tmp_path / "out/replay.svg").read_text()
    done = run(
        *("dataset", "replay", recorded, "--policy", policy),
        *("--latency", "50", "--plot", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "played with answers 50 ms late" in done.stdout
    assert "played" in (tmp_path / "out/replay.svg").read_text()


def test_a_policy_that_does_not_fit_is_named(module_site, recorded, tmp_path):
    policy = tmp_path / "policy.yaml"
    cameras = {"cameras": {"wrist": {"height": 48, "width": 64}}}
    policy.write_text(json.dumps(manifest(module_site.endpoint, engine=cameras)))
    done = run("dataset", "replay", recorded, "--policy", policy)
    assert done.returncode == 1
    assert "the policy wants observation.images.wrist" in done.stderr


def test_a_recorded_session_is_a_robot(module_site, recorded):
    site = module_site
    watch = site.watch()
    body = LARGER | {"kind": "replay", "dataset": str(recorded)}
    robot = site.robot(client="robot-2", robot=body)
    watch.wait_count("robot-2", "merged", 3)
    assert robot.stop() == 0


RATE, SEED = 30, 1  # of what dataset_log records
COUNTED = {name: {"kind": "hold"} for name in ("seed", "ordinal", "frame", "noise")}


def play_counted(site, speed, least, cameras=None):
    """Replays a session whose states say which frame they are of, as a robot that
    is recorded in turn. Gives the number of the last frame, and the record."""
    counted, again = site.folder / "counted", site.folder / "again"
    seen = {"cameras": cameras or {}}
    work = dataset_recorder.Work(
        episodes=1, frames=20_000, cameras=len(seen["cameras"])
    )
    _, _, count = dataset_recorder.record(counted, SEED, work).finished[0]
    site.serve(engine=seen | {"actions": COUNTED})
    watch = site.watch()
    body = {"kind": "replay", "dataset": str(counted), "speed": speed}
    robot = site.robot(
        robot=body | seen | {"joints": COUNTED},
        record={"dir": str(again), "codec": "h264"},
        aggregate_fn_name="latest_only",
    )
    wait_frames(watch, least)
    assert robot.stop() == 0
    done = run("dataset", "export", again, site.folder / "csv")
    assert done.returncode == 0, done.stderr
    return count - 1, exported(site.folder / "csv")


def numbers(lines, name):
    return np.array([float(line[name]) for line in lines])


@pytest.mark.parametrize("speed", [1, 10])
def test_it_plays_at_the_speed_of_its_file(site, speed):
    """The policy answers with the state that it saw, so that an action says which
    frame its observation showed, and its age when that was: to one tick, which is
    never later than that without a mark."""
    last, lines = play_counted(site, speed, 100)
    states = numbers(lines, "observation.state/frame")
    assert np.all(states == np.round(states))
    assert np.all(np.diff(states) >= 0)
    assert set(numbers(lines, "observation.state/seed")) == {SEED}
    missing = numbers(lines, "tendon.missing") > 0
    played = numbers(lines, "tendon.held") == 0
    on_time = played & ~missing & ~np.append(missing[1:], True)
    shown = numbers(lines, "action/frame")
    seen = np.arange(len(lines)) / FPS - numbers(lines, "tendon.age_s")
    ahead = (shown - speed * RATE * seen)[on_time & (shown < last)]
    assert len(ahead) > 50
    assert np.ptp(ahead) <= speed * RATE / FPS + 1 + 1e-3


def test_after_its_last_frame_it_stands_still(site):
    """A thousand times as fast, a tick is 300 frames."""
    front = {"front": {"height": 64, "width": 64}}
    last, lines = play_counted(site, 1000, 100, front)
    assert numbers(lines, "observation.state/frame")[-1] == last
    assert numbers(lines, "action/frame")[-1] == last
    grey = int(numbers(lines, "observation.state/noise")[-1]) & 0xFF
    *_, path = sorted(site.folder.glob("csv/*front/episode-000000/*.jpg"))
    assert np.asarray(PIL.Image.open(path)).mean() == pytest.approx(grey, abs=5)


def test_another_robots_joints_are_refused(module_site, recorded):
    names = [*JOINTS][::-1]
    body = LARGER | {"kind": "replay", "dataset": str(recorded), "joints": names}
    robot = module_site.robot(client="robot-3", robot=body)
    assert robot.ended() == 1
    assert robot.lines("joint 0 is gripper here and waist")


def test_a_replay_without_a_dataset_is_refused(module_site):
    robot = module_site.robot(client="robot-4", robot=LARGER | {"kind": "replay"})
    assert robot.ended() == 1
    assert robot.lines("robot.dataset: must name the folder to replay")


def test_a_camera_that_never_answers_does_not_keep_a_robot(module_site, recorded):
    body = LARGER | {"kind": "replay", "dataset": str(recorded)}
    asan = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
    hang = asan | {"LD_PRELOAD": str(HANG), "HANG_AT": ".mp4"}
    robot = module_site.robot(client="robot-4", robot=body, env=hang)
    robot.wait_line("hangs")
    assert robot.stop() == 1
    assert robot.lines("cannot close: camera front's frame() has not returned")
    assert robot.lines("ended without waiting for it")
