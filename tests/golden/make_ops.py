# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/ops.json and ops.f32: what PyTorch makes of each operation of
src/engine/native/ops.h, over sizes that fit nothing.

    build/venv-lerobot/bin/python tests/golden/make_ops.py

Inputs are made from their names (hashed.py), so that only results are kept.
"""

import json
import pathlib

import hashed
import numpy as np
import torch
from torch.nn import functional

FOLDER = pathlib.Path(__file__).parent
ACTS = {"none": lambda x: x, "relu": torch.relu, "gelu": functional.gelu}


def tensor(name: str, *shape: int) -> torch.Tensor:
    return torch.from_numpy(hashed.floats(name, *shape).astype(np.float64))


def weight(name: str, *shape: int) -> torch.Tensor:
    return torch.from_numpy(hashed.weights(name, *shape).astype(np.float64))


def linear(name, batch, rows, inputs, outputs, act, add, norm):
    x = tensor(f"{name}/x", batch, rows, inputs)
    y = functional.linear(
        x, weight(f"{name}/w", outputs, inputs), weight(f"{name}/b", outputs)
    )
    if add == "residual":
        y = y + tensor(f"{name}/add", batch, rows, outputs)
    if add == "table":
        y = y + tensor(f"{name}/add", rows, outputs)
    y = ACTS[act](y)
    if norm:
        gain, bias = weight(f"{name}/n.weight", outputs), weight(f"{name}/n", outputs)
        y = functional.layer_norm(y, (outputs,), gain, bias)
    return y


def norm(name, batch, rows, cols):
    gain, bias = weight(f"{name}/n.weight", cols), weight(f"{name}/n", cols)
    return functional.layer_norm(
        tensor(f"{name}/x", batch, rows, cols), (cols,), gain, bias
    )


def attention(name, batch, queries, keys, heads, size, shared):
    def split(x):
        return x.unflatten(-1, (heads, size)).transpose(1, 2)

    q = tensor(f"{name}/q", 1 if shared else batch, queries, heads * size)
    k = tensor(f"{name}/k", batch, keys, heads * size)
    v = tensor(f"{name}/v", batch, keys, heads * size)
    q = 3 * q.expand(batch, -1, -1)
    y = functional.scaled_dot_product_attention(split(q), split(k), split(v))
    return y.transpose(1, 2).flatten(2)


def conv(
    name,
    batch,
    height,
    width,
    inputs,
    outputs,
    kernel,
    stride,
    dilation,
    pixels,
    pool,
    joined,
    add,
    act,
):
    if pixels:
        frame = hashed.pixels(f"{name}/x", batch, height, width, 3).astype(np.float64)
        scale, shift = (weight(f"{name}/{part}", 3) for part in ("scale", "shift"))
        x = torch.from_numpy(frame) / 255 * scale + shift
    else:
        x = tensor(f"{name}/x", batch, height, width, inputs)
    gain = weight(f"{name}/n.weight", outputs)
    y = functional.conv2d(
        x.permute(0, 3, 1, 2),
        weight(f"{name}/w", outputs, inputs, kernel, kernel)
        * gain[:, None, None, None],
        weight(f"{name}/b", outputs),
        stride,
        kernel // 2 * dilation,
        dilation,
    )
    if add:
        more = tensor(f"{name}/add", batch, y.shape[2], y.shape[3], outputs)
        y = y + more.permute(0, 3, 1, 2)
    if joined:
        around = tensor(f"{name}/joined", batch, joined[0], joined[1], joined[2])
        y = y + functional.conv2d(
            around.permute(0, 3, 1, 2),
            weight(f"{name}/jw", outputs, joined[2], 1, 1),
            weight(f"{name}/jb", outputs),
            joined[3],
        )
    y = ACTS[act](y)
    if pool:
        y = functional.max_pool2d(y, 3, 2, 1)
    return y.permute(0, 2, 3, 1)


OPS = {"linear": linear, "norm": norm, "attention": attention, "conv": conv}


def linears():
    for batch, rows, inputs, outputs in (
        (1, 1, 14, 32),
        (1, 7, 24, 40),
        (2, 13, 64, 64),
        (3, 50, 72, 136),
        (1, 101, 512, 24),
        (5, 6, 8, 8),
    ):
        for act, add, normed in (
            ("none", "none", False),
            ("relu", "none", False),
            ("none", "residual", True),
            ("none", "table", False),
            ("gelu", "residual", False),
        ):
            yield {
                "op": "linear",
                "batch": batch,
                "rows": rows,
                "inputs": inputs,
                "outputs": outputs,
                "act": act,
                "add": add,
                "norm": normed,
            }
    for outputs in (3, 14, 33):  # what leaves a model has any width
        yield {
            "op": "linear",
            "batch": 2,
            "rows": 9,
            "inputs": 32,
            "outputs": outputs,
            "act": "none",
            "add": "none",
            "norm": False,
        }


def convs():
    plain = {
        "op": "conv",
        "dilation": 1,
        "pixels": False,
        "pool": False,
        "joined": None,
    }
    plain |= {"add": False, "act": "relu"}
    for batch, height, width, inputs, outputs, kernel, stride in (
        (1, 5, 7, 32, 32, 3, 1),
        (2, 9, 6, 32, 64, 3, 1),
        (1, 34, 41, 32, 32, 3, 1),
        (3, 15, 20, 64, 32, 3, 1),
        (1, 1, 1, 32, 32, 3, 1),
        (2, 8, 11, 24, 40, 3, 2),
        (1, 17, 5, 64, 64, 3, 2),
        (2, 6, 7, 40, 72, 1, 1),
        (1, 9, 9, 32, 48, 1, 2),
        (1, 8, 9, 24, 24, 3, 1),
    ):
        size = {"batch": batch, "height": height, "width": width, "inputs": inputs}
        size |= {"outputs": outputs, "kernel": kernel, "stride": stride}
        yield plain | size
        if stride == 1 and kernel == 3:
            yield plain | size | {"add": True}
            yield (
                plain | size | {"act": "none", "joined": [2 * height, 2 * width, 16, 2]}
            )
    yield plain | {
        "batch": 2,
        "height": 7,
        "width": 9,
        "inputs": 32,
        "outputs": 32,
        "kernel": 3,
        "stride": 1,
        "dilation": 2,
    }
    for batch, height, width in ((1, 48, 64), (2, 33, 47), (1, 3, 5)):
        yield plain | {
            "batch": batch,
            "height": height,
            "width": width,
            "inputs": 3,
            "outputs": 64,
            "kernel": 7,
            "stride": 2,
            "pixels": True,
            "pool": True,
        }


def wide():
    """As wide as full-size policies are: sides may share what small ones do alone."""
    for batch, rows, inputs, outputs in (
        (2, 37, 520, 256),
        (1, 70, 64, 128),
        (1, 9, 640, 640),
        (3, 21, 1024, 512),
    ):
        size = {"batch": batch, "rows": rows, "inputs": inputs, "outputs": outputs}
        yield (
            {"op": "linear"}
            | size
            | {
                "act": "none",
                "add": "residual",
                "norm": True,
            }
        )
    plain = {"op": "conv", "dilation": 1, "pixels": False, "pool": False}
    for batch, height, width, inputs, outputs, joined in (
        (1, 12, 13, 128, 128, None),
        (1, 5, 11, 256, 256, None),
        (2, 4, 5, 256, 512, [8, 10, 128, 2]),
    ):
        size = {"batch": batch, "height": height, "width": width}
        size |= {"inputs": inputs, "outputs": outputs, "kernel": 3, "stride": 1}
        yield plain | size | {"joined": joined, "add": not joined, "act": "relu"}


def cases():
    yield from linears()
    for batch, rows, cols in ((1, 1, 8), (2, 7, 40), (3, 20, 512), (1, 3, 24)):
        yield {"op": "norm", "batch": batch, "rows": rows, "cols": cols}
    for batch, queries, keys, heads, size, shared in (
        (1, 1, 1, 1, 8, False),
        (2, 5, 9, 4, 8, False),
        (1, 60, 33, 3, 16, False),
        (3, 10, 50, 8, 64, True),
        (2, 49, 17, 5, 8, True),
    ):
        yield {
            "op": "attention",
            "batch": batch,
            "queries": queries,
            "keys": keys,
            "heads": heads,
            "size": size,
            "shared": shared,
        }
    yield from convs()
    yield from wide()


if __name__ == "__main__":
    listed, results = [], []
    for index, case in enumerate(cases()):
        sizes = {key: value for key, value in case.items() if key != "op"}
        result = OPS[case["op"]](f"ops/{index}", **sizes)
        results.append(result.numpy().astype("<f4").ravel())
        listed.append(case | {"count": int(results[-1].size)})
    lines = ",\n".join(json.dumps(case) for case in listed)
    (FOLDER / "ops.json").write_text(f'{{"cases": [\n{lines}\n]}}\n')
    (FOLDER / "ops.f32").write_bytes(np.concatenate(results).tobytes())
    print(f"{len(listed)} cases, {sum(map(len, results))} numbers")
