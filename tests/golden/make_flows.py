# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/flows/: checkpoints of SmolVLA, pi0 and pi0.5 as LeRobot saves
them, small and without their weights, and what LeRobot answers with them.

    build/venv-lerobot/bin/python tests/golden/make_flows.py

Weights, observations and noise are made from their names (hashed.py). Of the weights'
files only the headers are kept; src/engine/native/golden.c writes the rest. Each
observation is answered twice: free, and guided by what a robot has left to play
(LeRobot's real-time chunking).

pi05-trained takes promised rows as they are, which LeRobot 0.6.1 cannot: it is made
by itself with the sources of a newer one (0.6.2, commit 7427f318) first in
PYTHONPATH.
"""

import json
import math
import pathlib
import shutil
import struct
import sys
import tempfile

import hashed
import make_checkpoints
import numpy as np
import tiny
import torch
from huggingface_hub import save_torch_state_dict
from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies import factory, pi_gemma
from lerobot.policies.pi0 import modeling_pi0
from lerobot.policies.pi0.configuration_pi0 import PI0Config
from lerobot.policies.pi05 import modeling_pi05
from lerobot.policies.pi05.configuration_pi05 import PI05Config
from lerobot.policies.rtc.configuration_rtc import RTCConfig
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from lerobot.policies.utils import prepare_observation_for_inference
from transformers import (
    SmolVLMConfig,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
)

FOLDER = pathlib.Path(__file__).parent / "flows"
MODE = NormalizationMode
STATE = "observation.state"
VOCABULARY = 640
TASKS = ["pick the red cube", "Fold_the\ntowel, 12 times", ""]
NEWER = "mode" in RTCConfig.__dataclass_fields__
# What is left of the chunk before: rows, delay, horizon of each observation.
LEFT = [(5, 2, 4), (7, 0, 30), (2, 4, 3)]


def vlm(text, vision, scale):
    return {"text": text, "vision": vision, "scale": scale}


# Everything that these policies may have is in one of these.
CASES = {
    "smolvla-two-cameras": {
        "kind": "smolvla",
        "cameras": {"top": (36, 64), "wrist": (64, 64)},
        "dims": (6, 6),
        "modes": (MODE.IDENTITY, MODE.MEAN_STD, MODE.MEAN_STD),
        "vlm": vlm((64, 96, 4, 2, 16), (32, 48, 2, 4, 64, 16), 2),
        "options": {"chunk_size": 8, "num_steps": 4, "num_vlm_layers": 4}
        | {"resize_imgs_with_padding": (64, 64)},
    },
    "smolvla-odd": {
        "kind": "smolvla",
        "dtype": torch.bfloat16,
        "shards": 3,
        "cameras": {"top": (50, 40)},
        "dims": (4, 7),
        "modes": (MODE.MEAN_STD, MODE.MIN_MAX, MODE.MIN_MAX),
        "vlm": vlm((96, 80, 6, 3, 8), (48, 40, 1, 3, 96, 16), 2),
        "options": {"chunk_size": 9, "num_steps": 3, "num_vlm_layers": 5}
        | {"resize_imgs_with_padding": (64, 64), "empty_cameras": 1}
        | {"self_attn_every_n_layers": 3, "expert_width_multiplier": 0.5}
        | {"max_state_dim": 16, "max_action_dim": 8, "prefix_length": 40}
        | {"min_period": 0.01, "max_period": 2.0, "tokenizer_max_length": 24}
        | {"rtc_config": RTCConfig(prefix_attention_schedule="EXP")},
    },
    "smolvla-self": {
        "kind": "smolvla",
        "dtype": torch.float16,
        "cameras": {"top": (64, 64)},
        "dims": (3, 3),
        "modes": (MODE.IDENTITY, MODE.IDENTITY, MODE.MEAN_STD),
        "vlm": vlm((96, 64, 3, 1, 16), (32, 48, 1, 4, 64, 16), 2),
        "options": {"chunk_size": 8, "num_steps": 2, "num_vlm_layers": 2}
        | {"resize_imgs_with_padding": (64, 64), "attention_mode": "self_attn"}
        | {"rtc_config": RTCConfig(max_guidance_weight=2.0)},
    },
    "pi0-two-cameras": {
        "kind": "pi0",
        "cameras": {"top": (48, 64), "wrist": (42, 42)},
        "dims": (6, 6),
        "modes": (MODE.IDENTITY, MODE.MEAN_STD, MODE.MEAN_STD),
        "gemma": (64, 3, 96, 4, 48, 64, 16),
        "options": {"chunk_size": 8, "num_inference_steps": 4}
        | {"image_resolution": (42, 42)},
    },
    "pi0-relative": {
        "kind": "pi0",
        "dtype": torch.bfloat16,
        "cameras": {"top": (30, 56)},
        "dims": (6, 6),
        "modes": (MODE.IDENTITY, MODE.QUANTILES, MODE.QUANTILES),
        "gemma": (48, 2, 64, 2, 64, 48, 32),
        "options": {"chunk_size": 8, "num_inference_steps": 3}
        | {"image_resolution": (28, 28), "empty_cameras": 2}
        | {"use_relative_actions": True, "relative_exclude_joints": ["gripper"]}
        | {"action_feature_names": make_checkpoints.JOINTS}
        | {"max_state_dim": 8, "max_action_dim": 16, "tokenizer_max_length": 24}
        | {"rtc_config": RTCConfig(prefix_attention_schedule="ZEROS")},
    },
    "pi05-two-cameras": {
        "kind": "pi05",
        "cameras": {"top": (48, 64), "wrist": (42, 42)},
        "dims": (6, 6),
        "modes": (MODE.IDENTITY, MODE.QUANTILES, MODE.QUANTILES),
        "gemma": (64, 3, 96, 4, 48, 64, 16),
        "options": {"chunk_size": 8, "num_inference_steps": 4}
        | {"image_resolution": (42, 42)},
    },
    "pi05-half": {
        "kind": "pi05",
        "dtype": torch.float16,
        "cameras": {"top": (42, 42)},
        "dims": (5, 4),
        "modes": (MODE.IDENTITY, MODE.MEAN_STD, MODE.MEAN_STD),
        "gemma": (48, 2, 64, 2, 64, 48, 32),
        "options": {"chunk_size": 9, "num_inference_steps": 3}
        | {"image_resolution": (42, 42), "max_action_dim": 8}
        | {"tokenizer_max_length": 40}
        | {"rtc_config": RTCConfig(prefix_attention_schedule="ONES")},
    },
}
TRAINED = {
    "pi05-trained": {
        "kind": "pi05",
        "cameras": {"top": (42, 42)},
        "dims": (6, 6),
        "modes": (MODE.IDENTITY, MODE.QUANTILES, MODE.QUANTILES),
        "gemma": (64, 2, 96, 4, 48, 64, 16),
        "options": {"chunk_size": 8, "num_inference_steps": 4}
        | {"image_resolution": (42, 42)},
    },
}
if NEWER:  # no more rows can be promised than are left
    CASES, LEFT[2] = TRAINED, (4, 4, 3)
    CASES["pi05-trained"]["options"] |= {"rtc_training_max_delay": 4}
    CASES["pi05-trained"]["options"] |= {"rtc_config": RTCConfig(mode="trained")}


def make_backbone(case, folder):
    """SmolVLA's: a configuration and a processor."""
    hidden, between, heads, kv_heads, size = case["vlm"]["text"]
    width, raised, layers, vision_heads, side, patch = case["vlm"]["vision"]
    text = {"model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": hidden}
    text |= {"intermediate_size": between, "num_attention_heads": heads}
    text |= {"num_key_value_heads": kv_heads, "head_dim": size}
    text |= {"num_hidden_layers": 6, "rms_norm_eps": 1e-5}
    vision = {"hidden_size": width, "intermediate_size": raised, "image_size": side}
    vision |= {"num_hidden_layers": layers, "num_attention_heads": vision_heads}
    SmolVLMConfig(
        text_config=text,
        vision_config=vision | {"patch_size": patch},
        scale_factor=case["vlm"]["scale"],
        image_token_id=2,
        pad_token_id=0,
    ).save_pretrained(folder)
    SmolVLMProcessor(
        SmolVLMImageProcessor(),
        tiny.make_tokenizer(folder),
        SmolVLMVideoProcessor(),
    ).save_pretrained(folder)


def shrink_gemma(case):
    """As tests/lerobot/tiny.py does, to sizes of the case's."""
    width, depth, between, heads, expert_width, expert_between, size = case["gemma"]
    large = modeling_pi0.GemmaConfig(width, depth, between, heads, 1, size)
    small = modeling_pi0.GemmaConfig(
        expert_width, depth, expert_between, heads, 1, size
    )

    def smaller(model):
        def make(config):
            getattr(config, "text_config", config).vocab_size = VOCABULARY
            if vision := getattr(config, "vision_config", None):
                config.image_token_index = VOCABULARY - 1
                vision.hidden_size, vision.intermediate_size = 128, 48
                vision.num_hidden_layers, vision.projection_dim = 2, width
            return model(config=config)

        return make

    for module in (modeling_pi0, modeling_pi05):
        module.get_gemma_config = lambda variant: (
            large if variant == "gemma_2b" else small
        )
        for name in (
            "PaliGemmaForConditionalGenerationWithPiGemma",
            "PiGemmaForCausalLM",
        ):
            setattr(module, name, smaller(getattr(pi_gemma, name)))


def config_of(case, backbone):
    inputs = {STATE: PolicyFeature(FeatureType.STATE, (case["dims"][0],))}
    for name, size in case["cameras"].items():
        feature = PolicyFeature(FeatureType.VISUAL, (3, *size))
        inputs[f"observation.images.{name}"] = feature
    shared = {
        "input_features": inputs,
        "output_features": {
            "action": PolicyFeature(FeatureType.ACTION, (case["dims"][1],))
        },
        "normalization_mapping": dict(
            zip(("VISUAL", "STATE", "ACTION"), case["modes"], strict=True)
        ),
        "n_action_steps": case["options"]["chunk_size"],
        "device": "cpu",
        "push_to_hub": False,
    }
    if case["kind"] == "smolvla":
        return SmolVLAConfig(**shared, vlm_model_name=str(backbone), **case["options"])
    kind = {"pi0": PI0Config, "pi05": PI05Config}[case["kind"]]
    return kind(**shared, **case["options"])


def stats_of(config):
    stats = {}
    for key, feature in (config.input_features | config.output_features).items():
        visual = feature.type is FeatureType.VISUAL
        shape = (3, 1, 1) if visual else feature.shape
        seed = "images" if visual else key
        mean = hashed.floats(f"{seed}.mean", *shape) / 4 + (0.5 if visual else 0)
        std = 0.5 + hashed.floats(f"{seed}.std", *shape) / 4
        stats[key] = {"mean": mean, "std": std} | {
            "min": mean - 2 * std,
            "max": mean + 2 * std,
            "q01": mean - 2 * std,
            "q99": mean + 2 * std,
        }
    return stats


def headers_of(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return data[: 8 + size], json.loads(data[8 : 8 + size])


def save(case, made, folder, backbone, tokenizer):
    """Keeps headers in the place of weights; returns the tensors' names."""
    policy, before, after = made
    names = []
    with tempfile.TemporaryDirectory() as saved:
        for each in (policy, before, after):
            each.save_pretrained(saved)
        saved = pathlib.Path(saved)
        if case.get("dtype") or case.get("shards"):
            (saved / "model.safetensors").unlink()
            dtype = case.get("dtype", torch.float32)
            state = {k: v.to(dtype) for k, v in policy.state_dict().items()}
            whole = sum(v.nbytes for v in state.values())
            save_torch_state_dict(
                state, saved, max_shard_size=int(whole / case.get("shards", 0.5))
            )
        for path in sorted(saved.iterdir()):
            if path.suffix == ".safetensors" and path.name.startswith("model"):
                header, tensors = headers_of(path)
                names += [name for name in tensors if name != "__metadata__"]
                (folder / f"{path.name[:-12]}.header").write_bytes(header)
            elif path.is_file():
                shutil.copy(path, folder)
    hub = make_checkpoints.HUB[case["kind"]]
    for path in folder.glob("*.json"):  # no path of this machine's
        path.write_text(path.read_text().replace(str(backbone), hub))
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    if case["kind"] == "smolvla":
        shutil.copy(backbone / "config.json", folder / "vlm_config.json")
    return names


def fill(case, policy, names):
    """With the weights that their names make, as the file would hold them."""
    state = policy.state_dict()
    for name in names:
        values = torch.from_numpy(hashed.weights(name, *state[name].shape))
        if "dtype" in case:
            values = values.to(case["dtype"]).to(torch.float32)
        state[name].copy_(values)


def observe(config, name, index, before):
    obs = {}
    for key, feature in config.input_features.items():
        seed = f"{name}/{index}/{key}"
        if "empty_camera" in key:
            continue
        if feature.type is FeatureType.VISUAL:
            _, height, width = feature.shape
            obs[key] = hashed.pixels(seed, height, width, 3)
        else:
            obs[key] = hashed.floats(seed, *feature.shape)
    return before(
        prepare_observation_for_inference(obs, torch.device("cpu"), TASKS[index])
    )


def answer(policy, name, index, before, after):
    """Free and guided, in the robot's units."""
    config = policy.config
    batch = observe(config, name, index, before)
    size = (1, config.chunk_size, config.max_action_dim)
    noise = torch.from_numpy(hashed.floats(f"{name}/{index}/noise", *size)) * 2
    rtc = config.rtc_config or RTCConfig()
    rows, delay, horizon = LEFT[index]
    left = hashed.floats(
        f"{name}/{index}/left", 1, rows, config.action_feature.shape[0]
    )
    config.rtc_config = None
    policy.init_rtc_processor()
    free = after(policy.predict_action_chunk(dict(batch), noise=noise.clone()))
    config.rtc_config = rtc
    policy.init_rtc_processor()
    policy.model.rtc_processor = policy.rtc_processor
    guided = after(
        policy.predict_action_chunk(
            dict(batch),
            noise=noise.clone(),
            inference_delay=delay,
            prev_chunk_left_over=torch.from_numpy(left),
            execution_horizon=horizon,
        )
    )
    mask = batch["observation.language.attention_mask"][0]
    ids = batch["observation.language.tokens"][0][mask].tolist()
    return free[0].numpy(), guided[0].numpy(), ids


def make(name, case, work):
    folder, backbone = FOLDER / name, work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer = make_checkpoints.make_tokenizer(case["kind"])
    if case["kind"] == "smolvla":
        make_backbone(case, backbone)
    else:
        tiny.make_smolvlm(backbone)
        shrink_gemma(case)
    config = config_of(case, backbone)
    policy = factory.get_policy_class(case["kind"])(config).to(torch.float32).eval()
    with tiny.local_tokenizer(backbone):
        before, after = factory.make_pre_post_processors(
            config, dataset_stats=stats_of(config)
        )
    names = save(case, (policy, before, after), folder, backbone, tokenizer)
    fill(case, policy, names)
    for step in before.steps:
        if hasattr(step, "input_tokenizer"):
            step.input_tokenizer = tokenizer
    answers = [answer(policy, name, i, before, after) for i in range(len(TASKS))]
    expected = np.concatenate([part for each in answers for part in each[:2]])
    (folder / "expected.f32").write_bytes(expected.astype("<f4").tobytes())
    asked = [
        {"task": task, "ids": each[2]}
        | dict(zip(("rows", "delay", "horizon"), left, strict=True))
        for task, each, left in zip(TASKS, answers, LEFT, strict=True)
    ]
    (folder / "asked.json").write_text(json.dumps(asked) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    moved = np.abs(answers[0][0] - answers[0][1]).max()
    print(
        f"{name}: {expected.shape}, largest {np.abs(expected).max():.3f},"
        f" guided by {moved:.3f}, {size} bytes"
    )
    assert math.isfinite(expected.sum())


if __name__ == "__main__":
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        for name, case in CASES.items():
            if len(sys.argv) < 2 or name.startswith(sys.argv[1]):
                make(name, case, pathlib.Path(temporary))
