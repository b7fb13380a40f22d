# SPDX-License-Identifier: Apache-2.0
"""What robots have shown before, for policies that look at more than one step."""

from collections import OrderedDict
from typing import Any, NamedTuple

import torch
from lerobot.utils.constants import OBS_STR

Batch = dict[str, Any]
MOST_ROBOTS = 64  # whose past is kept; beyond that the one longest unheard is let go


class Past(NamedTuple):
    start: tuple[int, int]  # boot and episode: neither is seen beyond
    steps: dict[int, Batch]  # by the robot's cursor


class History:
    """Puts the steps before an observation beside it, as the queue of LeRobot's
    select_action() does, which is shown every step.

    A robot sends what is needed for the next chunk, and not every step: so it is its
    cursor that says which step an observation is of, and not its turn. For a step that
    was not sent the one after it stands, as at the beginning of an episode.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.robots: OrderedDict[str, Past] = OrderedDict()

    def join(self, batch: Batch, observations: list[Batch]) -> Batch:
        """The batch with a dimension of time behind the first, the newest last."""
        seen = [key for key in batch if key.startswith(OBS_STR)]
        windows = [
            self._window(obs, {key: batch[key][i].clone() for key in seen})
            for i, obs in enumerate(observations)
        ]
        return {
            key: torch.stack(
                [torch.stack([step[key] for step in window]) for window in windows]
            )
            for key in seen
        }

    def _window(self, obs: Batch, newest: Batch) -> list[Batch]:
        cursor, past = obs.get("cursor", 0), self._past(obs)
        past[cursor] = newest
        window = [newest]
        for step in range(cursor - 1, cursor - self.steps, -1):
            window.insert(0, past.get(step, window[0]))
        for step in [step for step in past if step <= cursor - self.steps]:
            del past[step]
        return window

    def _past(self, obs: Batch) -> dict[int, Batch]:
        """An observation of nobody has none."""
        robot, start = obs.get("client"), (obs.get("boot", 0), obs.get("episode", 0))
        if not robot:
            return {}
        past = self.robots.pop(robot, None)
        if past is None or past.start != start:
            past = Past(start, {})
        self.robots[robot] = past
        if len(self.robots) > MOST_ROBOTS:
            self.robots.popitem(last=False)
        return past.steps
