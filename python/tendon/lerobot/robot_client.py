# SPDX-License-Identifier: Apache-2.0
"""tendon-robot-client: drives a robot of LeRobot's from a policy on a server.

    tendon-robot-client --robot.type=so101_follower --robot.port=/dev/ttyACM0 \\
        --robot.cameras="{front: {type: opencv, index_or_path: 0, \\
            width: 640, height: 480, fps: 30}}" \\
        --server_address=gpu-box:8080 --policy_type=act --task="fold the towel"

The options are those of LeRobot's own asynchronous client, and more.
"""

import contextlib
import importlib
import logging
import pkgutil
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lerobot.cameras
import lerobot.robots
from lerobot.configs import parser
from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.utils.import_utils import register_third_party_plugins

import tendon

from .client import ClientConfig, say_unused, settings_of
from .robot import LeRobotRobot


@dataclass
class RobotClientConfig(ClientConfig):
    robot: RobotConfig
    # Policy steps a second
    fps: int = 30
    # Limits of joints, by name: {gripper.pos: {min: 0, max: 100, kind: hold}}
    joints: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Record what is seen and done as a dataset of this name; none: do not
    dataset_repo_id: str | None = None
    # Show how many actions there were to play, at the end
    debug_visualize_queue_size: bool = False
    # Seconds; 0: until Ctrl-C
    duration: float = 0.0


def robot_settings(config: RobotClientConfig) -> dict[str, Any]:
    client = config.robot.id or socket.gethostname()
    settings = settings_of(config, client, config.fps)
    if config.dataset_repo_id:
        settings["dataset_repo_id"] = config.dataset_repo_id
    return settings


@contextlib.contextmanager
def connected(robot: Any) -> Iterator[Any]:
    robot.connect()
    try:
        yield robot
    finally:
        if robot.is_connected:
            robot.disconnect()


def drive(config: RobotClientConfig, hardware: Any) -> LeRobotRobot:
    """Runs until Ctrl-C, or for `duration`."""
    robot = LeRobotRobot(hardware)
    unknown = set(config.joints) - set(robot.joints)
    if unknown:
        raise ValueError(f"joints: the robot has no {', '.join(sorted(unknown))}")
    robot.joints = {name: config.joints.get(name, {}) for name in robot.joints}
    timer = threading.Timer(config.duration, robot.stop)
    sizes = QueueSizes(robot, config.fps) if config.debug_visualize_queue_size else None
    if config.duration > 0:
        timer.start()
    try:
        robot.run(**robot_settings(config))
    except Exception as error:
        raise as_failed(robot, error) from error
    finally:
        timer.cancel()
        if sizes:
            sizes.show()
    return robot


def as_failed(robot: LeRobotRobot, error: Exception) -> Exception:
    """One line for what was told with its traceback when it came."""
    for fault in robot.errors:
        if fault.error is error:
            words = f"{type(error).__name__}: {error}"
            return Failed(f"{fault.where} failed: {words} ({fault.count} times)")
    return error


class QueueSizes:
    """How many actions there are to play, once a policy step."""

    def __init__(self, robot: LeRobotRobot, fps: int):
        self.robot, self.period_s = robot, 1 / fps
        self.sizes: list[int] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.stopping.wait(self.period_s):
            if self.robot.state == "STREAMING":
                self.sizes.append(int(self.robot.report().get("buffer_rows", 0)))

    def show(self) -> None:
        from lerobot.async_inference.helpers import visualize_action_queue_size

        self.stopping.set()
        self.thread.join()
        if self.sizes:
            visualize_action_queue_size(self.sizes)


def register_all() -> None:
    """Every robot and camera that LeRobot has, and those of packages beside it."""
    for package in (lerobot.robots, lerobot.cameras):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            if module.ispkg:
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    register_third_party_plugins()


class Failed(Exception):
    """The robot's own code raised; its traceback is in the log."""


@parser.wrap()
def run(config: RobotClientConfig) -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    say_unused(config)
    robot_settings(config)  # what is wrong is said before the robot moves
    with connected(make_robot_from_config(config.robot)) as hardware:
        drive(config, hardware)


def main() -> None:
    register_all()
    try:
        run()  # pyright: ignore[reportCallIssue]: the wrapper gives it
    except (tendon.Error, ValueError, Failed) as error:
        sys.exit(f"tendon-robot-client: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
