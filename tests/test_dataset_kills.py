# SPDX-License-Identifier: Apache-2.0
"""What a recorder finished stays, whatever happens to it: killed at any instant,
each of its steps on the disk failed, a full disk, a second recorder."""

import os
import select
import shutil
import subprocess

import pytest
from dataset_recorder import (
    DATASET_LOG,
    FAULTS,
    Ledger,
    Work,
    failing,
    faults,
    kills,
    looked_at,
    record,
    repaired,
    steps_of,
)
from tendon_process import BIN, PATIENCE_S, run

KILLS = 40  # 1,000 in tools/dataset-kills
STRIDE = 4 * len(FAULTS)
SMALL = Work(episodes=2, frames=3, cameras=1)


def test_no_kill_loses_a_finished_episode(tmp_path, capsys):
    report = kills(tmp_path, KILLS, seed=1)
    with capsys.disabled():
        print(f"\n{KILLS} kills: {report}")
    assert report["killed"] == KILLS
    assert report["finished"] > 0
    assert report["saved"] > 0


def fresh(tmp_path, name):
    folder = tmp_path / name / "arm"
    folder.parent.mkdir()
    return folder


@pytest.mark.parametrize("how", FAULTS)
def test_any_step_on_the_disk_may_fail(tmp_path, how):
    # Every step: tools/dataset-kills. Here all kinds of fault share them.
    steps = faults(tmp_path, how, first=1 + FAULTS.index(how), stride=STRIDE)
    assert steps > 100


def test_a_disk_that_is_full_from_the_start_is_called_so(tmp_path):
    small = Work(episodes=1, frames=1, cameras=0)
    for step in range(1, 25):  # opening, and the trial of the file system in it
        folder = fresh(tmp_path, str(step))
        ran = record(folder, 1, small, env=failing(folder, step, "full"))
        assert "failed FULL" in ran.text, (step, ran.text)


def unfinished(folder):
    """One finished episode, and one that its recorder was killed in."""
    first = record(folder, 1, Work(episodes=1, frames=3, cameras=1))
    long = Work(episodes=1, frames=1000, cameras=1)
    killed = record(folder, 2, long, env=failing(folder, 200, "kill"))
    assert killed.finished == {}
    assert looked_at(folder) == (first.finished, 1)
    return first.finished


@pytest.mark.parametrize("how", ["EIO", "torn", "kill"])
def test_repair_never_makes_it_worse(tmp_path, how):
    kept = fresh(tmp_path, "kept")
    finished = unfinished(kept)
    command = [BIN, "dataset", "repair", "arm"]
    probe = tmp_path / "probe"
    shutil.copytree(kept.parent, probe)
    steps = steps_of(probe / "arm", [*command[:3], str(probe / "arm")])
    saved = looked_at(probe / "arm")[0]
    assert len(saved) == 2
    for step in range(1, steps + 1, 12):
        copy = tmp_path / str(step)
        shutil.copytree(kept.parent, copy, symlinks=True)
        ledger = Ledger(copy / "arm")
        ledger.finished = dict(finished)
        repaired(copy / "arm", env=failing(copy / "arm", step, how))
        ledger.repair(ledger.check())
        assert looked_at(copy / "arm")[0] == saved, step
        shutil.rmtree(copy)


def test_a_second_recorder_is_refused(tmp_path):
    folder = tmp_path / "arm"
    many = Work(episodes=100000)
    with subprocess.Popen(
        many.command(folder, 1), stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout
        try:
            assert select.select([first.stdout], [], [], PATIENCE_S)[0], "does not open"
            assert first.stdout.readline() == "open\n"
            second = record(folder, 2, SMALL)
            report = run("dataset", "verify", folder, "--json")
        finally:
            first.kill()
    assert second.code == 3
    assert (
        f"failed BUSY: {folder}: process {first.pid} is recording there" in second.text
    )
    assert report.returncode == 1
    assert report.stdout == ""
    assert f"process {first.pid} is recording there" in report.stderr
    assert record(folder, 3, Work(episodes=1)).code == 0


def test_a_disk_that_fills_ends_the_recording_while_there_is_room_to_end(tmp_path):
    folder = tmp_path / "arm"
    work = Work(episodes=3, frames=1000, cameras=2)
    reserved = 5 << 20  # the recorder's reserve, and what a commit needs at least
    env = failing(folder, 0, "EIO", FAIL_FREE=str(reserved + 40000))
    ran = record(folder, 1, work, env=env)
    assert ran.code == 3
    assert "failed FULL" in ran.text
    assert "MB are free on this disk" in ran.text
    assert ran.finished
    ledger = Ledger(folder)
    ledger.add(ran)
    assert ledger.check() == ran.finished
    assert ledger.unfinished == 0


def test_a_disk_without_room_is_refused_at_once(tmp_path):
    folder = tmp_path / "arm"
    ran = record(folder, 1, SMALL, env=failing(folder, 0, "EIO", FAIL_FREE="1000"))
    assert "failed FULL" in ran.text
    assert not ran.finished
    assert os.listdir(tmp_path) == []


def test_a_real_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting needs root")
    try:
        folder = disk / "arm"
        ledger = Ledger(folder)
        ran = record(folder, 1, Work(episodes=50, frames=500))
        assert "failed FULL" in ran.text
        assert ran.finished
        ledger.add(ran)
        ledger.check()
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"cameras": 1},
            "observation.images.wrist: the dataset has it, this recorder does not",
        ),
        ({"codec": "av1"}, "the dataset has h264, this recorder av1"),
    ],
)
def test_another_recorder_is_told_what_differs(tmp_path, change, words):
    folder = tmp_path / "arm"
    assert record(folder, 1, Work(episodes=1)).code == 0
    ran = record(folder, 2, Work(episodes=1, **change))
    assert "failed MISMATCH" in ran.text
    assert words in ran.text
    assert len(looked_at(folder)[0]) == 1


def test_a_folder_that_is_no_dataset_is_left_alone(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    ran = record(folder, 1, SMALL)
    assert ran.code == 3
    assert "info.json" in ran.text
    assert os.listdir(tmp_path) == ["home"]
    assert os.listdir(folder) == ["letter.txt"]


def test_the_log_needs_its_arguments():
    assert (
        subprocess.run([DATASET_LOG], capture_output=True, check=False).returncode == 2
    )
