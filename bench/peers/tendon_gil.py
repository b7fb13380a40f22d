# SPDX-License-Identifier: Apache-2.0
"""A Python robot under the control loop at 1000 Hz, whose code holds Python's lock.

tendon_gil.py ENDPOINT SECONDS: a block runs it twice for SECONDS, once as it should
be and once with a read() that, for half of every second, holds the lock and does not
return. Its numbers are the tick's lateness, p99 and p99.9 in microseconds, of the
first and of the second; and, for each time that the lock was held, in how many ticks
the fail-safe acted and how many lines of the log say so."""

import ctypes
import itertools
import logging
import pathlib
import sys
import tempfile
import time

import numpy as np
from blocks import hold_signals, run_blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tendon

HOLD_S = 0.5
EVERY_S = 1.0
LIMIT_S = 0.1  # of the driver: then the fail-safe acts
PATIENCE_S = 20
LOOK_S = 0.01
hold = ctypes.PyDLL(None).usleep  # PyDLL: the lock is not given up


class Arm(tendon.Robot):
    joints = [f"j{i}" for i in range(14)]
    cameras = {"cam0": (128, 130), "cam1": (128, 130)}

    def __init__(self):
        self.at = np.zeros(14, np.float32)
        self.seen = np.zeros((128, 130, 3), np.uint8)
        self.due = None  # when read() holds the lock
        self.held = 0

    def read(self):
        due = self.due
        if due is not None and time.monotonic() >= due:
            self.held += 1
            self.due = due + EVERY_S
            hold(round(1e6 * HOLD_S))
        return self.at

    def write(self, action):
        self.at = action

    def frame(self, camera):
        time.sleep(1 / 30)
        return self.seen


class LineCounter(logging.Handler):
    """Counts what a person would read."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += "the fail-safe acts" in record.getMessage()


class Bench:
    def __init__(self, endpoint, seconds):
        self.folder = tempfile.TemporaryDirectory(prefix="td-")
        self.turns = itertools.count()
        self.seconds = seconds
        self.line_counter = LineCounter()
        log = logging.getLogger("tendon")
        log.addHandler(self.line_counter)
        log.propagate = False
        self.settings = {
            "cluster_uuid": "bench",
            "experiment_tag": "bench",
            "model_id": "still",
            "model_version": "v1",
            "application_tag": "bench",
            "client_uuid": "python",
            "endpoint": endpoint,
            "fps": 100,
            "control_hz": 1000,
            "image_codec": "raw",
            "driver_limit_s": LIMIT_S,
            "boot_file": f"{self.folder.name}/boot",
        }

    def watch(self, holds):
        """A robot of its own, so that its numbers are of this time alone."""
        with Arm() as arm:
            arm.start(**self.settings)
            wait_streaming(arm)
            before, lines = arm.report(), self.line_counter.count
            begin = time.monotonic()
            if holds:
                arm.due = begin + EVERY_S - HOLD_S
            time.sleep(self.seconds - EVERY_S)
            arm.due = None
            time.sleep(max(0, begin + self.seconds - time.monotonic()))
            after = arm.report()
        acted = after["failsafe_driver"] - before["failsafe_driver"]
        lateness_us = [1e3 * after[f"lateness_ms/{name}"] for name in ("p99", "p999")]
        each = max(1, arm.held)
        return lateness_us, (
            acted / each,
            (self.line_counter.count - lines) / each,
        )

    def block(self):
        order = (False, True) if next(self.turns) % 2 == 0 else (True, False)
        seen = {holds: self.watch(holds) for holds in order}
        (calm_us, _), (held_us, acted) = seen[False], seen[True]
        return *calm_us, *held_us, *acted


def wait_streaming(arm):
    until = time.monotonic() + PATIENCE_S
    while arm.state != "STREAMING" or not arm.report()["fresh"]:
        if time.monotonic() > until:
            sys.exit(f"no server: {arm.state}")
        time.sleep(LOOK_S)


if __name__ == "__main__":
    endpoint, seconds = sys.argv[1:]
    hold_signals()
    run_blocks(Bench(endpoint, float(seconds)).block)
