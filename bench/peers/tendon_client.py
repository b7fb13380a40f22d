# SPDX-License-Identifier: Apache-2.0
"""Our own Python SDK and a server with a Python policy, one request under way.

tendon_client.py TENDON PORT HEIGHT WIDTH SECONDS: two frames and 14 floats are asked
with; HEIGHT 1 means bytes that nobody looks into. A block's numbers are chunks a
second, and the p50 and p99 of a round trip in milliseconds."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from blocks import hold_signals, release_signals, run_blocks, summary

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import tendon

PATIENCE_MS = 5000
NAMES = ("cam0", "cam1")


def manifest(endpoint, height, width):
    frames = {name: {"height": height, "width": width} for name in NAMES}
    return {
        "cluster_uuid": "bench",
        "experiment_tag": "python",
        "server": [
            {
                "model_id": "still",
                "model_version": "v1",
                "application_tag": "still",
                "endpoint": endpoint,
                "accept_unknown": True,
                "engine": {
                    "kind": "worker",
                    "command": [
                        sys.executable,
                        "-m",
                        "tendon.worker",
                        f"{HERE}/still_policy.py:infer",
                    ],
                    "actions": [f"j{i}" for i in range(14)],
                    "cameras": frames if height > 1 else {},
                    "chunk": 50,
                },
            }
        ],
    }


@contextlib.contextmanager
def serve(program, text):
    with tempfile.TemporaryDirectory(prefix="td-") as folder:
        path, log = pathlib.Path(folder, "still.yaml"), pathlib.Path(folder, "log")
        path.write_text(json.dumps(text))
        with log.open("w") as out:
            server = subprocess.Popen(
                [program, "serve", path],
                stdout=out,
                stderr=out,
                preexec_fn=release_signals,  # or it could not be told to end
            )
        try:
            while "serve: ready" not in log.read_text():
                if server.poll() is not None:
                    sys.exit(log.read_text())
                time.sleep(0.05)
            yield
        finally:
            server.terminate()
            server.wait()


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
    with serve(program, manifest(endpoint, height, width)):
        run_blocks(Robot(endpoint, height, width, float(seconds)).block)
