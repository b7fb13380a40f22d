# SPDX-License-Identifier: Apache-2.0
"""What `tendon robot` records: by keys, by another program, until the end."""

import json
import os
import pty
import subprocess

import dataset_recorder
import pytest
from scene import CAMERAS, FPS, JOINTS, robot_file
from tendon_process import BIN, PATIENCE_S, run, wait_until

FRAMES = 20  # enough of an episode
LARGER = {"cameras": {"front": {"height": 96, "width": 128}}}  # AV1 has a least size


@pytest.fixture
def recorded(site):
    """A server, and where its robot records."""
    site.serve()
    return site.folder / "data" / "cookies"


def info_of(folder):
    return json.loads((folder / "meta/info.json").read_text())


def wait_frames(watch, least=FRAMES):
    def frames():
        return watch.newest.get("robot-1", {}).get("gauges", {}).get("record_frames", 0)

    wait_until(lambda: frames() >= least, f"no {least} frames are recorded")


def order(site, word):
    return run("robot", site.folder / "robot-1.yaml", "--episode", word)


def test_a_run_is_a_dataset(site, recorded):
    robot = site.robot(args=("--record", recorded), robot=LARGER)
    wait_frames(site.watch())
    assert robot.stop() == 0
    info = info_of(recorded)
    assert info["fps"] == FPS
    assert info["total_episodes"] == 1
    assert info["total_frames"] >= FRAMES
    features = info["features"]
    assert features["action"]["names"] == list(JOINTS)
    assert set(CAMERAS) == {
        name.removeprefix("observation.images.")
        for name, feature in features.items()
        if feature["dtype"] == "video"
    }
    assert robot.lines("recording: episode 0 saved")


def test_a_second_run_goes_on(site, recorded):
    for episodes in (1, 2):
        robot = site.robot(args=("--record", recorded), robot=LARGER)
        wait_frames(site.watch())
        assert robot.stop() == 0
        assert info_of(recorded)["total_episodes"] == episodes


def test_another_program_ends_episodes(site, recorded):
    robot = site.robot(args=("--record", recorded), robot=LARGER)
    watch = site.watch()
    wait_frames(watch)
    assert order(site, "next").returncode == 0
    assert info_of(recorded)["total_episodes"] == 1
    wait_frames(watch)
    assert order(site, "discard").returncode == 0
    done = order(site, "end")
    assert done.returncode == 1
    assert "no episode is being recorded" in done.stderr
    done = order(site, "jump")
    assert "must be begin, end, discard, next or again" in done.stderr
    assert robot.stop() == 0
    assert info_of(recorded)["total_episodes"] == 1


def test_a_command_that_no_robot_hears_fails(site):
    site.serve()
    site.write("robot-1.yaml", robot_file(site.endpoint, "robot-1", site.folder))
    done = order(site, "end")
    assert done.returncode == 1
    assert "no robot robot-1 records" in done.stderr


def test_an_episode_that_waits_for_a_command(site, recorded):
    record = {"dir": str(recorded), "begin": "command", "codec": "h264"}
    robot = site.robot(record=record)
    watch = site.watch()
    watch.wait_moving("robot-1")
    assert watch.newest["robot-1"]["gauges"]["record_state"] == 1
    assert order(site, "begin").returncode == 0
    wait_frames(watch)
    assert robot.stop() == 0
    assert info_of(recorded)["total_episodes"] == 1


def test_a_full_disk_stops_the_recording_and_not_the_robot(site):
    site.serve(engine={"cameras": {}})
    folder = site.folder / "data" / "cookies"
    reserved = 260 << 20  # the reserve, and what a commit needs at least
    env = dataset_recorder.failing(folder, 0, "EIO", FAIL_FREE=str(reserved + 40_000))
    body = {"cameras": {}}
    robot = site.robot(args=("--record", folder), robot=body, env=env)
    robot.wait_line("recording stopped, the robot goes on")
    warned, stopped = (
        robot.text().index(part) for part in ("the disk is full in", "MB are free on")
    )
    assert warned < stopped
    watch = site.watch()
    watch.wait_moving("robot-1")
    assert watch.newest["robot-1"]["gauges"]["record_state"] == 3
    done = order(site, "begin")
    assert done.returncode == 1
    assert "MB are free on this disk" in done.stderr
    assert robot.stop() == 0
    assert info_of(folder)["total_episodes"] == 1
    assert info_of(folder)["total_frames"] >= FPS


class Terminal:
    """`tendon robot` as a person has it."""

    def __init__(self, site, *args):
        self.master, inside = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", BIN, "robot", *map(str, args)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
        )
        os.close(inside)
        os.set_blocking(self.master, False)
        self.said = ""
        site.kept.callback(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def wait_said(self, part, times=1):
        def look():
            try:
                self.said += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                pass  # nothing more yet, or for ever
            return self.said.count(part) >= times

        wait_until(look, f"no {part!r} in {self.said}")

    def press(self, key):
        os.write(self.master, key.encode())


def test_keys_end_episodes(site, recorded):
    content = robot_file(site.endpoint, "robot-1", site.folder, LARGER)
    path = site.write("robot-1.yaml", content)
    robot = Terminal(site, path, "--record", recorded)
    watch = site.watch()
    robot.wait_said("space: save and next")
    wait_frames(watch)
    robot.press(" ")
    robot.wait_said("episode 0 saved")
    wait_frames(watch)
    robot.press("d")
    robot.wait_said("frames discarded")
    wait_frames(watch)
    robot.press("q")
    assert robot.process.wait(PATIENCE_S) == 0
    assert info_of(recorded)["total_episodes"] == 2


def test_what_cannot_be_recorded_does_not_start(site, recorded):
    recorded.mkdir(parents=True)
    (recorded / "note.txt").write_text("mine")
    robot = site.robot(args=("--record", recorded), robot=LARGER)
    assert robot.ended() == 1
    assert (recorded / "note.txt").read_text() == "mine"
