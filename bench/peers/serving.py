# SPDX-License-Identifier: Apache-2.0
"""Our own server with a Python policy in a worker."""

import contextlib
import ctypes
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from blocks import release_signals

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("cam0", "cam1")
PR_SET_PDEATHSIG = 1


def manifest(endpoint, policy, joints, height, width):
    """HEIGHT 1: it has no cameras."""
    frames = {name: {"height": height, "width": width} for name in NAMES}
    command = [sys.executable, "-m", "tendon.worker", f"{HERE}/{policy}"]
    return {
        "cluster_uuid": "bench",
        "experiment_tag": "python",
        "models": [
            {
                "model_id": "still",
                "model_version": "v1",
                "application_tag": "still",
                "endpoint": endpoint,
                "accept_unknown": True,
                "engine": {
                    "kind": "worker",
                    "command": command,
                    "actions": joints,
                    "cameras": frames if height > 1 else {},
                    "chunk": 50,
                },
            }
        ],
    }


def prepare():
    """In the child: a signal ends it, and it does not outlive us."""
    release_signals()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def serve(program, text):
    with tempfile.TemporaryDirectory(prefix="td-") as folder:
        path, log = pathlib.Path(folder, "still.yaml"), pathlib.Path(folder, "log")
        path.write_text(json.dumps(text))
        with log.open("w") as out:
            server = subprocess.Popen(
                [program, "serve", path], stdout=out, stderr=out, preexec_fn=prepare
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
