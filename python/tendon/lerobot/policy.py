# SPDX-License-Identifier: Apache-2.0
"""Any policy of LeRobot's as the model of a server.

    engine: {kind: worker, python: "tendon.lerobot.policy:Policy"}

with `pretrained_path` and `device` beside it. The checkpoint's own pipelines come
before and after the policy, and nothing between them and the robot: a frame arrives
as its camera gave it, and is never resized here.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from lerobot.policies.utils import prepare_observation_for_inference
from lerobot.processor import RelativeActionsProcessorStep, create_transition
from lerobot.utils.constants import OBS_IMAGES, OBS_STATE

from tendon import worker

from .checkpoint import Checkpoint, NoPolicy, load, names_of_dataset
from .history import History
from .route import short
from .sampling import Prefix, Sampler, sampler_of

Observation = dict[str, Any]
MOST_ON_GPU = 8

#: Policies that bring frames of any size to their own, and do without a camera.
RESIZES = {"pi0", "pi05", "smolvla"}
EMPTY = f"{OBS_IMAGES}.empty_camera_"


class Policy:
    batched = True

    def __init__(self, wanted: dict[str, Any] | None = None):
        wanted = worker.wanted if wanted is None else wanted
        path, device = wanted.get("pretrained_path", ""), wanted.get("device") or "cpu"
        self.checkpoint = load(path, device)
        self.sampler = sampler_of(self.checkpoint.policy)
        self.history = History(self.sampler.steps) if self.sampler.steps else None
        self.relative = relative_step(self.checkpoint.before)
        self.inputs = inputs_of(self.checkpoint)
        self.spec = describe(self.checkpoint, self.inputs, wanted)
        self.cut = self.spec["chunk"]
        most = wanted.get("max_batch") or (MOST_ON_GPU if "cuda" in device else 1)
        self.spec["max_batch"] = min(most, self.sampler.most)
        self.spec["tolerance"] = tolerance_of(self.sampler)
        self.spec["prefix"] = self.sampler.can_split

    def __call__(self, observations: list[Observation]) -> list[torch.Tensor]:
        batch = self._prepare(observations)
        if self.history:
            batch = self.history.join(batch, observations)
        return self._finish(self.sampler.chunk(batch, seeds_of(observations)))

    def prefix(self, observations: list[Observation]) -> list[Prefix]:
        """The first half: a handle for each, to make chunks from with decode()."""
        prefixes = self.sampler.prefix(self._prepare(observations), len(observations))
        if self.relative:
            states = self.relative.get_cached_state()
            for prefix, state in zip(prefixes, states, strict=True):
                prefix.state = state[None].clone()
        return prefixes

    def decode(self, pairs: list[tuple[Observation, Prefix]]) -> list[torch.Tensor]:
        """The second half, from what prefix() gave; of the observation only the seed
        is looked at. Those of one length run together."""
        answers: list[Any] = [None] * len(pairs)
        for length in {prefix.length for _, prefix in pairs}:
            places = [i for i, (_, each) in enumerate(pairs) if each.length == length]
            chunks = self._decode([pairs[i] for i in places])
            for i, chunk in zip(places, chunks, strict=True):
                answers[i] = chunk
        return answers

    def prefix_bytes(self, prefix: Prefix) -> int:
        return prefix.size_bytes

    def _decode(self, pairs: list[tuple[Observation, Prefix]]) -> list[torch.Tensor]:
        observations, prefixes = zip(*pairs, strict=True)
        if self.relative:
            states = torch.cat([each.state for each in prefixes])
            self.relative(create_transition(observation={OBS_STATE: states}))
        return self._finish(
            self.sampler.decode(list(prefixes), seeds_of(list(observations)))
        )

    def _prepare(self, observations: list[Observation]) -> dict[str, Any]:
        """What the policy is given: each as LeRobot makes it of a robot's observation,
        side by side, through the checkpoint's own pipeline."""
        each = [
            prepare_observation_for_inference(
                self._arrays(obs), torch.device("cpu"), obs["task"]
            )
            for obs in observations
        ]
        batch: dict[str, Any] = {
            key: torch.cat([one[key] for one in each])
            for key, _ in self.inputs.values()
        }
        return self.checkpoint.before(batch | {"task": [one["task"] for one in each]})

    def _arrays(self, obs: Observation) -> dict[str, np.ndarray]:
        """Copies: what comes through the ring is read-only and not for long."""
        missing = [name for name in self.inputs if name not in obs]
        if missing:
            raise KeyError(f"the policy wants {missing[0]}, the observation has none")
        return {key: np.array(obs[name]) for name, (key, _) in self.inputs.items()}

    def _finish(self, chunk: torch.Tensor) -> list[torch.Tensor]:
        return list(self.checkpoint.after(chunk)[:, : self.cut])


