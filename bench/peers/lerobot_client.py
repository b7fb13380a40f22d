# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own asynchronous client, with one observation under way.

lerobot_client.py PORT HEIGHT WIDTH SECONDS: two raw frames and 14 floats are asked
with. A block's numbers are chunks a second, and the p50 and p99 of a round trip in
milliseconds."""

import logging
import os
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass

folder = tempfile.TemporaryDirectory(prefix="td-")  # goes with us
os.chdir(folder.name)  # where it keeps its logs
logging.disable()

import numpy as np
from blocks import hold_signals, run_blocks, summary
from lerobot.async_inference import robot_client
from lerobot.async_inference.configs import RobotClientConfig
from lerobot.async_inference.helpers import TimedObservation
from lerobot.robots import RobotConfig
from lerobot.transport import services_pb2

JOINTS = [f"j{i}.pos" for i in range(14)]


@RobotConfig.register_subclass("still")
@dataclass(kw_only=True)
class StillConfig(RobotConfig):
    height: int
    width: int


class Still:
    """As much of a robot as the client asks for before it sends."""

    def __init__(self, config):
        frame = (config.height, config.width, 3)
        self.observation_features = dict.fromkeys(JOINTS, float)
        self.observation_features |= {"cam0": frame, "cam1": frame}
        self.seen = dict.fromkeys(JOINTS, 0.0)
        self.seen |= {name: np.zeros(frame, np.uint8) for name in ("cam0", "cam1")}

    def connect(self):
        pass


class Robot:
    def __init__(self, port, height, width, seconds):
        robot_client.make_robot_from_config = Still
        config = RobotClientConfig(
            policy_type="act",
            pretrained_name_or_path="still",
            robot=StillConfig(height=int(height), width=int(width)),
            actions_per_chunk=50,
            server_address=f"127.0.0.1:{port}",
        )
        self.client = robot_client.RobotClient(config)
        if not self.client.start():
            sys.exit("no server")
        self.seconds = float(seconds)
        self.count = 0
        self.ask()

    def ask(self):
        self.count += 1
        begin = time.perf_counter()
        observation = TimedObservation(
            timestamp=time.time(),
            timestep=self.count,
            observation=self.client.robot.seen | {"task": ""},
            must_go=True,
        )
        self.client.send_observation(observation)
        answer = self.client.stub.GetActions(services_pb2.Empty())
        if len(pickle.loads(answer.data)) != 50:
            sys.exit("no answer")
        return time.perf_counter() - begin

    def block(self):
        begin = time.perf_counter()
        took_s = []
        while time.perf_counter() < begin + self.seconds:
            took_s.append(self.ask())
        return summary(took_s, time.perf_counter() - begin)


if __name__ == "__main__":
    hold_signals()
    run_blocks(Robot(*sys.argv[1:]).block)
