# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/checkpoints/: folders that LeRobot saved, and what its own
pipelines make of a few observations and actions. With LeRobot's Python:

    build/venv-lerobot/bin/python tests/golden/make_checkpoints.py

Weights are a few tensors of the policy's own, so that the folders stay small; whole
checkpoints are tested where LeRobot is (tests/lerobot/test_checkpoint.py).
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "lerobot")]

import numpy as np
import tiny
import torch
from huggingface_hub import save_torch_state_dict
from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies import factory
from lerobot.policies.utils import prepare_observation_for_inference
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

FOLDER = HERE / "checkpoints"
DTYPES = {
    "act": torch.float32,
    "smolvla": torch.float32,
    "pi0": torch.bfloat16,
    "pi05": torch.float16,
}
HUB = {
    "smolvla": "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
    "pi0": "google/paligemma-3b-pt-224",
    "pi05": "google/paligemma-3b-pt-224",
}
TASKS = [
    "pick the red cube",
    " \t\u3000Fold_the\ntowel, 12 times\u00a0\n",
    "Öffne die Schublade und lege den Würfel hinein – aber langsam! " * 4,
    "",
]
BYTES = [0, 1, 100, 255]  # of pixels that are looked at
GRIPPER = ["gripper"]
JOINTS = [*tiny.JOINTS[:-1], "Gripper.pos"]
MODE = NormalizationMode
ENV = "observation.environment_state"

OPTIONS = {
    "act": {
        "normalization_mapping": {
            "VISUAL": MODE.MEAN_STD,
            "STATE": MODE.MEAN_STD,
            "ENV": MODE.MIN_MAX,
            "ACTION": MODE.MEAN_STD,
        }
    },
    "smolvla": {
        "normalization_mapping": {
            "VISUAL": MODE.IDENTITY,
            "STATE": MODE.MIN_MAX,
            "ACTION": MODE.MIN_MAX,
        },
        "tokenizer_max_length": 16,
        "empty_cameras": 1,
    },
    "pi0": {
        "normalization_mapping": {
            "VISUAL": MODE.QUANTILES,
            "STATE": MODE.QUANTILE10,
            "ACTION": MODE.QUANTILE10,
        },
        "use_relative_actions": True,
        "relative_exclude_joints": GRIPPER,
        "action_feature_names": JOINTS,
        "tokenizer_max_length": 16,
    },
    "pi05": {
        "use_relative_actions": True,
        "relative_exclude_joints": GRIPPER,
        "action_feature_names": JOINTS,
        "tokenizer_max_length": 48,
    },
}
RENAMES = {"act": {"observation.images.cam_high": "observation.images.front"}}


