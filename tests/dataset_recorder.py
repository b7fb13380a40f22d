# SPDX-License-Identifier: Apache-2.0
"""Recorders that are killed and disks that fail, and what is left afterwards.

The recorder is `dataset_log`: it says each episode that it has finished, and
every value in it follows from a seed, so that reading one back shows whether it
is the one that was recorded, and whole.
"""

import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

from tendon_process import BIN, PATIENCE_S, run

DATASET_LOG = pathlib.Path(BIN).with_name("dataset_log")
SHIM = pathlib.Path(BIN).with_name("libfail.so")
FAULTS = ["EIO", "ENOSPC", "torn", "full", "kill"]


@dataclasses.dataclass(frozen=True)
class Work:
    """What one recorder is to do."""

    episodes: int = 4
    frames: int = 20  # at most, an episode
    cameras: int = 2
    codec: str = "h264"
    how: str = ""  # noisy: pictures that make large videos; wide: many channels

    def command(self, folder, seed):
        sizes = [self.episodes, self.frames, self.cameras]
        return [
            str(DATASET_LOG),
            "record",
            str(folder),
            *map(str, [seed, *sizes]),
            self.codec,
            *self.how.split(),
        ]


def parse(lines, word):
    """{number: (seed, ordinal, frames)} of the lines that begin with `word`."""
    rows = [line.split() for line in lines.splitlines() if line.startswith(word + " ")]
    return {int(row[1]): tuple(map(int, row[2:])) for row in rows}


@dataclasses.dataclass
class Run:
    finished: dict
    text: str
    code: int
    seconds: float


def record(folder, seed, work, env=None, kill_after_s=None):
    began = time.monotonic()
    process = subprocess.Popen(
        work.command(folder, seed),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | (env or {}),
    )
    try:
        text, _ = process.communicate(timeout=kill_after_s or PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        assert kill_after_s, "the recorder hangs"
    return Run(
        parse(text, "finished"), text, process.returncode, time.monotonic() - began
    )


def failing(folder, step, how, **more):
    """The environment of a process whose `step`-th step on the disk fails."""
    return {
        "LD_PRELOAD": str(SHIM),
        "ASAN_OPTIONS": "verify_asan_link_order=0",
        "FAIL_UNDER": str(folder.parent),
        "FAIL_AT": str(step),
        "FAIL_HOW": how,
    } | more


def steps_of(folder, command, **environment):
    """How many steps on the disk a command makes that nothing fails."""
    count = folder.parent.with_suffix(".count")
    env = os.environ | failing(folder, 0, "EIO", FAIL_COUNT=str(count)) | environment
    subprocess.run(
        command, env=env, check=True, capture_output=True, timeout=PATIENCE_S
    )
    return int(count.read_text())


def looked_at(folder):
    """What is in a dataset that verifies, each row of it looked at, and how many
    episodes are unfinished."""
    if not folder.exists():
        return {}, 0
    done = subprocess.run(
        [DATASET_LOG, "read", folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    return parse(done.stdout, "episode"), next(iter(parse(done.stdout, "unfinished")))


def repaired(folder, env=None):
    """{number: frames} of what repair saved; None where it failed."""
    done = run("dataset", "repair", folder, "--json", env=os.environ | (env or {}))
    if done.returncode != 0:
        return None
    return {row["episode"]: row["frames"] for row in json.loads(done.stdout)["saved"]}


class Ledger:
    """What a folder must hold: every episode that its recorder said."""

    def __init__(self, folder):
        self.folder = folder
        self.finished = {}
        self.unfinished = 0  # as of the last check

    def add(self, ran):
        assert not self.finished.keys() & ran.finished.keys()
        self.finished |= ran.finished

    def check(self):
        """Everything finished is there and as it was; gives all that is."""
        there, self.unfinished = looked_at(self.folder)
        missing = {n: what for n, what in self.finished.items() if there.get(n) != what}
        assert not missing, (missing, there)
        assert sorted(there) == list(range(len(there)))
        return there

    def repair(self, before):
        """Repair adds what it says, and changes nothing that was there before."""
        saved = repaired(self.folder)
        assert saved is not None
        there = self.check()
        assert self.unfinished == 0
        assert there.keys() == before.keys() | saved.keys()
        assert all(there[n] == what for n, what in before.items())
        assert all(there[n][2] == frames for n, frames in saved.items())
        return saved


def faults(root, how, first, stride):
    """Fails every `stride`-th step of a small recording, each in a new folder.

    Whatever fails, what was finished is there, repair goes through, and so does
    the next recorder. Gives how many steps there were.
    """
    small = Work(episodes=2, frames=3, cameras=1)
    probe = root / "probe" / "arm"
    probe.parent.mkdir()
    steps = steps_of(probe, small.command(probe, 1))
    for step in range(first, steps + 1, stride):
        folder = root / str(step) / "arm"
        folder.parent.mkdir()
        ledger = Ledger(folder)
        ran = record(folder, 1, small, env=failing(folder, step, how))
        assert ran.code in {0, 3, -signal.SIGKILL}, (step, ran.text)
        if how == "full":
            assert ran.code == 0 or "failed FULL" in ran.text, (step, ran.text)
        ledger.add(ran)
        ledger.repair(ledger.check())
        ledger.add(record(folder, 2, small))
        assert len(ledger.check()) >= small.episodes
        shutil.rmtree(folder.parent)
    return steps


def kills(root, count, seed, progress=lambda done, counts: None):
    """Kills `count` recorders at random instants; a dataset for each ten of them.

    The next recorder goes on where the dead one stopped, or repair comes first.
    Counts the episodes that were finished, and those that repair saved.
    """
    draw = random.Random(seed)
    folder = root / "arm"
    ledger = Ledger(folder)
    whole_s = record(root / "timed" / "arm", 0, Work()).seconds
    counts = {"killed": 0, "finished": 0, "saved": 0}
    for i in range(count):
        if i % 10 == 0:
            shutil.rmtree(root / "arm", ignore_errors=True)
            shutil.rmtree(root / ".arm.recording", ignore_errors=True)
            ledger = Ledger(folder)
        codec = "av1" if i % 40 > 29 else "h264"
        work = Work(episodes=10000, cameras=1 + i // 10 % 2, codec=codec)
        ran = record(folder, i + 1, work, kill_after_s=draw.uniform(0.01, whole_s))
        assert ran.code == -signal.SIGKILL, ran.text
        ledger.add(ran)
        there = ledger.check()
        if draw.random() < 0.5 or i % 10 == 9:
            counts["saved"] += len(ledger.repair(there))
        counts["killed"] += 1
        counts["finished"] += len(ran.finished)
        progress(i + 1, counts)
    return counts
