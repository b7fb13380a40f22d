# SPDX-License-Identifier: Apache-2.0
"""Plays LeRobot's simulated environments from a policy on a server.

    python -m tendon.lerobot.sim_client --env.type=pusht --n_episodes=10 \\
        --server_address=gpu-box:8080 --policy_type=diffusion

A line an episode, and the share that succeeded at the end.
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
from lerobot.utils.constants import ACTION, OBS_STATE

import tendon
from tendon.gym import Episode, play

from .route import Route, endpoint_of, short


@dataclass
class SimClientConfig(Route):
    env: EnvConfig
    # Where the server, or a router, is: host:port, or as Zenoh writes it
    server_address: str = "localhost:8080"
    client_uuid: str = ""
    # What the server serves, as its model_id
    policy_type: str = ""
    # The server has its own: taken so that LeRobot's command lines go on working
    pretrained_name_or_path: str = ""
    policy_device: str = ""

    # Episodes of each task
    n_episodes: int = 10
    # Of the first one; each more has one more
    seed: int = 1000
    # Empty: the environment's own words
    task: str = ""
    actions_per_chunk: int = 50
    chunk_size_threshold: float | None = None
    aggregate_fn_name: str = "weighted_average"
    # The action's channels in order, as the server names them
    joints: list[str] = field(default_factory=list)
    # Any other field of docs/robot-settings.md
    settings: dict[str, Any] = field(default_factory=dict)


def settings_of(config: SimClientConfig, task: str) -> dict[str, Any]:
    model = config.model_id or config.policy_type
    if not model:
        raise ValueError("which policy? Say --policy_type=… or --model_id=…")
    settings = {
        "cluster_uuid": config.cluster_uuid,
        "experiment_tag": config.experiment_tag,
        "model_id": model,
        "model_version": config.model_version,
        "application_tag": config.application_tag,
        "client_uuid": config.client_uuid or f"sim-{socket.gethostname()}",
        "endpoint": endpoint_of(config.server_address),
        "fps": config.env.fps,
        "task": config.task or task,
        "actions_per_chunk": config.actions_per_chunk,
        "chunk_size_threshold": config.chunk_size_threshold,
        "aggregate_fn_name": config.aggregate_fn_name,
        **config.settings,
    }
    return {name: value for name, value in settings.items() if value is not None}


def paths_of(env: EnvConfig) -> tuple[list[str], dict[str, str]]:
    """Where in the environment's observations the state and each camera is."""
    named = {
        path: feature
        for path, feature in env.features_map.items()
        if path in env.features and feature != ACTION
    }
    state = [path for path, feature in named.items() if feature == OBS_STATE]
    cameras = {
        short(feature): path for path, feature in named.items() if feature != OBS_STATE
    }
    return state, cameras


def words_of(env: Any) -> str:
    """What the environment says is to be done."""
    for name in ("task_description", "task"):
        words = getattr(env.unwrapped, name, None)
        if isinstance(words, str):
            return words
    return ""


def play_all(config: SimClientConfig) -> Iterator[tuple[str, Episode]]:
    state, cameras = paths_of(config.env)
    for suite, tasks in config.env.create_envs(n_envs=1).items():
        for number, vector in tasks.items():
            env = vector.envs[0]
            played = play(
                env,
                config.n_episodes,
                config.seed,
                config.joints or None,
                state,
                cameras,
                **settings_of(config, words_of(env)),
            )
            for episode in played:
                yield f"{suite}/{number}", episode
            vector.close()


@parser.wrap()
def run(config: SimClientConfig) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    succeeded = []
    for task, episode in play_all(config):
        succeeded.append(episode.success)
        told = {"task": task} | dataclasses.asdict(episode)
        print(json.dumps(told), flush=True)
    share = sum(succeeded) / max(1, len(succeeded))
    print(json.dumps({"episodes": len(succeeded), "success": round(share, 4)}))


def main() -> None:
    try:
        run()
    except (tendon.Error, ValueError) as error:
        sys.exit(f"sim_client: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
