# SPDX-License-Identifier: Apache-2.0
"""Inferential's own server with a policy in its process.

inferential_server.py PORT MS: the policy takes MS for a request and answers
with 50 x 14 float32."""

import asyncio
import signal
import sys
import time

import numpy as np
from inferential import Server
from inferential.dispatch import LocalDispatcher

CHUNK = np.zeros((50, 14), np.float32)


def make_policy(seconds):
    def infer(_):
        if seconds > 0:
            time.sleep(seconds)
        return CHUNK

    return infer


if __name__ == "__main__":
    port, ms = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    dispatcher = LocalDispatcher({"still": make_policy(float(ms) / 1000)})
    server = Server(bind=f"tcp://127.0.0.1:{port}", dispatcher=dispatcher)
    print("ready", flush=True)
    asyncio.run(server.run())
