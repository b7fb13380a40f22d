# SPDX-License-Identifier: Apache-2.0
"""A simulated environment of LeRobot's as its own evaluation shows it to a policy."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from lerobot.envs.configs import EnvConfig
from lerobot.envs.utils import NEW_ROLLOUT_OPTION, preprocess_observation
from lerobot.utils.constants import ACTION, OBS_IMAGE, OBS_STATE

from .route import short

STATE = short(OBS_STATE)


class LeRobotEnv(gymnasium.Wrapper):
    """LeRobot's own processors for the environment stand before and after it. What is
    left of an observation is `state`, and each camera under the policy's name for it."""

    def __init__(self, env: Any, config: EnvConfig):
        super().__init__(env)
        self.before, self.after = config.get_env_processors()
        seen, _ = self.reset()
        if STATE not in seen:
            raise ValueError(f"{config.type}: its observations have no state")
        boxes = {name: box_of(value) for name, value in seen.items()}
        self.observation_space = spaces.Dict([*boxes.items()])
        self.cameras = {name: name for name in boxes if name != STATE}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], Any]:
        options = {NEW_ROLLOUT_OPTION: True} | (options or {})
        seen, info = self.env.reset(seed=seed, options=options)
        return self._see(seen), info

    def step(self, action: Any) -> Any:
        sent = self.after({ACTION: torch.as_tensor(action)[None]})[ACTION]
        seen, *rest = self.env.step(sent[0].numpy())
        return self._see(seen), *rest

    def _see(self, seen: Any) -> dict[str, np.ndarray]:
        shown = self.before(preprocess_observation(batch_of_one(seen)))
        parts = {
            short(key): bytes_of(value[0])
            for key, value in shown.items()
            if key.startswith(OBS_IMAGE)
        }
        if OBS_STATE in shown:
            parts[STATE] = shown[OBS_STATE][0].numpy().astype(np.float32)
        return parts


def batch_of_one(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: batch_of_one(part) for name, part in tree.items()}
    return np.asarray(tree)[None]


def bytes_of(image: torch.Tensor) -> np.ndarray:
    """Channels x height x width, 0 to 1, as it came from the camera."""
    return (image * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()


def box_of(value: np.ndarray) -> spaces.Box:
    if value.dtype == np.uint8:
        return spaces.Box(0, 255, value.shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, value.shape, np.float32)
