# SPDX-License-Identifier: Apache-2.0
"""A robot of LeRobot's that is made of numbers, and can be made to fail.

--robot.discover_packages_path=sim_arm --robot.type=sim_arm --robot.fault=raise
"""

import json
import pathlib
import time
from dataclasses import dataclass

import numpy as np
from lerobot.robots import Robot, RobotConfig

JOINTS = [f"joint_{i}.pos" for i in range(6)]
FAULTS = ("", "raise", "shape", "miss", "block")


@RobotConfig.register_subclass("sim_arm")
@dataclass(kw_only=True)
class SimArmConfig(RobotConfig):
    height: int = 64
    width: int = 96
    # What goes wrong, and after how many readings
    fault: str = ""
    fault_after: int = 20
    # Where each command that it was sent is written
    log: str = ""


class SimArm(Robot):
    config_class = SimArmConfig
    name = "sim_arm"

    def __init__(self, config):
        super().__init__(config)
        assert config.fault in FAULTS
        self.config = config
        self.where = np.zeros(len(JOINTS))
        self.readings = 0
        self.connected = False
        self.log = open(config.log, "a") if config.log else None

    @property
    def observation_features(self):
        size = (self.config.height, self.config.width, 3)
        return dict.fromkeys(JOINTS, float) | {"front": size, "wrist": size}

    @property
    def action_features(self):
        return dict.fromkeys(JOINTS, float)

    @property
    def is_connected(self):
        return self.connected

    @property
    def is_calibrated(self):
        return True

    def connect(self, calibrate=True):
        self.connected = True

    def calibrate(self):
        pass

    def configure(self):
        pass

    def get_observation(self):
        self.readings += 1
        seen = dict(zip(JOINTS, self.where.tolist(), strict=True))
        frame = np.full((self.config.height, self.config.width, 3), 99, np.uint8)
        seen |= {"front": frame, "wrist": frame}
        return self._fail(seen) if self.readings > self.config.fault_after else seen

    def _fail(self, seen):
        fault = self.config.fault
        if fault == "raise":
            raise ConnectionError("the motor bus fell off")
        if fault == "shape":
            return seen | {"front": np.zeros((10, 10, 3), np.uint8)}
        if fault == "miss":
            del seen[JOINTS[2]]
        if fault == "block" and self.readings == self.config.fault_after + 1:
            time.sleep(10)
        return seen

    def send_action(self, action):
        assert list(action) == JOINTS
        self.where = np.array(list(action.values()))
        if self.log:
            self.log.write(json.dumps([time.monotonic(), *self.where]) + "\n")
            self.log.flush()
        return action

    def disconnect(self):
        self.connected = False


def commands(path):
    """What was written there: times and rows."""
    rows = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return np.array(rows).reshape(-1, 1 + len(JOINTS))
