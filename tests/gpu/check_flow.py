# SPDX-License-Identifier: Apache-2.0
"""What the GPU is held to: SmolVLA, pi0 and pi0.5 of full size with random weights
against LeRobot on the same GPU.

    check_flow.py PROGRAMS [KIND...]

PROGRAMS is a folder with `gpu_flow_run` (tests/gpu/flow_run.c). The error is that to
LeRobot's own float32, and it is held to that of LeRobot's own bf16. Prints a line a
figure and fails when one is beyond its limit.
"""

import inspect
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
import torch
from lerobot.configs import PreTrainedConfig
from lerobot.policies import pi_gemma
from lerobot.policies.pi0.modeling_pi0 import PI0Policy
from lerobot.policies.pi05.modeling_pi05 import PI05Policy
from lerobot.policies.smolvla import smolvlm_with_expert
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy
from safetensors.torch import save_file

GOLDEN = pathlib.Path("tests/golden/flows")
COUNT = 8
MOST = 1.1  # times the error of PyTorch's own bf16
TEXT = 20  # tokens
POLICIES = {"smolvla": SmolVLAPolicy, "pi0": PI0Policy, "pi05": PI05Policy}
SIDES = {"smolvla": 512, "pi0": 224, "pi05": 224}
LARGE = {
    "smolvla": {"num_steps": 10, "num_vlm_layers": 16}
    | {"resize_imgs_with_padding": [512, 512]},
    "pi0": {"num_inference_steps": 10, "image_resolution": [224, 224]},
    "pi05": {"num_inference_steps": 10, "image_resolution": [224, 224]},
}
TEXT_MODEL = {"hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 16}
TEXT_MODEL |= {"num_attention_heads": 15, "num_key_value_heads": 5, "head_dim": 64}
VISION = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
VISION |= {"num_attention_heads": 12, "image_size": 512, "patch_size": 16}


class NoProcessor:
    """Texts come as ids."""

    @staticmethod
    def from_pretrained(name):
        tokens = types.SimpleNamespace(fake_image_token_id=1, global_image_token_id=2)
        return types.SimpleNamespace(tokenizer=tokens)


def of_any_release(function):
    """transformers' own, without what its newer releases no longer take."""
    known = inspect.signature(function).parameters

    def call(**given):
        return function(**{k: v for k, v in given.items() if k in known})

    return call


def enlarge(kind: str, folder: pathlib.Path) -> None:
    """A golden checkpoint's folder, but of full size and without weights."""
    for path in (GOLDEN / f"{kind}-two-cameras").iterdir():
        if path.suffix in (".json", ".safetensors"):
            shutil.copy(path, folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config |= LARGE[kind] | {"chunk_size": 50, "n_action_steps": 50}
    for name, feature in config["input_features"].items():
        if "images" in name:
            feature["shape"] = [3, SIDES[kind], SIDES[kind]]
    path.write_text(json.dumps(config))
    if kind != "smolvla":
        return
    path = folder / "vlm_config.json"
    backbone = json.loads(path.read_text())
    backbone["text_config"] |= TEXT_MODEL
    backbone["vision_config"] |= VISION
    backbone["scale_factor"] = 4
    path.write_text(json.dumps(backbone))
    (folder / "backbone").mkdir()
    shutil.copy(path, folder / "backbone" / "config.json")


def open_config(kind: str, folder: pathlib.Path, dtype: str):
    config = PreTrainedConfig.from_pretrained(folder)
    config.device = "cuda"
    if kind == "smolvla":
        config.vlm_model_name = str(folder / "backbone")
    else:
        config.dtype = dtype
    return config


def make_policy(kind: str, folder: pathlib.Path, dtype: str = "float32"):
    with torch.device("cuda"):
        policy = POLICIES[kind](open_config(kind, folder, dtype))
    return policy.to("cuda").eval()


@torch.no_grad()
def randomise(policy) -> None:
    """Numbers that bf16 holds."""
    for name, parameter in policy.named_parameters():
        if parameter.dim() > 1:
            inputs = math.prod(parameter.shape[1:])
            parameter.normal_(0, 1 / math.sqrt(inputs))
        elif name.endswith("bias"):
            parameter.normal_(0, 0.05)
        elif "norm" in name:
            parameter.add_(torch.randn_like(parameter) / 8)
        parameter.copy_(parameter.bfloat16())


def names_of(kind: str) -> set[str]:
    """Of the tensors that LeRobot saves; N is any layer."""
    data = (GOLDEN / f"{kind}-two-cameras" / "model.header").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return {without_layer(name) for name in json.loads(data[8 : 8 + size])}


def without_layer(name: str) -> str:
    return re.sub(r"\.\d+\.", ".N.", name)


def save(kind: str, policy, folder: pathlib.Path) -> None:
    names = names_of(kind)
    tensors = {}
    for name, tensor in policy.state_dict().items():
        if without_layer(name) not in names:  # newer releases of transformers
            name = name.replace("vision_tower.", "vision_tower.vision_model.")
        if without_layer(name) in names:
            tensors[name] = tensor.bfloat16().contiguous().cpu()
    missing = names - {without_layer(name) for name in tensors} - {"__metadata__"}
    if missing:
        raise ValueError(f"{kind}: LeRobot here has no {sorted(missing)}")
    save_file(tensors, folder / "model.safetensors")


def in_bf16(kind: str, policy, folder: pathlib.Path):
    """LeRobot's own, or all of it; what is made in float32 on its way is rounded."""
    half = make_policy(kind, folder, "bfloat16")
    half.load_state_dict(policy.state_dict())
    if kind != "smolvla":
        return half

    def round_input(module, inputs):
        return (inputs[0].to(module.weight.dtype), *inputs[1:])

    half.bfloat16()
    for module in half.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d | torch.nn.LayerNorm):
            module.register_forward_pre_hook(round_input)
    return half


def make_inputs(kind: str, policy) -> list[dict]:
    side, config = SIDES[kind], policy.config
    cameras = [name for name in config.input_features if "images" in name]
    made = []
    for index in range(COUNT):
        coarse = torch.rand(len(cameras), 3, 14, 14, device="cuda")
        smooth = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
        noisy = smooth + 0.05 * torch.randn_like(smooth)
        made.append(
            {
                "frames": (noisy.clamp(0, 1) * 255).byte(),
                "cameras": cameras,
                "state": torch.randn(1, 6, device="cuda"),
                "ids": torch.randint(3, 600, (TEXT + index,), device="cuda"),
                "noise": torch.randn(
                    1, config.chunk_size, config.max_action_dim, device="cuda"
                ),
            }
        )
    return made


@torch.no_grad()
def answers(policy, inputs: list[dict]) -> torch.Tensor:
    chunks = []
    longest = policy.config.tokenizer_max_length
    for given in inputs:
        count = len(given["ids"])
        ids = torch.zeros(1, longest, dtype=torch.long, device="cuda")
        ids[0, :count] = given["ids"]
        batch = {
            "observation.state": given["state"],
            "observation.language.tokens": ids,
            "observation.language.attention_mask": torch.arange(longest, device="cuda")[
                None
            ]
            < count,
        }
        for name, frame in zip(given["cameras"], given["frames"], strict=True):
            batch[name] = frame[None].float() / 255
        chunks.append(
            policy.predict_action_chunk(batch, noise=given["noise"].clone()).float()
        )
    return torch.cat(chunks).double().cpu()


def write_inputs(folder: pathlib.Path, inputs: list[dict]) -> list[pathlib.Path]:
    """Frames, states, ids and noise as flow_run reads them."""
    frames = [each["frames"].permute(0, 2, 3, 1).cpu().numpy() for each in inputs]
    ids = [each["ids"].cpu().numpy().astype(np.uint32) for each in inputs]
    parts = {
        "frames": np.stack(frames),
        "states": np.stack([each["state"].cpu().numpy() for each in inputs]),
        "ids": np.concatenate([[len(each), *each] for each in ids]).astype(np.uint32),
        "noise": np.stack([each["noise"].cpu().numpy() for each in inputs]),
    }
    for name, values in parts.items():
        np.ascontiguousarray(values).tofile(folder / name)
    return [folder / name for name in parts]


def run_program(*arguments) -> None:
    """With the libraries that came with it."""
    programs = pathlib.Path(sys.argv[1]).resolve()
    libraries = {"LD_LIBRARY_PATH": str(programs.parent / "lib")}
    command = [programs / "gpu_flow_run", *arguments]
    sys.stdout.flush()
    subprocess.run(command, env=os.environ | libraries, check=True)


def run_ours(folder: pathlib.Path, files: list[pathlib.Path], like: torch.Tensor):
    out = folder / "out"
    run_program("answer", "cuda", folder / "checkpoint", *files, out, str(COUNT))
    return torch.from_numpy(np.fromfile(out, np.float32)).view(like.shape).double()


def take_time(kind: str, half, inputs: list[dict], folder: pathlib.Path) -> None:
    """A chunk of LeRobot's, eager and in bf16, and of ours."""
    times = []
    for _ in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        answers(half, inputs[:1])
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    print(f"{kind}: LeRobot, eager, bf16, batch 1: {sorted(times[1:])[2]:.1f} ms")
    for batch in (1, 4, 8):
        run_program("time", "cuda", folder, str(batch), "200")


def check(kind: str, work: pathlib.Path) -> bool:
    folder = work / "checkpoint"
    folder.mkdir(parents=True)
    enlarge(kind, folder)
    policy = make_policy(kind, folder).float()
    randomise(policy)
    save(kind, policy, folder)
    inputs = make_inputs(kind, policy)
    exact = answers(policy, inputs)
    rounded = in_bf16(kind, policy, folder)
    half = answers(rounded, inputs)
    del policy
    torch.cuda.empty_cache()
    ours = run_ours(work, write_inputs(work, inputs), exact)
    errors = [(each - exact).abs().mean().item() for each in (half, ours)]
    ratio = errors[1] / errors[0]
    print(f"{kind}: largest answer {exact.abs().max():.3g}")
    print(f"{kind}: error of LeRobot's bf16 {errors[0]:.3e}, ours {errors[1]:.3e}")
    print(f"{kind}: ratio {ratio:.3g} (at most {MOST})", flush=True)
    take_time(kind, rounded, inputs, folder)
    return ratio <= MOST


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(7)
    smolvlm_with_expert.AutoProcessor = NoProcessor
    pi_gemma.create_causal_mask = of_any_release(pi_gemma.create_causal_mask)
    failed = 0
    for kind in sys.argv[2:] or POLICIES:
        with tempfile.TemporaryDirectory() as name:
            failed += not check(kind, pathlib.Path(name))
    print(f"flows on {torch.cuda.get_device_name()}:", "FAILED" if failed else "ok")
    return failed


if __name__ == "__main__":
    sys.exit(main())
