# SPDX-License-Identifier: Apache-2.0
"""A Gymnasium environment in the place of a robot, with success per episode.

    import gymnasium
    from tendon.gym import play

    env = gymnasium.make("gym_pusht/PushT-v0", obs_type="pixels_agent_pos")
    for episode in play(env, episodes=10, joints=["x", "y"], endpoint="tcp/gpu:7447", ...):
        print(episode)

The environment is stepped in real time by the same loop that a robot has: it asks,
merges, limits and fails safe as that does, and the environment does not wait for it.
"""

import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import tendon

FRAME_LIMIT_S = 1.0


@dataclasses.dataclass
class Episode:
    number: int
    success: bool
    reward: float = 0.0
    steps: int = 0
    waited: int = 0  # control periods before the first action
    starved: int = 0  # steps without an action of the policy


class GymRobot(tendon.Robot):
    """An environment as a robot that owns its loop (pull mode).

    `state` and `cameras` say where in an observation things are, by path
    ("agent_pos", "pixels/top"); what is left out is found: float vectors are state,
    height x width x 3 bytes is a camera, which has the last word of its path as name.

    A state of as many numbers as the action has is where the joints are. One of
    another number, or that is given names of its own with `states`, is what the policy
    observes; then nobody knows where the joints are, and they are taken to be where they
    were last sent (0 at the beginning of an episode).
    """

    def __init__(
        self,
        env: Any,
        joints: Sequence[str] | Mapping[str, Any] | None = None,
        state: Sequence[str] | None = None,
        cameras: Mapping[str, str] | None = None,
        states: Sequence[str] | Mapping[str, Any] | None = None,
    ):
        self.env = env
        spaces = dict(leaves(env.observation_space))
        self.state_paths = find_state(spaces) if state is None else list(state)
        self.camera_paths = find_cameras(spaces) if cameras is None else dict(cameras)
        self.joints = joints or named("joint", size_of(env.action_space))
        self.cameras = {
            name: spaces[path].shape[:2] for name, path in self.camera_paths.items()
        }
        count = sum(size_of(spaces[path]) for path in self.state_paths)
        if states or count != len(self.joints):
            self.states = states or named("state", count)
            self.observe_state = self._observe_state
        self._check(count)
        self.sent = self.observed = np.zeros(0, np.float32)
        self.frames: dict[str, np.ndarray] = {}
        self.count = 0
        self.given = dict.fromkeys(self.cameras, 0)
        self.fresh = threading.Condition()  # guards frames, count and given
        super().__init__()

    def _check(self, count: int) -> None:
        actions, joints = size_of(self.env.action_space), len(self.joints)
        if actions != joints:
            raise ValueError(
                f"the environment takes {actions} numbers, joints are {joints}"
            )
        states = self.states or self.joints
        if count == 0 or count != len(states):
            raise ValueError(
                f"{', '.join(self.state_paths) or 'no state'}: {count} numbers for"
                f" {len(states)} states; say with state= where they are"
            )

    def _observe_state(self) -> np.ndarray:
        return self.observed

    def frame(self, camera: str) -> np.ndarray:
        with self.fresh:
            # Not for ever: while the environment stands its last frame is the newest.
            self.fresh.wait_for(lambda: self.count > self.given[camera], FRAME_LIMIT_S)
            self.given[camera] = self.count
            return self.frames[camera]

    def see(self, observation: Any) -> np.ndarray:
        """Takes out of an observation what the policy sees, and gives what step()
        wants: where the joints are."""
        parts = dict(leaves(observation))
        with self.fresh:
            self.frames = {
                name: parts[path] for name, path in self.camera_paths.items()
            }
            self.count += 1
            self.fresh.notify_all()
        state = [np.ravel(parts[path]) for path in self.state_paths]
        self.observed = np.concatenate(state).astype(np.float32)
        return self.sent if self.states else self.observed

    def begin(self, seed: int | None) -> Any:
        """The first observation of an episode."""
        self.sent = np.zeros(len(self.joints), np.float32)
        return self.env.reset(seed=seed)[0]

    def act(self, action: np.ndarray) -> Any:
        """As the environment takes it."""
        self.sent = action
        space = self.env.action_space
        if not space.shape:  # one of n
            return int(np.clip(round(float(action[0])), 0, space.n - 1))
        action = action.reshape(space.shape).astype(space.dtype)
        return np.clip(action, space.low, space.high)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Of nested dicts (or dict spaces): path and value of each end."""
    parts = getattr(tree, "spaces", tree)
    if not isinstance(parts, Mapping):
        yield path or "observation", tree
        return
    for name, part in parts.items():
        yield from leaves(part, f"{path}/{name}" if path else name)


def find_state(spaces: Mapping[str, Any]) -> list[str]:
    return [
        path
        for path, space in spaces.items()
        if len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating)
    ]


def find_cameras(spaces: Mapping[str, Any]) -> dict[str, str]:
    return {
        path.rpartition("/")[2]: path
        for path, space in spaces.items()
        if len(space.shape) == 3 and space.shape[2] == 3 and space.dtype == np.uint8
    }


def size_of(space: Any) -> int:
    return int(np.prod(space.shape)) if space.shape else 1


def named(word: str, count: int) -> list[str]:
    return [f"{word}_{i}" for i in range(count)]


def succeeded(info: Mapping[str, Any], terminated: bool) -> bool:
    """What the environment says; one that says nothing ends only when it is done."""
    for name in ("is_success", "success"):
        if name in info:
            return bool(np.any(info[name]))
    return terminated


def play(
    env: Any,
    episodes: int = 1,
    seed: int | None = None,
    joints: Sequence[str] | Mapping[str, Any] | None = None,
    state: Sequence[str] | None = None,
    cameras: Mapping[str, str] | None = None,
    states: Sequence[str] | Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Episode]:
    """Plays episode after episode; `settings` are a robot's (docs/robot-settings.md)."""
    robot = GymRobot(env, joints, state, cameras, states)
    robot.see(robot.begin(seed))  # what its cameras show from the start
    robot.start(**settings)
    try:
        for number in range(episodes):
            fresh_seed = None if seed is None else seed + number
            yield play_one(robot, number, fresh_seed, settings.get("fps", 30))
    finally:
        robot.close()


def play_one(robot: GymRobot, number: int, seed: int | None, fps: float) -> Episode:
    observation = robot.begin(seed)
    robot.reset(f"episode {number}")
    episode = Episode(number, success=False)
    pace = Pace(1 / fps)
    while True:
        pace.wait()
        step = robot.step(robot.see(observation))
        if step.doing != "fresh" and robot.wait(0):  # which raises why it ended
            raise tendon.Closed("the robot was stopped", "CLOSED")
        if step.action is None or (step.doing != "fresh" and not episode.steps):
            episode.waited += 1
            continue
        observation, reward, terminated, truncated, info = robot.env.step(
            robot.act(step.action)
        )
        episode.steps += 1
        episode.starved += step.doing != "fresh"
        episode.reward += float(reward)
        if terminated or truncated:
            episode.success = succeeded(info, terminated)
            return episode


class Pace:
    """Waits for the next period; what was missed is not made up for."""

    def __init__(self, period_s: float):
        self.period_s, self.due_s = period_s, time.monotonic()

    def wait(self) -> None:
        now_s = time.monotonic()
        self.due_s = max(self.due_s + self.period_s, now_s - self.period_s)
        time.sleep(max(0.0, self.due_s - now_s))
