# SPDX-License-Identifier: Apache-2.0
"""Policies of LeRobot's, small enough to run anywhere. Nothing comes from the hub:
backbones, tokenizers and weights are made here.

As the worker's module its Policy is Tendon's own, over the same small backbones.
"""

import contextlib
import functools
import os
import pathlib
import re
import signal
import sys
import time

import numpy as np
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies import factory
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.pi0 import modeling_pi0, processor_pi0
from lerobot.policies.pi0.configuration_pi0 import PI0Config
from lerobot.policies.pi05 import modeling_pi05, processor_pi05
from lerobot.policies.pi05.configuration_pi05 import PI05Config
from lerobot.policies.smolvla.configuration_smolvla import SmolVLAConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    SmolVLMConfig,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from tendon.lerobot.policy import Policy as Served

FLOW = ("smolvla", "pi0", "pi05")
KINDS = ("act", "diffusion", *FLOW)
JOINTS = [f"joint_{i}.pos" for i in range(6)]
CAMERAS = {"front": (64, 96), "wrist": (64, 96)}
ROWS = 8
WIDTH = 32  # of the small backbones
WORDS = "pick place the red blue cube fold towel Task State Action : ; , -".split()
SPECIAL = ["<pad>", "<unk>", "<image>", "<fake_token_around_image>", "<global-img>"]
SPECIAL += ["<end_of_utterance>", "<video>"]


def shrink():
    """The variants that pi0 and pi0.5 know have billions of weights."""
    small = modeling_pi0.GemmaConfig(WIDTH, 2, 64, 4, 1, 8)
    for module in (modeling_pi0, modeling_pi05):
        module.get_gemma_config = lambda variant: small
        module.PaliGemmaForConditionalGenerationWithPiGemma = functools.partial(
            _small, module.PaliGemmaForConditionalGenerationWithPiGemma
        )
        module.PiGemmaForCausalLM = functools.partial(_small, module.PiGemmaForCausalLM)


def _small(model, config):
    text = getattr(config, "text_config", config)
    text.vocab_size = 512
    if vision := getattr(config, "vision_config", None):
        config.image_token_index = 511
        vision.hidden_size, vision.intermediate_size = 32, 32
        vision.num_hidden_layers, vision.projection_dim = 1, WIDTH
    return model(config=config)


shrink()


class Policy(Served):
    """Tells the seeds it was given, where somebody wants to know."""

    def __call__(self, observations):
        tell_seeds(observations)
        return super().__call__(observations)

    def decode(self, pairs):
        tell_seeds([obs for obs, _ in pairs])
        return super().decode(pairs)


def tell_seeds(observations):
    if path := os.environ.get("TINY_SEEDS"):
        with open(path, "a") as file:
            for obs in observations:
                print(obs["client"], obs["seq"], obs["seed"], file=file)


class Naughty(Policy):
    """Does what the task says."""

    def __call__(self, observations):
        for obs in observations:
            if obs["task"] == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if obs["task"] == "hang":
                time.sleep(3600)
            if obs["task"] == "leak":
                self.kept = np.ones((4096, 2**20))  # 32 GB
        return super().__call__(observations)


def make_tokenizer(folder):
    words = SPECIAL + WORDS + [str(i) for i in range(257)] + ["\n"]
    model = models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        extra_special_tokens={
            "image_token": "<image>",
            "fake_image_token": "<fake_token_around_image>",
            "global_image_token": "<global-img>",
        },
    )
    made.save_pretrained(folder)
    return made


def make_smolvlm(folder):
    """The backbone of SmolVLA: a configuration and a processor."""
    text = {
        "model_type": "llama",
        "vocab_size": 512,
        "hidden_size": WIDTH,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
    }
    SmolVLMConfig(
        text_config=text,
        vision_config=vision,
        scale_factor=2,
        image_token_id=2,
        pad_token_id=0,
    ).save_pretrained(folder)
    SmolVLMProcessor(
        SmolVLMImageProcessor(), make_tokenizer(folder), SmolVLMVideoProcessor()
    ).save_pretrained(folder)


