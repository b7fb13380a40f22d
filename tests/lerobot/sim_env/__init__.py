# SPDX-License-Identifier: Apache-2.0
"""An environment for LeRobot that is made of numbers: what it shows is what LIBERO
shows (seven actions, eight numbers of state, a frame upside down), and LeRobot's own
processor for that stands before the policy.

--env.discover_packages_path=sim_env --env.type=sim_env --env.far=0.05
"""

from dataclasses import dataclass, field

import gymnasium
import numpy as np
from gymnasium import spaces
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.envs.configs import EnvConfig
from lerobot.processor import LiberoProcessorStep, PolicyProcessorPipeline
from lerobot.utils.constants import ACTION

ACTIONS, STATES = 7, 8
HEIGHT, WIDTH = 48, 64
STEPS = 60
ID = "sim_env/Reach-v0"


@EnvConfig.register_subclass("sim_env")
@dataclass
class SimEnvConfig(EnvConfig):
    task: str | None = "Reach-v0"
    fps: int = 50
    # How far it has to get
    far: float = 0.05
    features: dict[str, PolicyFeature] = field(
        default_factory=lambda: {ACTION: PolicyFeature(FeatureType.ACTION, (ACTIONS,))}
    )

    @property
    def package_name(self):
        return "sim_env"

    @property
    def gym_kwargs(self):
        return {"far": self.far}

    def get_env_processors(self):
        return (
            PolicyProcessorPipeline(steps=[LiberoProcessorStep()]),
            PolicyProcessorPipeline(steps=[]),
        )


class Reach(gymnasium.Env):
    """A hand that goes where it is sent; done when it is far enough from where it
    began, which only a policy makes it be."""

    task_description = "reach far"

    def __init__(self, far):
        self.far = far
        box = spaces.Box(-np.inf, np.inf, (4,), np.float64)
        self.observation_space = spaces.Dict({"robot_state": box})  # nobody looks
        self.action_space = spaces.Box(-10, 10, (ACTIONS,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.count = np.zeros(ACTIONS), 0
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.at, self.count = action.astype(np.float64), self.count + 1
        done = bool(np.abs(action).max() > self.far)
        return self._see(), 1.0, done, self.count >= STEPS, {"is_success": done}

    def _see(self):
        frame = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        frame[0, 0] = (1, 128, 255)  # where LeRobot puts it is the other end
        hand = {"pos": self.at[:3], "quat": np.array([0.0, 0.0, 0.0, 1.0])}
        fingers = {"qpos": np.repeat(self.at[6], 2)}
        return {
            "pixels": {"image": frame},
            "robot_state": {"eef": hand, "gripper": fingers},
        }


gymnasium.register(ID, entry_point=Reach)
