# SPDX-License-Identifier: Apache-2.0
"""A robot of LeRobot's under the C control loop."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from lerobot.processor import make_default_processors

import tendon

Joints = Sequence[str] | Mapping[str, Mapping[str, Any]]

FRAME_LIMIT_S = 1.0  # without a new one: frame() times out, and is asked again


class LeRobotRobot(tendon.Robot):
    """Joints and cameras are as `action_features` and `observation_features` have
    them; LeRobot's processors stand where they do in its own loop.

    The policy of a robot that reads other things than it is sent sees what it reads. A
    joint that is not among them is where it was last sent, and 0 before.

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
        self.joints: Joints = list(robot.action_features)
        self.cameras = self.sizes = cameras_of(robot)
        read = states_of(robot)
        if set(read) != set(self.joints):
            self.states = read
            self.observe_state = self._observe_state
        self.sent = dict.fromkeys(self.joints, 0.0)
        self.seen: dict[str, Any] = {}
        self.count = 0
        self.given = dict.fromkeys(self.cameras, 0)
        self.fresh = threading.Condition()  # guards seen, count and given
        super().__init__()

    def read(self) -> np.ndarray:
        seen = self.observation_processor(self.robot.get_observation())
        missing = [name for name in self.states or self.joints if name not in seen]
        if missing:
            raise ValueError(f"get_observation() left out {', '.join(missing)}")
        with self.fresh:
            self.seen, self.count = seen, self.count + 1
            self.fresh.notify_all()
        return numbers(self.sent | dict(seen), self.joints)

    def _observe_state(self) -> np.ndarray:
        """Of the reading before."""
        return numbers(self.seen, self.states)

    def write(self, action: np.ndarray) -> None:
        named = dict(zip(self.joints, map(float, action), strict=True))
        with self.fresh:
            seen, self.sent = self.seen, named
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
        return check_frame(camera, np.asarray(seen[camera]), self.sizes[camera])

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


def states_of(robot: Any) -> list[str]:
    features = robot.observation_features.items()
    states = [name for name, kind in features if kind is float]
    if not states:
        raise ValueError(f"{robot.name}: it reads no numbers, only {features}")
    return states


def numbers(values: Mapping[str, Any], names: Iterable[str]) -> np.ndarray:
    return np.array([values[name] for name in names], np.float32)


def check_frame(camera: str, frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    if frame.shape != (*size, 3) or frame.dtype != np.uint8:
        got = " x ".join(map(str, frame.shape))
        want = " x ".join(map(str, (*size, 3)))
        raise ValueError(
            f"{camera}: got {got} of {frame.dtype}, it has {want} of uint8"
        )
    return frame
