# SPDX-License-Identifier: Apache-2.0
"""tendon-policy-server: serves a checkpoint of LeRobot's.

    tendon-policy-server --pretrained_name_or_path=outputs/act/pretrained_model \\
        --host=0.0.0.0 --port=8080 --fps=30 --policy_device=cuda

It writes the manifest that these options make and becomes `tendon serve`; the options
are those of LeRobot's own policy server, and what its client told it there.
"""

import json
import os
import pathlib
import sys
from dataclasses import dataclass, field
from typing import Any

import draccus

from tendon import _library

from .checkpoint import find, read_config
from .route import Route, endpoint_of


@dataclass
class PolicyServerConfig(Route):
    # The policy: a folder, or its name on the hub
    pretrained_name_or_path: str
    # act, diffusion, smolvla, pi0, pi05, ...; checked against the checkpoint
    policy_type: str = ""
    # cpu, cuda, cuda:1, ...
    policy_device: str = "cpu"
    # The most that is given of a chunk; 0: all of it
    actions_per_chunk: int = 0

    # Where to listen
    host: str = "localhost"
    port: int = 8080
    # Policy steps a second
    fps: int = 30
    # Seconds: how old an observation may grow before it presses
    inference_latency: float = 1 / 30
    # Seconds without an observation after which a robot is gone
    obs_queue_timeout: float = 10.0
    # Compute when an observation arrives; no: only for a robot that has run dry
    enable_precompute: bool = True
    # MB of device memory for prefixes that are kept to answer again from
    prefix_mb: int = 1024

    # Channels in order, as the robot names them; none: as the checkpoint does
    action_names: list[str] = field(default_factory=list)
    state_names: list[str] = field(default_factory=list)
    # name: {height: ..., width: ...}; none: as the checkpoint says
    cameras: dict[str, dict[str, int]] = field(default_factory=dict)
    # Observations in one batch; 0: 8 on a GPU, 1 elsewhere
    max_batch: int = 0
    # The robots to serve; none: any
    clients: list[str] = field(default_factory=list)
    # Seconds: a policy that stands still for longer is started again
    answer_timeout: float = 30.0
    # HTTP for people and Prometheus; 0: none
    admin_port: int = 0
    # Keep the manifest in this file
    manifest: pathlib.Path | None = None
    # Say what would be served, and end
    check: bool = False


def manifest_of(config: PolicyServerConfig) -> dict[str, Any]:
    folder = find(config.pretrained_name_or_path)
    kind = read_config(folder).type
    if config.policy_type not in ("", kind):
        raise ValueError(f"{folder} is of type {kind}, not {config.policy_type}")
    return {
        "cluster_uuid": config.cluster_uuid,
        "experiment_tag": config.experiment_tag,
        "scheduling": {"cadence": {"gone_s": config.obs_queue_timeout}},
        "admin": {"port": config.admin_port},
        "models": [
            {
                "model_id": config.model_id or kind,
                "model_version": config.model_version,
                "application_tag": config.application_tag,
                "pretrained_path": str(folder.resolve()),
                "device": config.policy_device,
                "fps": config.fps,
                "endpoint": endpoint_of(f"{config.host}:{config.port}"),
                "precompute": config.enable_precompute,
                "prefixes": {"mb": config.prefix_mb},
                "accept_unknown": not config.clients,
                "engine": engine_of(config),
                **terms_of(config),
            }
        ],
    }


def terms_of(config: PolicyServerConfig) -> dict[str, Any]:
    terms = {"latency_budget_ms": max(1, round(1000 * config.inference_latency))}
    named = [{"client_uuid": client} | terms for client in config.clients]
    return {"unknown": terms, "clients": named}


def engine_of(config: PolicyServerConfig) -> dict[str, Any]:
    engine = {
        "kind": "worker",
        "command": [
            sys.executable,
            "-m",
            "tendon.worker",
            "tendon.lerobot.policy:Policy",
        ],
        "answer_s": config.answer_timeout,
        "actions": config.action_names,
        "states": config.state_names,
        "cameras": config.cameras,
        "chunk": config.actions_per_chunk,
        "max_batch": config.max_batch,
    }
    return {key: value for key, value in engine.items() if value}


def write(config: PolicyServerConfig, manifest: dict[str, Any]) -> str:
    """Where it is: the file that was asked for, or one in memory that lives as long
    as the server."""
    text = json.dumps(manifest, indent=2)  # which is YAML
    if config.manifest:
        config.manifest.write_text(text + "\n")
        return str(config.manifest)
    memory = os.memfd_create("manifest.yaml", 0)
    os.write(memory, text.encode())
    return f"/proc/self/fd/{memory}"


def main() -> None:
    config = draccus.parse(PolicyServerConfig)
    try:
        path = write(config, manifest_of(config))
        program = str(_library.find("tendon"))
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"tendon-policy-server: {error}")
    options = ["--check"] if config.check else []
    sys.stdout.flush()
    os.execv(program, [program, "serve", path, *options])


if __name__ == "__main__":
    main()