def make_tokenizer(kind):
    """As SmolVLM's is made, or PaliGemma's, of a few hundred tokens."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=kind != "smolvla"))
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    if kind == "smolvla":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        special += [f"<0x{byte:02X}>" for byte in range(256)]
        alphabet = []
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=alphabet
    )
    states = [" ".join(map(str, range(i, i + 9))) for i in range(0, 256, 9)]
    tokenizer.train_from_iterator(TASKS + states, trainer)
    if kind != "smolvla":
        tokenizer.post_processor = processors.TemplateProcessing(
            "<bos> $A", special_tokens=[("<bos>", 2)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")


def make_stats():
    """One channel never moved, and one hardly."""
    stats = tiny.stats()
    stats[ENV] = {
        "min": torch.tensor([-1.0, 0.0, 5.0]),
        "max": torch.tensor([1.0, 0.5, 5.0]),
    }
    for each in stats.values():
        if "mean" in each:
            each["q10"], each["q90"] = each["mean"] - each["std"], each["mean"]
    for key in ("observation.state", "action"):
        each = stats[key]
        for stat in ("min", "max", "q01", "q99", "q10", "q90"):
            each[stat][1] = 0.25
        each["std"][1] = 0
        each["std"][2] = 3e-8
    return stats


def make_policy(kind, work):
    config = tiny.config_of(kind, work / "backbone", **OPTIONS[kind])
    if kind == "act":
        config.input_features[ENV] = PolicyFeature(FeatureType.ENV, (3,))
    torch.manual_seed(0)
    policy = factory.get_policy_class(kind)(config)
    with tiny.local_tokenizer(work / "backbone"):
        before, after = factory.make_pre_post_processors(
            config, dataset_stats=make_stats()
        )
    before.steps[0].rename_map = RENAMES.get(kind, {})
    return policy, before, after


def save(kind, folder, made, tokenizer, work):
    policy, before, after = made
    policy.save_pretrained(folder)
    before.save_pretrained(folder)
    after.save_pretrained(folder)
    if tokenizer:
        tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    some = {
        key: value.to(DTYPES[kind]).contiguous()
        for key, value in policy.state_dict().items()
        if value.is_floating_point() and 0 < value.numel() <= 512
    }
    some = dict(list(some.items())[-24:])
    (folder / "model.safetensors").unlink()
    whole = sum(value.nbytes for value in some.values())
    save_torch_state_dict(
        some, folder, max_shard_size=whole // 3 if kind == "smolvla" else 2 * whole
    )
    for path in folder.glob("*.json"):  # no path of this machine's
        text = path.read_text().replace(str(work / "backbone"), HUB.get(kind, ""))
        path.write_text(text)


def frame(size):
    """Every byte, in every row."""
    row = np.resize(np.arange(256, dtype=np.uint8), size[0] * size[1])
    return np.repeat(row.reshape(*size, 1), 3, axis=2)


def observe(kind, number, tokenizer, before):
    random = np.random.default_rng(number)
    state = random.normal(0, 0.6, len(JOINTS)).astype(np.float32)
    arrays = {"observation.state": state}
    if kind == "act":
        arrays[ENV] = random.normal(0, 1, 3).astype(np.float32)
    back = {new: old for old, new in before.steps[0].rename_map.items()}
    for name, size in tiny.CAMERAS.items():
        key = f"observation.images.{name}"
        arrays[back.get(key, key)] = frame(size)
    given = {key: value.tolist() for key, value in arrays.items() if value.ndim == 1}
    batch = before(
        prepare_observation_for_inference(
            dict(arrays), torch.device("cpu"), TASKS[number]
        )
    )
    taken = {key: batch[key][0].tolist() for key in given}
    pixels = {
        name: batch[f"observation.images.{name}"][0].flatten(1)[:, BYTES].T.tolist()
        for name in tiny.CAMERAS
    }
    ids = None
    if tokenizer:
        mask = batch["observation.language.attention_mask"][0]
        ids = batch["observation.language.tokens"][0][mask].tolist()
    return {"given": given, "task": TASKS[number], "taken": taken, "ids": ids}, pixels


def answer(number, after):
    torch.manual_seed(number)
    chunk = torch.randn(1, 3, len(JOINTS))
    return {"policy": chunk[0].tolist(), "robot": after(chunk)[0].tolist()}


def make(kind, folder, work):
    tokenizer = None if kind == "act" else make_tokenizer(kind)
    made = make_policy(kind, work)
    save(kind, folder, made, tokenizer, work)
    _, before, after = made
    for step in before.steps:
        if hasattr(step, "input_tokenizer"):
            step.input_tokenizer = tokenizer
    samples = []
    for number in range(len(TASKS)):
        sample, pixels = observe(kind, number, tokenizer, before)
        samples.append(sample | {"actions": answer(number, after)})
    expected = {"samples": samples, "bytes": BYTES, "pixels": pixels}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def main():
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        tiny.make_smolvlm(work / "backbone")
        for kind in OPTIONS:
            make(kind, FOLDER / kind, work)
            size = sum(path.stat().st_size for path in (FOLDER / kind).iterdir())
            print(f"{kind}: {size} bytes")


if __name__ == "__main__":
    main()
