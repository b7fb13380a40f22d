# SPDX-License-Identifier: Apache-2.0
"""`tendon checkpoint show` and LeRobot say the same of whole checkpoints."""

import json
import os
import subprocess

import pytest
from lerobot.configs import PreTrainedConfig
from safetensors import safe_open
from tiny import KINDS

pytestmark = pytest.mark.skipif(
    "TENDON_BIN" not in os.environ, reason="needs the program, in TENDON_BIN"
)


def show(folder):
    return subprocess.run(
        [os.environ["TENDON_BIN"], "checkpoint", "show", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "diffusion"])
def test_a_checkpoint_is_what_lerobot_says_it_is(kind, checkpoint):
    folder = checkpoint(kind)
    done = show(folder)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    config = PreTrainedConfig.from_pretrained(folder)
    assert shown["type"] == config.type
    assert shown["chunk_rows"] == config.chunk_size
    assert shown["state_dim"] == config.robot_state_feature.shape[0]
    assert shown["action_dim"] == config.action_feature.shape[0]
    assert {
        camera["key"]: (3, camera["height"], camera["width"])
        for camera in shown["cameras"]
    } == {key: feature.shape for key, feature in config.image_features.items()}
    with safe_open(folder / "model.safetensors", "pt") as file:
        slices = [file.get_tensor(key) for key in file.keys()]
    floats = [each.numel() for each in slices if each.is_floating_point()]
    assert shown["weights"]["tensors"] == len(slices)
    assert shown["weights"]["parameters"] == sum(floats)


def test_another_policy_is_refused_by_its_name(checkpoint):
    done = show(checkpoint("diffusion"))
    assert done.returncode == 1
    assert "config.json: type: is diffusion; known are act" in done.stderr
