# SPDX-License-Identifier: Apache-2.0
"""A checkpoint folder of LeRobot's: its policy and its own two pipelines."""

import json
import pathlib
import re
from typing import Any, NamedTuple

import torch
from huggingface_hub import snapshot_download
from lerobot.configs import PreTrainedConfig
from lerobot.policies import get_policy_class, make_pre_post_processors
from lerobot.utils.import_utils import register_third_party_plugins
from safetensors import safe_open

CONFIG, WEIGHTS = "config.json", "model.safetensors"
BEFORE, AFTER = "policy_preprocessor.json", "policy_postprocessor.json"


class NoPolicy(ValueError):
    """What was named is no checkpoint that can be served."""


class Checkpoint(NamedTuple):
    folder: pathlib.Path
    config: Any  # lerobot.configs.PreTrainedConfig
    policy: Any  # lerobot.policies.PreTrainedPolicy
    before: Any  # observation -> what the policy is given
    after: Any  # what the policy gives -> action


def load(path: str, device: str) -> Checkpoint:
    """Loads once; a folder, or the name of one on the hub (`user/name`)."""
    folder = find(path)
    register_third_party_plugins()
    config = read_config(folder)
    config.device = str(torch.device(device))
    policy = get_policy_class(config.type).from_pretrained(str(folder), config=config)
    check_weights(policy, folder / WEIGHTS)
    before, after = make_pre_post_processors(
        config,
        pretrained_path=str(folder),
        preprocessor_overrides=on_device(folder / BEFORE, config.device),
    )
    return Checkpoint(folder, config, policy.to(config.device).eval(), before, after)


def find(path: str) -> pathlib.Path:
    if not path:
        raise NoPolicy("no checkpoint is named: pretrained_path is empty")
    folder = pathlib.Path(path).expanduser()
    if not folder.is_dir():
        if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", path):
            raise NoPolicy(f"{path} is no policy: there is no such folder")
        folder = pathlib.Path(snapshot_download(path))
    for name in (CONFIG, WEIGHTS, BEFORE, AFTER):
        if not (folder / name).is_file():
            raise NoPolicy(f"{path} is no policy: it has no {name}")
    return folder


def read_config(folder: pathlib.Path) -> Any:
    try:
        return PreTrainedConfig.from_pretrained(folder)
    except Exception as error:
        raise NoPolicy(f"{folder / CONFIG} is of no policy: {error}") from error


def on_device(pipeline: pathlib.Path, device: str) -> dict[str, Any]:
    """The pipeline's own step that moves to a device moves to ours."""
    steps = json.loads(pipeline.read_text())["steps"]
    if any(step.get("registry_name") == "device_processor" for step in steps):
        return {"device_processor": {"device": device}}
    return {}


def check_weights(policy: Any, weights: pathlib.Path) -> None:
    """Some policies load what fits and go on without the rest: a robot would be
    driven by noise."""
    with safe_open(weights, "pt") as file:
        shapes = {bare(key): file.get_slice(key).get_shape() for key in file.keys()}
    state = policy.state_dict()
    found = {
        value.data_ptr()
        for key, value in state.items()
        if shapes.get(bare(key)) == list(value.shape)
    }
    lost = [key for key, value in state.items() if value.data_ptr() not in found]
    lost = [key for key in lost if state[key].numel()]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise NoPolicy(f"{weights} has no weights that fit {lost[0]}{more}")


def bare(key: str) -> str:
    return key.removeprefix("model.")


def names_of_dataset(folder: pathlib.Path) -> dict[str, list[str]]:
    """Channel names, in order, of the dataset that the policy was trained on: by
    feature, as far as that dataset is on this machine."""
    try:
        dataset = json.loads((folder / "train_config.json").read_text())["dataset"]
        from lerobot.utils.constants import HF_LEROBOT_HOME

        root = dataset.get("root") or HF_LEROBOT_HOME / dataset["repo_id"]
        info = json.loads((pathlib.Path(root) / "meta/info.json").read_text())
        features = info["features"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {
        key: feature["names"]
        for key, feature in features.items()
        if isinstance(feature.get("names"), list)
    }
