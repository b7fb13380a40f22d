# SPDX-License-Identifier: Apache-2.0
"""What the GPU is held to, on a machine that has one: full-size ACT against PyTorch on
the same GPU, and the time that PyTorch itself takes.

    check.py PROGRAMS [--compile]

PROGRAMS is a folder with `tendon` and `gpu_act_run` (tests/gpu/act_run.c). Prints a line a
figure and fails when one is beyond its limit.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import reference
import torch

COUNT = 100
HEIGHT, WIDTH = 480, 640
MOST = 1.1  # times the error of PyTorch's own bf16
ACROSS = 0.02  # of the largest value, between batch sizes


def make_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Frames with shapes in them, and states."""
    coarse = torch.rand(COUNT, 3, 12, 16, device="cuda")
    smooth = torch.nn.functional.interpolate(coarse, (HEIGHT, WIDTH), mode="bilinear")
    noisy = smooth + 0.05 * torch.randn_like(smooth)
    frames = (noisy.clamp(0, 1) * 255).byte().permute(0, 2, 3, 1).contiguous()
    return frames, torch.randn(COUNT, 14, device="cuda")


def answers(act, frames, state, dtype) -> torch.Tensor:
    with torch.no_grad():
        chunks = [
            act(
                reference.normalise(frames[i : i + 1]).to(dtype),
                state[i : i + 1].to(dtype),
            )
            for i in range(COUNT)
        ]
    return torch.cat(chunks).double().cpu()


def call(program: str, *arguments) -> None:
    """One of ours, with the libraries that came with it."""
    programs = pathlib.Path(sys.argv[1]).resolve()
    libraries = {"LD_LIBRARY_PATH": str(programs.parent / "lib")}
    command = [programs / program, *map(str, arguments)]
    subprocess.run(command, env=os.environ | libraries, check=True)


def run_ours(side: str, folder: pathlib.Path, batch: int, count: int) -> torch.Tensor:
    out = folder / "out.f32"
    call(
        "gpu_act_run", side, folder / "checkpoint", folder / "frames.u8",
        folder / "states.f32", out, batch, count,
    )  # fmt: skip
    return torch.from_numpy(np.fromfile(out, np.float32)).view(count, 100, 14).double()


def median_us(call, count: int) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return sorted(times)[count // 2]


def time_torch(act, dtype, name: str, batch: int) -> None:
    """From frames in the host's memory to actions in it, as ours is timed."""
    frames = torch.randint(
        0, 255, (batch, HEIGHT, WIDTH, 3), dtype=torch.uint8
    ).pin_memory()
    state = torch.randn(batch, 14).pin_memory()

    def call():
        with torch.no_grad():
            x = reference.normalise(frames.cuda(non_blocking=True)).to(dtype)
            return act(x, state.cuda(non_blocking=True).to(dtype)).float().cpu()

    for _ in range(10):
        call()
    print(f"torch/{name}/batch-{batch}/p50 {median_us(call, 50):.0f} us", flush=True)


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    act = reference.random_act(7).cuda()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        reference.save(act, HEIGHT, WIDTH, folder / "checkpoint")
        frames, state = make_inputs()
        frames.cpu().numpy().tofile(folder / "frames.u8")
        state.cpu().numpy().tofile(folder / "states.f32")
        exact = answers(act, frames, state, torch.float32)
        half = reference.random_act(7).cuda().bfloat16()
        theirs = (answers(half, frames, state, torch.bfloat16) - exact).abs().mean()
        alone = run_ours("cuda", folder, 1, COUNT)
        ours = (alone - exact).abs().mean()
        print(f"error/torch-bf16 {theirs:.3e}\nerror/ours-bf16 {ours:.3e}")
        print(f"error/ratio {ours / theirs:.3f} (at most {MOST})")
        bad += not ours <= MOST * theirs
        again = run_ours("cuda", folder, 1, COUNT)
        print(f"same-bits {bool((again == alone).all())}")
        bad += not (again == alone).all()
        for batch in (2, 4, 16):
            whole = COUNT - COUNT % batch
            many = run_ours("cuda", folder, batch, whole)
            off = (many - alone[: len(many)]).abs().max() / alone.abs().max()
            print(f"across/batch-{batch} {off:.2e} (at most {ACROSS})")
            bad += not off <= ACROSS
        processor = run_ours("cpu", folder, 1, 4)
        off = (processor - exact[:4]).abs().max() / exact.abs().max()
        print(f"error/cpu-f32 {off:.2e} of the largest (at most 1e-4)", flush=True)
        bad += not off <= 1e-4
        call("tendon", "bench", "cuda", folder / "checkpoint")
    for batch in (1, 4, 16):
        time_torch(act, torch.float32, "eager-f32", batch)
        time_torch(half, torch.bfloat16, "eager-bf16", batch)
    if "--compile" in sys.argv:
        fast = torch.compile(half, mode="reduce-overhead")
        for batch in (1, 4):
            time_torch(fast, torch.bfloat16, "compiled-bf16", batch)
    print("GPU check of ACT:", "FAILED" if bad else "ok")
    return bad > 0


sys.exit(main())
