# SPDX-License-Identifier: Apache-2.0
"""ACT in plain PyTorch, with the names that a LeRobot checkpoint has, for machines where
there is a GPU and no LeRobot; and checkpoints of it with random weights."""

import json
import math
import pathlib

import torch
import torchvision
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops.misc import FrozenBatchNorm2d

STATE = "observation.state"
CAMERA = "observation.images.top"
MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])


class Layer(nn.Module):
    """Of the encoder, and with `cross` of the decoder; norms come last."""

    def __init__(self, width: int, heads: int, hidden: int, cross: bool):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(width, heads)
        if cross:
            self.multihead_attn = nn.MultiheadAttention(width, heads)
            self.norm3 = nn.LayerNorm(width)
        self.linear1 = nn.Linear(width, hidden)
        self.linear2 = nn.Linear(hidden, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x, positions, memory=None, memory_positions=None):
        q = x + positions
        x = self.norm1(x + self.self_attn(q, q, x, need_weights=False)[0])
        if memory is not None:
            k = memory + memory_positions
            seen = self.multihead_attn(x + positions, k, memory, need_weights=False)[0]
            x = self.norm2(x + seen)
        last = self.norm2 if memory is None else self.norm3
        return last(x + self.linear2(functional.relu(self.linear1(x))))


class Layers(nn.Module):
    def __init__(self, count: int, *sizes):
        super().__init__()
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(count))


