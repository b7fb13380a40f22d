# SPDX-License-Identifier: Apache-2.0
"""A robot of LeRobot's under the C control loop."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from lerobot.processor import make_default_processors

import tendon

FRAME_LIMIT_S = 1.0  # without a new one: its camera is told so, and asks again


class LeRobotRobot(tendon.Robot):
    """Joints and cameras are as `action_features` and `observation_features` have
    them; LeRobot's processors stand where they do in its own loop.

    One call of get_observation() serves a reading of the joints and a frame of each
    camera. It runs on the driver's thread: what it costs delays no tick.
    """

    def __init__(
        self,
        robot: Any,
        action_processor: Callable[[tuple[Any, Any]], Any] | None = None,
        observation_processor: Callable[[Any], Any] | None = None,
    ):
        _, default_action, default_observation = make_default_processors()
        self.robot = robot
        self.action_processor = action_processor or default_action
        self.observation_processor = observation_processor or default_observation
        self.joints = list(robot.action_features)
        self.cameras = cameras_of(robot)
        check_features(robot, self.joints)
        self.seen: Mapping[str, Any] = {}
        self.count = 0
        self.given = dict.fromkeys(self.cameras, 0)
        self.fresh = threading.Condition()  # guards seen, count and given
        super().__init__()

    def read(self) -> np.ndarray:
        seen = self.observation_processor(self.robot.get_observation())
        missing = [name for name in self.joints if name not in seen]
        if missing:
            raise ValueError(f"get_observation() left out {', '.join(missing)}")
        state = np.array([seen[name] for name in self.joints], np.float32)
        with self.fresh:
            self.seen, self.count = seen, self.count + 1
            self.fresh.notify_all()
        return state

    def write(self, action: np.ndarray) -> None:
        named = dict(zip(self.joints, map(float, action), strict=True))
        with self.fresh:
            seen = self.seen
        self.robot.send_action(self.action_processor((named, seen)))

    def frame(self, camera: str) -> np.ndarray:
        """The next one that read() brings."""
        with self.fresh:
            if not self.fresh.wait_for(lambda: self._has_new(camera), FRAME_LIMIT_S):
                raise TimeoutError(f"no observation for {FRAME_LIMIT_S:g} s")
            self.given[camera] = self.count
            seen = self.seen
        if camera not in seen:
            raise ValueError(f"get_observation() left out {camera}")
        return check_frame(camera, np.asarray(seen[camera]), self.cameras[camera])

    def _has_new(self, camera: str) -> bool:
        return self.count > self.given[camera]


def cameras_of(robot: Any) -> dict[str, tuple[int, int]]:
    """Those with three colours: depth does not travel."""
    shapes = robot.observation_features.items()
    return {
        name: (shape[0], shape[1])
        for name, shape in shapes
        if isinstance(shape, tuple) and len(shape) == 3 and shape[2] == 3
    }


def check_features(robot: Any, joints: list[str]) -> None:
    states = [
        name for name, kind in robot.observation_features.items() if kind is float
    ]
    if set(states) != set(joints):
        differ = ", ".join(sorted(set(states) ^ set(joints)))
        raise ValueError(
            f"{robot.name}: what it reads and what it is sent must have the same names,"
            f" and these are in one alone: {differ}"
        )


def check_frame(camera: str, frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    if frame.shape != (*size, 3) or frame.dtype != np.uint8:
        got = " x ".join(map(str, frame.shape))
        want = " x ".join(map(str, (*size, 3)))
        raise ValueError(
            f"{camera}: got {got} of {frame.dtype}, it has {want} of uint8"
        )
    return frame
