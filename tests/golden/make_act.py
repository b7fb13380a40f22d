# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/act/: checkpoints of ACT as LeRobot saves them, without their
weights, and what LeRobot answers with them.

    build/venv-lerobot/bin/python tests/golden/make_act.py

Weights and observations are made from their names (hashed.py). Of model.safetensors
only the header is kept; src/engine/native/golden.c writes the rest.
"""

import pathlib
import shutil
import struct
import tempfile

import hashed
import numpy as np
import torch
from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors

FOLDER = pathlib.Path(__file__).parent / "act"
OBSERVATIONS = 3
STATE = "observation.state"
ENV = "observation.environment_state"
MIN_MAX = NormalizationMode.MIN_MAX
MEAN_STD = NormalizationMode.MEAN_STD
IDENTITY = NormalizationMode.IDENTITY

# Everything that an ACT may have is in one of these.
CASES = {
    "two-cameras": {
        "cameras": {"top": (64, 96), "wrist": (64, 96)},
        "state": 6,
        "action": 6,
        "modes": (MEAN_STD, MEAN_STD, MEAN_STD),
        "options": {
            "chunk_size": 10,
            "n_action_steps": 10,
            "dim_model": 32,
            "n_heads": 4,
        }
        | {"dim_feedforward": 64, "n_encoder_layers": 2, "n_vae_encoder_layers": 1},
    },
    "norms-first": {
        "cameras": {"front": (96, 64), "side": (48, 80)},
        "state": 4,
        "env": 5,
        "action": 3,
        "modes": (MEAN_STD, MIN_MAX, MIN_MAX),
        "options": {"chunk_size": 7, "n_action_steps": 7, "dim_model": 48, "n_heads": 3}
        | {"dim_feedforward": 72, "n_encoder_layers": 2, "n_decoder_layers": 3}
        | {"pre_norm": True, "feedforward_activation": "gelu", "use_vae": False}
        | {"vision_backbone": "resnet50", "replace_final_stride_with_dilation": True},
    },
    "no-camera": {
        "cameras": {},
        "state": 5,
        "env": 9,
        "action": 5,
        "modes": (IDENTITY, IDENTITY, MEAN_STD),
        "options": {
            "chunk_size": 33,
            "n_action_steps": 33,
            "dim_model": 40,
            "n_heads": 5,
        }
        | {"dim_feedforward": 24, "n_encoder_layers": 1, "n_decoder_layers": 2}
        | {"use_vae": False},
    },
}


def config_of(case: dict) -> ACTConfig:
    inputs = {STATE: PolicyFeature(FeatureType.STATE, (case["state"],))}
    if "env" in case:
        inputs[ENV] = PolicyFeature(FeatureType.ENV, (case["env"],))
    for name, (height, width) in case["cameras"].items():
        feature = PolicyFeature(FeatureType.VISUAL, (3, height, width))
        inputs[f"observation.images.{name}"] = feature
    names = ("VISUAL", "STATE", "ACTION")
    return ACTConfig(
        input_features=inputs,
        output_features={
            "action": PolicyFeature(FeatureType.ACTION, (case["action"],))
        },
        normalization_mapping=dict(zip(names, case["modes"], strict=True)),
        pretrained_backbone_weights=None,
        device="cpu",
        push_to_hub=False,
        **case["options"],
    )


def stats_of(config: ACTConfig) -> dict:
    """Of the cameras all the same, as LeRobot's own training has them."""
    stats = {}
    for key, feature in (config.input_features | config.output_features).items():
        visual = feature.type is FeatureType.VISUAL
        count = 3 if visual else feature.shape[0]
        shape = (3, 1, 1) if visual else (count,)
        seed = "images" if visual else key
        mean = hashed.floats(f"{seed}.mean", *shape) / 4 + (0.5 if visual else 0)
        std = 0.5 + hashed.floats(f"{seed}.std", *shape) / 4
        stats[key] = {
            "mean": mean.astype(np.float32),
            "std": std.astype(np.float32),
            "min": (mean - 2 * std).astype(np.float32),
            "max": (mean + 2 * std).astype(np.float32),
        }
    return stats


def observe(config: ACTConfig, case: str, index: int) -> dict:
    obs = {}
    for key, feature in config.input_features.items():
        name = f"{case}/{index}/{key}"
        if feature.type is FeatureType.VISUAL:
            _, height, width = feature.shape
            frame = torch.from_numpy(hashed.pixels(name, height, width, 3))
            obs[key] = frame.permute(2, 0, 1).type(torch.float32) / 255
        else:
            obs[key] = torch.from_numpy(hashed.floats(name, *feature.shape))
    return obs


def make(name: str, case: dict, folder: pathlib.Path) -> None:
    config = config_of(case)
    policy = ACTPolicy(config)
    for key, tensor in policy.state_dict().items():
        tensor.copy_(torch.from_numpy(hashed.weights(key, *tensor.shape)))
    before, after = make_act_pre_post_processors(config, stats_of(config))
    with tempfile.TemporaryDirectory() as saved:
        for each in (policy, before, after):
            each.save_pretrained(saved)
        for path in pathlib.Path(saved).iterdir():
            if path.name == "model.safetensors":
                data = path.read_bytes()
                (size,) = struct.unpack("<Q", data[:8])
                (folder / "model.header").write_bytes(data[: 8 + size])
            else:
                shutil.copy(path, folder)
    answers = [
        after(policy.predict_action_chunk(before(observe(config, name, i))))
        for i in range(OBSERVATIONS)
    ]
    expected = np.concatenate([answer.numpy() for answer in answers])
    (folder / "expected.f32").write_bytes(expected.astype("<f4").tobytes())
    print(f"{name}: {expected.shape}, largest {np.abs(expected).max():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, case in CASES.items():
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        (FOLDER / name).mkdir(parents=True)
        make(name, case, FOLDER / name)