def positions_2d(height: int, width: int, size: int) -> torch.Tensor:
    """[height * width, size]: sines and cosines of y, then of x."""
    half = size // 2
    period = 10000 ** (2 * (torch.arange(half, dtype=torch.float32) // 2) / half)

    def waves(count: int) -> torch.Tensor:
        along = torch.arange(1, count + 1, dtype=torch.float32)
        angle = (along / (count + 1e-6) * 2 * math.pi)[:, None] / period
        return torch.stack((angle[:, 0::2].sin(), angle[:, 1::2].cos()), -1).flatten(1)

    y = waves(height)[:, None].expand(-1, width, -1)
    x = waves(width)[None].expand(height, -1, -1)
    return torch.cat((y, x), -1).flatten(0, 1)


class Act(nn.Module):
    def __init__(
        self, state=14, actions=14, chunk=100, width=512, heads=8, hidden=3200
    ):
        super().__init__()
        self.latent = 32
        self.chunk = chunk
        resnet = torchvision.models.resnet18(weights=None, norm_layer=FrozenBatchNorm2d)
        self.backbone = IntermediateLayerGetter(resnet, {"layer4": "map"})
        self.encoder = Layers(4, width, heads, hidden, False)
        self.decoder = Layers(1, width, heads, hidden, True)
        self.decoder.norm = nn.LayerNorm(width)
        self.encoder_robot_state_input_proj = nn.Linear(state, width)
        self.encoder_latent_input_proj = nn.Linear(self.latent, width)
        self.encoder_img_feat_input_proj = nn.Conv2d(512, width, 1)
        self.encoder_1d_feature_pos_embed = nn.Embedding(2, width)
        self.decoder_pos_embed = nn.Embedding(chunk, width)
        self.action_head = nn.Linear(width, actions)

    def forward(self, pictures, state):
        """[batch, 3, height, width] and [batch, state], normalised."""
        features = self.backbone(pictures)["map"]
        height, width = features.shape[2:]
        grid = positions_2d(height, width, self.action_head.in_features)
        positions = torch.cat(
            (self.encoder_1d_feature_pos_embed.weight, grid.to(features))
        )[:, None]
        latent = torch.zeros(len(state), self.latent).to(state)
        tokens = torch.cat(
            (
                self.encoder_latent_input_proj(latent)[None],
                self.encoder_robot_state_input_proj(state)[None],
                self.encoder_img_feat_input_proj(features).flatten(2).permute(2, 0, 1),
            )
        )
        for layer in self.encoder.layers:
            tokens = layer(tokens, positions)
        queries = self.decoder_pos_embed.weight[:, None]
        x = torch.zeros(self.chunk, len(state), queries.shape[-1]).to(tokens)
        for layer in self.decoder.layers:
            x = layer(x, queries, tokens, positions)
        return self.action_head(self.decoder.norm(x)).transpose(0, 1)


def random_act(seed: int) -> Act:
    """Weights as they are before training; norms and biases are not left at 0 and 1."""
    torch.manual_seed(seed)
    act = Act().eval()
    for module in act.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.weight.uniform_(0.5, 1.0)
            module.bias.normal_(0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        for name, parameter in act.named_parameters():
            if "norm" in name and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1)
            elif parameter.dim() == 2 and "embed" not in name:
                nn.init.xavier_uniform_(parameter)
    return act


def normalise(frames: torch.Tensor) -> torch.Tensor:
    """[batch, height, width, 3] of bytes to what the policy takes."""
    x = frames.permute(0, 3, 1, 2).float() / 255
    mean, std = (v.to(x)[:, None, None] for v in (MEAN, STD))
    return (x - mean) / (std + 1e-8)


def save(act: Act, height: int, width: int, folder: pathlib.Path) -> None:
    """As LeRobot's save_pretrained leaves it."""
    state = act.encoder_robot_state_input_proj.in_features
    actions = act.action_head.out_features
    inputs = {
        STATE: {"type": "STATE", "shape": [state]},
        CAMERA: {"type": "VISUAL", "shape": [3, height, width]},
    }
    outputs = {"action": {"type": "ACTION", "shape": [actions]}}
    modes = dict.fromkeys(("VISUAL", "STATE", "ACTION"), "MEAN_STD")
    config = {
        "type": "act",
        "n_obs_steps": 1,
        "input_features": inputs,
        "output_features": outputs,
        "normalization_mapping": modes,
        "chunk_size": act.chunk,
        "n_action_steps": act.chunk,
        "vision_backbone": "resnet18",
        "pretrained_backbone_weights": None,
        "replace_final_stride_with_dilation": False,
        "pre_norm": False,
        "dim_model": act.action_head.in_features,
        "n_heads": 8,
        "dim_feedforward": act.encoder.layers[0].linear1.out_features,
        "feedforward_activation": "relu",
        "n_encoder_layers": len(act.encoder.layers),
        "n_decoder_layers": len(act.decoder.layers),
        "use_vae": True,
        "latent_dim": act.latent,
        "n_vae_encoder_layers": 4,
        "temporal_ensemble_coeff": None,
        "dropout": 0.1,
        "kl_weight": 10.0,
    }

    def step(name: str, config: dict, **more) -> dict:
        return {"registry_name": name, "config": config} | more

    device = step("device_processor", {"device": "cpu", "float_dtype": None})
    numbers = {"eps": 1e-8, "features": inputs | outputs, "norm_map": modes}
    before, after = "policy_preprocessor", "policy_postprocessor"
    before_state = f"{before}_step_3_normalizer_processor.safetensors"
    after_state = f"{after}_step_0_unnormalizer_processor.safetensors"
    pipelines = {
        before: [
            step("rename_observations_processor", {"rename_map": {}}),
            step("to_batch_processor", {}),
            device,
            step("normalizer_processor", numbers, state_file=before_state),
        ],
        after: [
            step(
                "unnormalizer_processor",
                numbers | {"features": outputs},
                state_file=after_state,
            ),
            device,
        ],
    }
    folder.mkdir(parents=True)
    for name, steps in pipelines.items():
        (folder / f"{name}.json").write_text(json.dumps({"name": name, "steps": steps}))
    (folder / "config.json").write_text(json.dumps(config))
    stats = {
        f"{CAMERA}.mean": MEAN[:, None, None].clone(),
        f"{CAMERA}.std": STD[:, None, None].clone(),
    }
    for key, size in ((STATE, state), ("action", actions)):
        stats |= {f"{key}.mean": torch.zeros(size), f"{key}.std": torch.ones(size)}
    save_file(stats, folder / before_state)
    save_file(stats, folder / after_state)
    weights = {
        f"model.{k}": v.detach().float().cpu().contiguous()
        for k, v in act.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors")
