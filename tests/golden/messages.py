# SPDX-License-Identifier: Apache-2.0
"""One full and one least message of each kind, as Python and numpy see them.

Fields stand in the order in which Tendon writes them. make.py turns these into
tests/golden/*.msgpack; src/wire/golden.c holds the same values in C.
"""

import numpy as np


def tensor(dtype, shape, values, age_us=None):
    """`values` as a tensor on the wire; bf16 comes as its 16 bits."""
    array = np.array(values, np.uint16 if dtype == "bf16" else np.dtype(dtype))
    age = {} if age_us is None else {"age_us": age_us}
    data = array.reshape(shape).tobytes()
    return {"dtype": dtype, "shape": list(shape), **age, "data": data}


OBS = {
    "full": {
        "seq_id": 2**40 + 7,
        "boot": 3,
        "schema": 1,
        "client_uuid": "robot-1",
        "route": 2,
        "episode": 5,
        "cursor": 70000,
        "urgency": 0.25,
        "priority": 0,
        "steps_remaining": 12,
        "must_go": True,
        "budget_us": -1500,
        "again": 41,
        "anew": True,
        "task": "pick up the café cup",
        "metadata": {"operator": "Ada", "note": ""},
        "rtc": {
            "base_chunk": 9,
            "delay": 4,
            "prefix": tensor("<f4", (2, 3), [0, 1, 2, 3, 4, 5]),
        },
        "state": tensor("<f4", (6,), [0, 0.5, -1.25, 3, 1e-3, -1e6], 800),
        "tensors": {
            "force.left": tensor("<f8", (1, 2), [0.1, -9.81], 1500),
            "half": tensor("<f2", (2,), [0.5, -2]),
            "brain": tensor("bf16", (2,), [0x3F80, 0xC000]),
            "u8": tensor("|u1", (2,), [0, 255]),
            "i8": tensor("|i1", (2,), [-128, 127]),
            "i16": tensor("<i2", (2,), [-32768, 32767]),
            "i32": tensor("<i4", (2,), [-(2**31), 2**31 - 1]),
            "i64": tensor("<i8", (2,), [-(2**63), 2**63 - 1]),
            "mask": tensor("|b1", (2, 2), [True, False, False, True]),
            "none": tensor("<f4", (0, 7), []),
        },
        "images": {
            "left": b"\xff\xd8" + bytes(range(256)) * 3,
            "right": {"codec": "png", "shape": [480, 640, 3], "data": b"\x89PNG"},
            "depth": {"codec": "raw", "shape": [2, 3, 1], "data": b"abcdef"},
        },
    },
    "least": {
        "seq_id": 0,
        "schema": 1,
        "client_uuid": "r",
        "state": tensor("<f4", (1,), [0]),
    },
}

ACTION = {
    "full": {
        "response_to_seq_id": 2**40 + 7,
        "boot": 3,
        "schema": 1,
        "route": 2,
        "episode": 5,
        "server_id": "gpu-0",
        "chunk_id": 10,
        "continues": 9,
        "inference_time_ms": 38.5,
        "queue_time_ms": 1.25,
        "text": "approach, then grasp",
        "superseded": [5, 2**32],
        "actions": tensor("<f4", (2, 3), [0, 0.5, -1.25, 3, 1e-3, -1e6]),
        "results": {"value": tensor("<f8", (1,), [0.75])},
    },
    "verdict": {
        "response_to_seq_id": 8,
        "schema": 1,
        "kind": "verdict",
        "inference_time_ms": 12.0,
        "unsafe": True,
        "text": "a hand is in the way",
    },
    "error": {
        "response_to_seq_id": 8,
        "schema": 1,
        "inference_time_ms": 0.0,
        "error": {"code": "FORMAT", "text": "obs: state is missing"},
    },
    "least": {
        "response_to_seq_id": 0,
        "schema": 1,
        "inference_time_ms": 0.0,
        "actions": tensor("<f4", (1, 1), [0]),
    },
}

STATUS = {
    "full": {
        "schema": 1,
        "model_id": "smolvla",
        "model_version": "v1.2",
        "server_id": "gpu-0",
        "server_boot": 4,
        "state": "ready",
        "expected_cameras": {"left": [96, 128], "right": [480, 640]},
        "action_dim": 3,
        "max_actions_per_chunk": 50,
        "observation_features": {
            "state": {"dtype": "<f4", "shape": [6]},
            "force.left": {"dtype": "<f8", "shape": [1, 2]},
        },
        "action_names": ["shoulder.pos", "elbow.pos", "gripper.pos"],
        "action_kinds": ["linear", "angle", "hold"],
        "state_names": ["q.x", "q.y", "q.z", "q.w"],
        "state_kinds": ["quaternion"] * 4,
        "step_period_us": 33333,
        "rtc": True,
        "capacity": 32,
        "clients": 4,
        "load": 0.125,
        "attach": {"accepted": False, "reason": "full: 32 of 32 clients"},
    },
    "least": {
        "schema": 1,
        "model_id": "m",
        "model_version": "1",
        "state": "warming",
        "expected_cameras": {},
        "action_dim": 0,
        "max_actions_per_chunk": 0,
        "observation_features": {},
    },
}

ATTACH = {
    "full": {
        "schema": 1,
        "client_uuid": "robot-1",
        "server_id": "gpu-0",
        "server_boot": 12,
        "boot": 3,
        "route": 2,
        "leave": True,
    },
    "least": {"schema": 1, "client_uuid": "r", "server_id": "s"},
}

RESET = {
    "full": {
        "schema": 1,
        "client_uuid": "robot-1",
        "boot": 3,
        "route": 2,
        "episode": 6,
        "reason": "operator",
    },
    "least": {"schema": 1, "client_uuid": "r", "episode": 0},
}

GRANT = {
    "full": {
        "schema": 1,
        "client_uuid": "robot-1",
        "generation": 7,
        "components": {
            "system1": {
                "server_id": "gpu-0",
                "standby": "gpu-1",
                "model_id": "smolvla",
                "model_version": "v1.2",
                "application_tag": "pick",
                "route": 2,
                "rate_hz": 12.5,
                "phase_us": 4000,
                "deadline_us": 80000,
            },
            "system2": {"server_id": "gpu-2", "route": 0},
        },
    },
    "least": {"schema": 1, "client_uuid": "r", "generation": 0, "components": {}},
}

METRICS = {
    "full": {
        "schema": 1,
        "source": "robot-1",
        "boot": 3,
        "uptime_us": 60000000,
        "state": "STREAMING",
        "counters": {"obs.sent": 1800, "chunks.stale": 0},
        "gauges": {"buffer.steps": 31.0, "load": 0.1},
        "quantiles": {
            "round_trip_us": {
                "count": 1799,
                "min": 310.0,
                "max": 9120.5,
                "mean": 402.25,
                "p50": 388.0,
                "p95": 512.0,
                "p99": 1024.0,
                "p999": 8192.0,
            },
        },
    },
    "least": {"schema": 1, "source": "r"},
}

KINDS = {
    "obs": OBS,
    "action": ACTION,
    "status": STATUS,
    "attach": ATTACH,
    "reset": RESET,
    "grant": GRANT,
    "metrics": METRICS,
}

# In these kinds the floats are of 32 bits, in the others of 64.
SINGLE_FLOAT = {"obs", "action", "status"}
