# SPDX-License-Identifier: Apache-2.0
"""Our own Python SDK and a server with a Python policy, one request under way.

tendon_client.py TENDON PORT HEIGHT WIDTH SECONDS: two frames and 14 floats are asked
with; HEIGHT 1 means bytes that nobody looks into. A block's numbers are chunks a
second, and the p50 and p99 of a round trip in milliseconds."""

import pathlib
import sys
import time

import numpy as np
from blocks import hold_signals, run_blocks, summary
from serving import NAMES, manifest, serve

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tendon

PATIENCE_MS = 5000
JOINTS = [f"j{i}" for i in range(14)]


class Robot:
    def __init__(self, endpoint, height, width, seconds):
        self.connection = tendon.Connection(
            endpoint, "bench", cluster="bench", experiment="python"
        )
        self.model = self.connection.model("still", version="v1", application="still")
        frame = np.zeros((height, width, 3), np.uint8)
        self.seen = dict.fromkeys(NAMES, frame if height > 1 else frame.ravel())
        self.seen["state"] = np.zeros(14, np.float32)
        self.seconds = seconds
        self.ask()

    def ask(self):
        begin = time.perf_counter()
        self.model.observe(**self.seen)
        result = self.model.get_result(timeout_ms=PATIENCE_MS)
        if result is None or result.actions.shape != (50, 14):
            sys.exit(f"no answer: {result}")
        return time.perf_counter() - begin

    def block(self):
        begin = time.perf_counter()
        took_s = []
        while time.perf_counter() < begin + self.seconds:
            took_s.append(self.ask())
        return summary(took_s, time.perf_counter() - begin)


if __name__ == "__main__":
    program, port, height, width, seconds = sys.argv[1:]
    endpoint, height, width = f"tcp/127.0.0.1:{port}", int(height), int(width)
    hold_signals()
    text = manifest(endpoint, "still_policy.py:infer", JOINTS, height, width)
    with serve(program, text):
        run_blocks(Robot(endpoint, height, width, float(seconds)).block)
