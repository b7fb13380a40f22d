# SPDX-License-Identifier: Apache-2.0
"""The one policy that the tests serve and the one robot that plays it."""

import io

import PIL.Image

ROUTE = "test/e2e/synthetic/v1/wave"
FPS = 100
ROWS = 20
KINDS = {
    "waist": "angle",
    "shoulder": "linear",
    "elbow": "linear",
    "wrist_angle": "linear",
    "wrist_rotate": "angle",
    "gripper": "hold",
}
JOINTS = {name: {"kind": kind} for name, kind in KINDS.items()}
CAMERAS = {"front": {"height": 48, "width": 64}}


def names():
    cluster, experiment, model, version, application = ROUTE.split("/")
    group = {"cluster_uuid": cluster, "experiment_tag": experiment}
    policy = {
        "model_id": model,
        "model_version": version,
        "application_tag": application,
    }
    return group, policy


def manifest(endpoint, engine=None, **changes):
    """What `tendon serve` reads; `changes` are fields of its one server."""
    group, policy = names()
    server = policy | {
        "server_id": "gpu-1",
        "fps": FPS,
        "endpoint": endpoint,
        "accept_unknown": True,
        "engine": {
            "kind": "synthetic",
            "actions": JOINTS,
            "cameras": CAMERAS,
            "chunk": ROWS,
            "latency": {"kind": "fixed", "ms": 2},
        }
        | (engine or {}),
    }
    return group | {"models": [server | changes]}


def robot_file(endpoint, client, folder, robot=None, **changes):
    """What `tendon robot` reads."""
    group, policy = names()
    return (
        group
        | policy
        | {
            "client_uuid": client,
            "endpoint": endpoint,
            "fps": FPS,
            "actions_per_chunk": ROWS,
            "boot_file": f"{folder}/{client}.boot",
            "metrics_hz": 20,
            "task": "wave to the camera",
            "robot": {"kind": "synthetic", "joints": JOINTS, "cameras": CAMERAS}
            | (robot or {}),
            "realtime": {"priority": 0, "wake_us": -1, "lock_memory": False},
        }
        | changes
    )


STATUS = {
    "model_id": "synthetic",
    "model_version": "v1",
    "server_id": "outside-1",
    "expected_cameras": {
        name: [c["height"], c["width"]] for name, c in CAMERAS.items()
    },
    "action_dim": len(KINDS),
    "max_actions_per_chunk": ROWS,
    "action_names": list(KINDS),
    "action_kinds": list(KINDS.values()),
    "state_names": list(KINDS),
    "state_kinds": list(KINDS.values()),
    "step_period_us": 1_000_000 // FPS,
    "capacity": 4,
}


def picture(height, width, codec="jpeg", mode="RGB"):
    out = io.BytesIO()
    image = PIL.Image.new("RGB", (width, height), (200, 80, 20))
    image.convert(mode).save(out, codec)
    return out.getvalue()


IMAGES = {name: picture(**size) for name, size in CAMERAS.items()}