def features():
    joints = PolicyFeature(FeatureType.STATE, (len(JOINTS),))
    frames = {
        f"observation.images.{name}": PolicyFeature(FeatureType.VISUAL, (3, *size))
        for name, size in CAMERAS.items()
    }
    actions = PolicyFeature(FeatureType.ACTION, (len(JOINTS),))
    return {
        "input_features": {"observation.state": joints} | frames,
        "output_features": {"action": actions},
        "device": "cpu",
        "n_action_steps": ROWS,
    }


def config_of(kind, backbone, **more):
    if kind == "act":
        return ACTConfig(
            **features(),
            chunk_size=ROWS,
            dim_model=WIDTH,
            n_heads=4,
            dim_feedforward=64,
            n_encoder_layers=1,
            n_vae_encoder_layers=1,
            latent_dim=8,
            pretrained_backbone_weights=None,
            **more,
        )
    if kind == "diffusion":
        return DiffusionConfig(
            **features(),
            horizon=16,
            down_dims=(32, 64),
            num_train_timesteps=8,
            diffusion_step_embed_dim=16,
            spatial_softmax_num_keypoints=4,
            use_separate_rgb_encoder_per_camera=False,
            pretrained_backbone_weights=None,
            **more,
        )
    flow = features() | {"chunk_size": ROWS, "max_state_dim": 8, "max_action_dim": 8}
    if kind == "smolvla":
        return SmolVLAConfig(
            **flow,
            vlm_model_name=str(backbone),
            num_vlm_layers=4,
            num_steps=4,
            resize_imgs_with_padding=(64, 64),
            **more,
        )
    config = {"pi0": PI0Config, "pi05": PI05Config}[kind]
    return config(**flow, image_resolution=(28, 28), num_inference_steps=4, **more)


def stats():
    """Of a dataset that there never was."""
    generator = torch.Generator().manual_seed(1)

    def of(*shape):
        mean = torch.rand(shape, generator=generator)
        std = 0.1 + 0.2 * torch.rand(shape, generator=generator)
        spread = {"min": mean - 2 * std, "max": mean + 2 * std}
        return {
            "mean": mean,
            "std": std,
            "q01": spread["min"],
            "q99": spread["max"],
        } | spread

    frames = {f"observation.images.{name}": of(3, 1, 1) for name in CAMERAS}
    return {"observation.state": of(len(JOINTS)), "action": of(len(JOINTS))} | frames


@contextlib.contextmanager
def local_tokenizer(folder):
    """Where pi0 and pi0.5 would ask the hub for one."""
    step = processor_pi0.TokenizerProcessorStep
    modules = (processor_pi0, processor_pi05)

    def make(**options):
        return step(**options | {"tokenizer_name": str(folder)})

    for module in modules:
        module.TokenizerProcessorStep = make
    try:
        yield
    finally:
        for module in modules:
            module.TokenizerProcessorStep = step


def make(kind, folder, **more):
    """A checkpoint as training leaves one."""
    folder = pathlib.Path(folder)
    backbone = folder.parent / "backbone"
    if not backbone.exists():
        make_smolvlm(backbone)
    config = config_of(kind, backbone, **more)
    torch.manual_seed(0)
    policy = factory.get_policy_class(kind)(config)
    for part in policy.parameters():  # some begin as zeros, and would say nothing
        if not part.any():
            torch.nn.init.normal_(part, std=0.05)
    policy.eval().save_pretrained(folder)
    with local_tokenizer(backbone):
        pipelines = factory.make_pre_post_processors(config, dataset_stats=stats())
    for pipeline in pipelines:
        pipeline.save_pretrained(folder)
    return folder


def observation(number, task="pick the red cube", seed=None):
    """One that a worker would be given; equal numbers give equal ones."""
    random = np.random.default_rng(number)
    obs = {
        name: random.integers(0, 256, (*size, 3), np.uint8)
        for name, size in CAMERAS.items()
    }
    obs["state"] = random.normal(0, 1, len(JOINTS)).astype(np.float32)
    for array in obs.values():
        array.flags.writeable = False  # as the ring's
    return obs | {"task": task, "seed": 1000 + number if seed is None else seed}


def edit(folder, name, old, new):
    """Changes a file of a checkpoint."""
    path = pathlib.Path(folder) / name
    path.write_text(re.sub(old, new, path.read_text()))
