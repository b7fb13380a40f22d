# SPDX-License-Identifier: Apache-2.0
"""Settings that robot_client and sim_client share: which policy, and how it is played."""

import logging
from dataclasses import dataclass, field
from typing import Any

from .route import Route, endpoint_of

log = logging.getLogger("tendon.lerobot")


@dataclass(kw_only=True)
class ClientConfig(Route):
    # Where the server, or a router, is: host:port, or as Zenoh writes it (tls/host:port)
    server_address: str = "localhost:8080"
    # The same as Zenoh writes it; goes before server_address
    endpoint: str = ""
    # The client's own name; empty: made of the machine's
    client_uuid: str = ""
    # What the server serves, as its model_id
    policy_type: str = ""
    # The server has its own: a value given here is only warned of
    pretrained_name_or_path: str = ""
    policy_device: str = ""
    client_device: str = "cpu"

    # What to do
    task: str = ""
    # Actions of a chunk that are played
    actions_per_chunk: int = 50
    # Ask for the next chunk below this part of a full buffer; none: half of it
    chunk_size_threshold: float | None = None
    # Ask below this much time instead
    buffer_time_s: float | None = None
    # weighted_average, latest_only, average, conservative, temporal
    aggregate_fn_name: str = "weighted_average"
    jpeg_quality: int = 90
    # Control steps without an action
    max_empty_cycles_before_warning: int = 10
    # Any other field of docs/robot-settings.md
    settings: dict[str, Any] = field(default_factory=dict)


def settings_of(
    config: ClientConfig, name: str, fps: int, task: str = ""
) -> dict[str, Any]:
    """The same as a robot's file says it; `name` and `task` where the options say
    nothing."""
    model = config.model_id or config.policy_type
    if not model:
        raise ValueError("which policy? Say --policy_type=… or --model_id=…")
    settings = {
        "cluster_uuid": config.cluster_uuid,
        "experiment_tag": config.experiment_tag,
        "model_id": model,
        "model_version": config.model_version,
        "application_tag": config.application_tag,
        "client_uuid": config.client_uuid or name,
        "endpoint": endpoint_of(config.endpoint or config.server_address),
        "task": config.task or task,
        "fps": fps,
        "actions_per_chunk": config.actions_per_chunk,
        "chunk_size_threshold": config.chunk_size_threshold,
        "aggregate_fn_name": config.aggregate_fn_name,
        "jpeg_quality": config.jpeg_quality,
        "max_empty_cycles_before_warning": config.max_empty_cycles_before_warning,
        "buffer_time_s": config.buffer_time_s,
        "observe": "time" if config.buffer_time_s else None,
        **config.settings,
    }
    return {name: value for name, value in settings.items() if value is not None}


def say_unused(config: ClientConfig) -> None:
    for name in ("pretrained_name_or_path", "policy_device"):
        if value := getattr(config, name):
            log.info("%s=%s: the server's own counts", name, value)
    if config.client_device != "cpu":
        log.info("client_device=%s: a client is sent numbers", config.client_device)
