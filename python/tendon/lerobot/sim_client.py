# SPDX-License-Identifier: Apache-2.0
"""Plays LeRobot's simulated environments from a policy on a server.

    python -m tendon.lerobot.sim_client --env.type=pusht --n_episodes=10 \\
        --server_address=gpu-box:8080 --policy_type=diffusion

A line an episode, and the share that succeeded at the end. What LeRobot's own client
takes is taken here, too (robot_client.py).
"""

import dataclasses
import json
import logging
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lerobot.envs  # noqa: F401  its configurations register themselves
from lerobot.configs import parser
from lerobot.envs.configs import EnvConfig
from lerobot.utils.import_utils import register_third_party_plugins

import tendon
from tendon.gym import Episode, named, play, size_of

from .client import ClientConfig, say_unused, settings_of
from .env import STATE, LeRobotEnv


@dataclass
class SimClientConfig(ClientConfig):
    env: EnvConfig
    # Episodes of each task
    n_episodes: int = 10
    # Of the first one; each more has one more
    seed: int = 1000
    # The action's channels in order, as the server names them; none: action_0, …
    joints: list[str] = field(default_factory=list)
    # The state's; none: those of the action if there are as many, else state_0, …
    states: list[str] = field(default_factory=list)


def words_of(env: Any) -> str:
    """What the environment says is to be done."""
    for name in ("task_description", "task"):
        words = getattr(env.unwrapped, name, None)
        if isinstance(words, str):
            return words
    return ""


def play_env(config: SimClientConfig, env: Any) -> Iterator[Episode]:
    seen = LeRobotEnv(env, config.env)
    name = f"sim-{socket.gethostname()}"
    return play(
        seen,
        config.n_episodes,
        config.seed,
        config.joints or named("action", size_of(env.action_space)),
        [STATE],
        seen.cameras,
        config.states or None,
        **settings_of(config, name, config.env.fps, words_of(env)),
    )


def play_all(config: SimClientConfig) -> Iterator[tuple[str, Episode]]:
    for suite, tasks in config.env.create_envs(n_envs=1).items():
        for number, vector in tasks.items():
            alone: Any = vector  # with `envs`, as LeRobot asks for them here
            for episode in play_env(config, alone.envs[0]):
                yield f"{suite}/{number}", episode
            vector.close()


@parser.wrap()
def run(config: SimClientConfig) -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    say_unused(config)
    succeeded = []
    for task, episode in play_all(config):
        succeeded.append(episode.success)
        report = {"task": task} | dataclasses.asdict(episode)
        print(json.dumps(report), flush=True)
    share = sum(succeeded) / max(1, len(succeeded))
    print(json.dumps({"episodes": len(succeeded), "success": round(share, 4)}))


def main() -> None:
    register_third_party_plugins()
    try:
        run()  # pyright: ignore[reportCallIssue]: the wrapper gives it
    except (tendon.Error, ValueError) as error:
        sys.exit(f"sim_client: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
