# SPDX-License-Identifier: Apache-2.0
"""Robots of the tests' own, that fit tests/scene.py's policy."""

import threading

import numpy as np
import tendon
from scene import CAMERAS, JOINTS, robot_file

NAMES = list(JOINTS)
SIZES = {name: (size["height"], size["width"]) for name, size in CAMERAS.items()}


def settings(site, client="robot-1", robot=None, **changes):
    """All that tests/scene.py's robot has, but the robot itself."""
    made = robot_file(site.endpoint, client, site.folder, **changes)
    del made["robot"]
    return made | ({"robot": robot} if robot else {})


class Arm(tendon.Robot):
    """Is where it was last sent."""

    joints = JOINTS
    cameras = SIZES

    def __init__(self):
        self.at = np.zeros(len(NAMES), np.float32)
        self.moved = threading.Event()
        self.written = []

    def read(self):
        return self.at

    def write(self, action):
        self.at = action
        self.written.append(action)
        self.moved.set()

    def frame(self, camera):
        return np.zeros((*SIZES[camera], 3), np.uint8)


class Pulled(tendon.Robot):
    joints = JOINTS
    cameras = SIZES

    def frame(self, camera):
        return np.zeros((*SIZES[camera], 3), np.uint8)
