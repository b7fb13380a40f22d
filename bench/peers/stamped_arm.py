# SPDX-License-Identifier: Apache-2.0
"""A simulated robot of LeRobot's that knows how old its commands are: it reads the
time as its first joint, and the policy (wave_policy.py) gives that back."""

import itertools
import threading
import time
from dataclasses import dataclass

import numpy as np
from lerobot.robots import Robot, RobotConfig
from wave_policy import JOINTS

CAMERAS = ("cam0", "cam1")
FRAMES = 8


@RobotConfig.register_subclass("stamped_arm")
@dataclass(kw_only=True)
class StampedArmConfig(RobotConfig):
    height: int
    width: int


class StampedArm(Robot):
    """Is where it was last sent."""

    config_class = StampedArmConfig
    name = "stamped_arm"

    def __init__(self, config):
        super().__init__(config)
        self.size = (config.height, config.width, 3)
        self.pictures = itertools.cycle(make_pictures(config.height, config.width))
        self.begin_s = time.perf_counter()  # so that the time fits a float32
        self.commanded = (0.0,) * len(JOINTS)
        self.moved = threading.Event()
        self.ages_s = []  # of the commands that differ from the one before

    @property
    def observation_features(self):
        return dict.fromkeys(JOINTS, float) | dict.fromkeys(CAMERAS, self.size)

    @property
    def action_features(self):
        return dict.fromkeys(JOINTS, float)

    @property
    def is_connected(self):
        return True

    @property
    def is_calibrated(self):
        return True

    def connect(self, calibrate=True):
        pass

    def calibrate(self):
        pass

    def configure(self):
        pass

    def disconnect(self):
        pass

    def now_s(self):
        return time.perf_counter() - self.begin_s

    def get_observation(self):
        seen = dict(zip(JOINTS, self.commanded, strict=True)) | {
            JOINTS[0]: self.now_s()
        }
        return seen | {name: next(self.pictures) for name in CAMERAS}

    def send_action(self, action):
        commanded = tuple(action.values())
        if commanded != self.commanded:  # a held robot gets the same again
            self.ages_s.append(self.now_s() - commanded[0])
            self.commanded = commanded
            self.moved.set()
        return action

    def take_ages(self):
        """Since the last call."""
        ages_s, self.ages_s = self.ages_s, []
        return ages_s


def make_pictures(height, width):
    """Soft shapes with a camera's noise, which JPEG makes about as small as what a
    camera sees."""
    random = np.random.default_rng(1)
    coarse = random.uniform(40, 215, (height // 40 + 2, width // 40 + 2, 3))
    rows, columns = np.arange(height) / 40, np.arange(width) / 40
    soft = blend(blend(coarse, rows).swapaxes(0, 1), columns).swapaxes(0, 1)
    noise = random.normal(0, 3, (FRAMES, height, width, 3))
    return list(np.clip(soft + noise, 0, 255).astype(np.uint8))


def blend(values, places):
    """Between the two values on either side of each place."""
    low = places.astype(int)
    part = (places - low)[:, None, None]
    return (1 - part) * values[low] + part * values[low + 1]