def seeds_of(observations: Any) -> list[int]:
    return [obs["seed"] for obs in observations]


def relative_step(pipeline: Any) -> Any:
    """The step that remembers the state which its mate in the other pipeline adds."""
    steps = (
        step
        for step in pipeline.steps
        if isinstance(step, RelativeActionsProcessorStep)
    )
    return next((step for step in steps if step.enabled), None)


class Input(NamedTuple):
    key: str  # what LeRobot calls it, before the pipeline renames
    shape: tuple[int, ...]


def inputs_of(checkpoint: Checkpoint) -> dict[str, Input]:
    """What the policy looks at, by the name that it has in an observation of ours."""
    renamed = {
        new: old
        for step in checkpoint.before.steps
        for old, new in getattr(step, "rename_map", {}).items()
    }
    inputs = {}
    for key, feature in checkpoint.config.input_features.items():
        if not key.startswith(EMPTY):
            key = renamed.get(key, key)
            inputs[short(key)] = Input(key, tuple(feature.shape))
    return inputs


def describe(
    checkpoint: Checkpoint, inputs: dict[str, Input], wanted: dict[str, Any]
) -> dict[str, Any]:
    """What the model is, as far as the checkpoint says; `inputs` loses the cameras
    that the manifest leaves out, where the policy can do without."""
    config = checkpoint.config
    names = names_of_dataset(checkpoint.folder)
    actions = getattr(config, "action_feature_names", None) or names.get("action")
    spec: dict[str, Any] = {
        "cameras": cameras_of(config, inputs, wanted.get("cameras") or {}),
        "chunk": rows_of(config, wanted.get("chunk") or 0),
    }
    channels = [
        ("actions", config.action_feature, actions, "action"),
        ("states", config.robot_state_feature, names.get(OBS_STATE), "state"),
    ]
    for key, feature, known, word in channels:
        if feature:
            count = feature.shape[0]
            spec[key] = channels_of(key, count, wanted.get(key), known, word)
    if spec.get("states") and not wanted.get("states"):
        if len(spec["states"]) == len(spec["actions"]) and OBS_STATE not in names:
            spec["states"] = spec["actions"]
    return spec


def channels_of(
    key: str, count: int, wanted: Any, known: list[str] | None, word: str
) -> Any:
    """The manifest names them, else the dataset; else they have numbers."""
    if wanted and len(wanted) != count:
        raise NoPolicy(
            f"{key}: the manifest names {len(wanted)}, the policy has {count}"
        )
    if wanted:
        return wanted
    if known and len(known) == count:
        return known
    return [f"{word}_{i}" for i in range(count)]


def cameras_of(
    config: Any, inputs: dict[str, Input], wanted: dict[str, Any]
) -> dict[str, Any]:
    own = {
        name: each.shape[1:] for name, each in inputs.items() if len(each.shape) == 3
    }
    if not wanted or config.type not in RESIZES or not set(wanted) <= set(own):
        return own
    for name in set(own) - set(wanted):
        del inputs[name]
    return wanted


def rows_of(config: Any, wanted: int) -> int:
    """Most rows of a chunk: the policy's, or fewer if that is wanted."""
    rows = getattr(config, "chunk_size", None) or config.n_action_steps
    return min(wanted, rows) if wanted else rows


def tolerance_of(sampler: Sampler) -> float:
    parts = sampler.policy.parameters()
    exact = all(part.dtype == torch.float32 for part in parts)
    return sampler.tolerance if exact else 1e-2
