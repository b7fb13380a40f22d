# SPDX-License-Identifier: Apache-2.0
"""Inferential's own clients, each with one request under way.

inferential_client.py PORT CLIENTS HEIGHT WIDTH SECONDS: two frames and 14
floats are asked with. A block's numbers are chunks a second, and the p50 and
p99 of a round trip in milliseconds."""

import sys
import threading
import time

import numpy as np
from blocks import hold_signals, run_blocks, summary
from inferential import Connection

PATIENCE_MS = 5000


class Robot:
    def __init__(self, port, number, height, width):
        server = f"127.0.0.1:{port}"
        self.connection = Connection(server, client_id=f"c{number}")
        self.model = self.connection.model("still")
        self.state = np.zeros(14, np.float32)
        self.frame = np.zeros((height, width, 3), np.uint8)
        self.took_s = []

    def ask(self):
        begin = time.perf_counter()
        self.model.observe(state=self.state, cam0=self.frame, cam1=self.frame)
        if self.model.get_result(timeout_ms=PATIENCE_MS) is None:
            sys.exit("no answer")
        self.took_s.append(time.perf_counter() - begin)

    def run(self, until):
        self.took_s.clear()
        while time.perf_counter() < until:
            self.ask()


class Crowd:
    def __init__(self, port, clients, height, width, seconds):
        self.robots = [
            Robot(port, number, height, width) for number in range(int(clients))
        ]
        self.seconds = float(seconds)
        for robot in self.robots:
            robot.ask()

    def block(self):
        begin = time.perf_counter()
        threads = [
            threading.Thread(target=robot.run, args=(begin + self.seconds,))
            for robot in self.robots
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - begin
        took_s = [took for robot in self.robots for took in robot.took_s]
        return summary(took_s, seconds)


if __name__ == "__main__":
    port, clients, height, width, seconds = sys.argv[1:]
    hold_signals()
    run_blocks(Crowd(port, clients, int(height), int(width), seconds).block)
