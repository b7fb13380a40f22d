# SPDX-License-Identifier: Apache-2.0
"""What the GPU is held to, on a machine that has one: ACT of full size against LeRobot
on the same GPU, over a hundred observations.

    check.py PROGRAMS

PROGRAMS is a folder with `gpu_act_run` (tests/gpu/act_run.c). Prints a line a figure
and fails when one is beyond its limit.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from torchvision.ops.misc import FrozenBatchNorm2d

COUNT = 100
HEIGHT, WIDTH = 480, 640
CHANNELS = 14
MOST = 1.1  # times the error of PyTorch's own bf16
ACROSS = 0.02  # of the largest value, between batch sizes
CPU = 1e-4  # of the largest value
STATE = "observation.state"
FRAME = "observation.images.top"
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def make_policy() -> ACTPolicy:
    """LeRobot's, at the size that it has by itself."""
    joints = PolicyFeature(FeatureType.STATE, (CHANNELS,))
    frame = PolicyFeature(FeatureType.VISUAL, (3, HEIGHT, WIDTH))
    config = ACTConfig(
        input_features={STATE: joints, FRAME: frame},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (CHANNELS,))},
        pretrained_backbone_weights=None,
        device="cuda",
        push_to_hub=False,
    )
    return ACTPolicy(config).cuda().eval()


def randomise(policy: ACTPolicy) -> None:
    """Weights as they are before training; norms and biases are not left at 0 and 1."""
    for module in policy.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.weight.uniform_(0.5, 1.0)
            module.bias.normal_(0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "norm" in name and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1)
            elif parameter.dim() == 2 and "embed" not in name:
                torch.nn.init.xavier_uniform_(parameter)


def stats() -> dict:
    joints = {"mean": np.zeros(CHANNELS), "std": np.ones(CHANNELS)}
    colours = {"mean": MEAN[:, None, None], "std": STD[:, None, None]}
    return {STATE: joints, "action": joints, FRAME: colours}


def make_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Frames with shapes in them, and states."""
    coarse = torch.rand(COUNT, 3, 12, 16, device="cuda")
    smooth = torch.nn.functional.interpolate(coarse, (HEIGHT, WIDTH), mode="bilinear")
    noisy = smooth + 0.05 * torch.randn_like(smooth)
    frames = (noisy.clamp(0, 1) * 255).byte().permute(0, 2, 3, 1).contiguous()
    return frames, torch.randn(COUNT, CHANNELS, device="cuda")


def in_bf16(policy: ACTPolicy) -> ACTPolicy:
    """All of it; what LeRobot makes in float32 on its way is rounded, too."""

    def round_input(module, inputs):
        return (inputs[0].to(module.weight.dtype), *inputs[1:])

    half = make_policy()
    half.load_state_dict(policy.state_dict())
    half.bfloat16()
    half.model.encoder_latent_input_proj.register_forward_pre_hook(round_input)
    return half


def answers(policy, before, frames, states, dtype=torch.float32) -> torch.Tensor:
    chunks = []
    for frame, state in zip(frames, states, strict=True):
        obs = before({STATE: state, FRAME: frame.permute(2, 0, 1).float() / 255})
        seen = {key: obs[key].to(dtype) for key in (STATE, FRAME)}
        chunks.append(policy.predict_action_chunk(seen))
    return torch.cat(chunks).double().cpu()


def run_ours(
    backend: str, folder: pathlib.Path, batch: int, count: int
) -> torch.Tensor:
    """One of ours, with the libraries that came with it."""
    programs = pathlib.Path(sys.argv[1]).resolve()
    libraries = {"LD_LIBRARY_PATH": str(programs.parent / "lib")}
    out = folder / "out.f32"
    inputs = (folder / "checkpoint", folder / "frames.u8", folder / "states.f32")
    command = [programs / "gpu_act_run", backend, *inputs, out, str(batch), str(count)]
    subprocess.run(command, env=os.environ | libraries, check=True)
    return torch.from_numpy(np.fromfile(out, np.float32)).view(count, 100, -1).double()


class Limits:
    def __init__(self):
        self.missed = 0

    def hold(self, name: str, value: float, most: float) -> None:
        print(f"{name} {value:.3g} (at most {most})", flush=True)
        self.missed += not value <= most


def check(policy, before, folder: pathlib.Path) -> int:
    limits = Limits()
    frames, states = make_inputs()
    frames.cpu().numpy().tofile(folder / "frames.u8")
    states.cpu().numpy().tofile(folder / "states.f32")
    exact = answers(policy, before, frames, states)
    alone = run_ours("cuda", folder, 1, COUNT)

    def error(of: torch.Tensor) -> float:
        return (of - exact).abs().mean().item()

    half = answers(in_bf16(policy), before, frames, states, torch.bfloat16)
    with torch.autocast("cuda", torch.bfloat16):
        mixed = answers(policy, before, frames, states)
    print(f"error/lerobot-bf16 {error(half):.3e}")
    print(f"error/lerobot-autocast {error(mixed):.3e}")
    print(
        f"error/ours {error(alone):.3e}, of autocast's {error(alone) / error(mixed):.3g}"
    )
    limits.hold("error/ratio", error(alone) / error(half), MOST)
    again = run_ours("cuda", folder, 1, COUNT)
    limits.hold("same-bits/off", (again - alone).abs().max().item(), 0)
    largest = alone.abs().max()
    for batch in (2, 4, 16):
        many = run_ours("cuda", folder, batch, COUNT - COUNT % batch)
        off = (many - alone[: len(many)]).abs().max() / largest
        limits.hold(f"across/batch-{batch}", off.item(), ACROSS)
    processor = run_ours("cpu", folder, 1, 4)
    off = (processor - exact[:4]).abs().max() / exact.abs().max()
    limits.hold("error/cpu-f32", off.item(), CPU)
    return limits.missed


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(7)
    policy = make_policy()
    randomise(policy)
    before, after = make_act_pre_post_processors(policy.config, stats())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for each in (policy, before, after):
            each.save_pretrained(folder / "checkpoint")
        missed = check(policy, before, folder)
    print(f"ACT on {torch.cuda.get_device_name()}:", "FAILED" if missed else "ok")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
