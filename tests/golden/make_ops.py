# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/ops.json and ops.f32: what PyTorch makes of each operation of
src/engine/native/ops/ops.h, over sizes that fit nothing.

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


def counted(batch, rows, a, b, most):
    """As ops_token_cases.c: of each row of each member."""
    members, places = np.ogrid[:batch, :rows]
    return torch.from_numpy((a * members + b * places) % most)


def rms_norm(x, gain):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * gain


def modulation(name, part, table, batch, rows, cols):
    """Scale, shift and gate of each row."""
    values = tensor(f"{name}/{part}", table, 3 * cols)
    return values[counted(batch, rows, 1, 1, table)].chunk(3, dim=-1)


def rms(name, batch, rows, cols, base, table):
    x = tensor(f"{name}/x", batch, rows, cols)
    if not table:
        return rms_norm(x, base + weight(f"{name}/n.weight", cols))
    scale, shift, _ = modulation(name, "m", table, batch, rows, cols)
    return rms_norm(x, 1 + scale) + shift


def turn(x, angles):
    """Numbers i and i + half of a head, by cosines and sines."""
    cosines, sines = angles.chunk(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cosines - b * sines, b * cosines + a * sines], dim=-1)


def parts(name, x, batch, rows, inputs, parts, split, size, turned, places):
    biases = (weight(f"{name}/b0", parts[0]), None, weight(f"{name}/b2", parts[2]))
    y = torch.cat(
        [
            functional.linear(x, weight(f"{name}/w{i}", out, inputs), biases[i])
            for i, out in enumerate(parts)
        ],
        dim=-1,
    )
    angles = tensor(f"{name}/angles", places, size)
    angles = angles[counted(batch, rows, 7, 3, places)][:, :, None]
    heads = y[..., :turned].unflatten(-1, (-1, size))
    return torch.cat([turn(heads, angles).flatten(2), y[..., turned:]], dim=-1)


TOKEN_ACTS = {
    "none": lambda x: x,
    "silu": functional.silu,
    "tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


def gated(name, x, inputs, outputs, act):
    left = functional.linear(x, weight(f"{name}/w0", outputs, inputs))
    right = functional.linear(
        x, weight(f"{name}/w1", outputs, inputs), weight(f"{name}/b1", outputs)
    )
    return TOKEN_ACTS[act](left) * right


def half(name, x, batch, rows, inputs, outputs, act, add, scale, gates, norm):
    wide = hashed.floats(f"{name}/w", outputs, 2 * inputs).astype(np.float64)
    wide = torch.from_numpy(wide / 2 ** max(0, (inputs.bit_length() - 2) // 2))
    y = functional.linear(x, wide[:, inputs:], weight(f"{name}/b", outputs))
    y = y * (scale or 1)
    if gates:
        y = y * modulation(name, "gates", gates, batch, rows, outputs)[2]
    if add:
        y = y + tensor(f"{name}/add", batch, rows, outputs)
    y = TOKEN_ACTS[act](y)
    if not norm:
        return y
    by, shift, _ = modulation(name, "m", gates, batch, rows, outputs)
    return torch.cat([y, rms_norm(y, 1 + by) + shift], dim=-1)


def token(name, kind, batch, rows, inputs, **more):
    x = tensor(f"{name}/x", batch, rows, inputs)
    if kind == "parts":
        return parts(name, x, batch, rows, inputs, **more)
    if kind == "gated":
        return gated(name, x, inputs, **more)
    return half(name, x, batch, rows, inputs, **more)


def seen(mask, queries, past, keys, length):
    """Which of the keys each query sees."""
    rows, cols = torch.arange(queries)[:, None], torch.arange(past + keys) - past
    see = {
        "all": torch.ones(queries, past + keys, dtype=bool),
        "earlier": cols <= rows,
        "first_sees_self": (rows > 0) | (cols <= 0),
        "first_unseen": (rows == 0) | (cols > 0),
    }[mask]
    there = cols + past < length if past == 0 else (cols + past < length) | (cols >= 0)
    return see & there


def grouped(name, batch, queries, past, keys, heads, kv_heads, size, mask, lengths):
    def part(part, rows):
        x = tensor(f"{name}/{part}", batch, rows, kv_heads * size)
        x = x.unflatten(-1, (kv_heads, size)).transpose(1, 2)
        return x.repeat_interleave(heads // kv_heads, dim=1)

    q = tensor(f"{name}/q", batch, queries, heads * size)
    q = 3 * q.unflatten(-1, (heads, size)).transpose(1, 2)
    k = torch.cat([part("pk", past), part("k", keys)], dim=2)
    v = torch.cat([part("pv", past), part("v", keys)], dim=2)
    lengths = lengths or [past or keys] * batch
    see = torch.stack([seen(mask, queries, past, keys, each) for each in lengths])
    y = functional.scaled_dot_product_attention(q, k, v, attn_mask=see[:, None])
    return y.transpose(1, 2).flatten(2)


def embed(name, batch, rows, vocabulary, cols, scale):
    table = hashed.floats(f"{name}/w", vocabulary, cols).astype(np.float64) / 4
    return torch.from_numpy(table)[counted(batch, rows, 31, 17, vocabulary)] * scale


def blocks(name, batch, height, width, side, cols, scale, shift):
    x = tensor(f"{name}/x", batch, height, width, cols)
    x = x.unflatten(2, (-1, side)).unflatten(1, (-1, side)).transpose(2, 3)
    return x.flatten(3).flatten(1, 2) * scale + shift


def step(name, batch, rows, cols, time, dt, guidance, guided, kept):
    x, v = (tensor(f"{name}/{part}", batch, rows, cols) for part in "xv")
    time, dt, guidance = (float(np.float32(each)) for each in (time, dt, guidance))
    to = v
    if guided:
        tail = tensor(f"{name}/tail", batch, rows, cols)
        by = tensor(f"{name}/weight", batch, rows, 1)
        by[0, ::3] = 0
        to = v - guidance * (tail - (x - time * v)) * by
    y = x + dt * to
    if kept:
        y = torch.where(counted(batch, rows, 1, 1, 2)[..., None] != 0, x, y)
    return y


OPS = {
    "linear": linear,
    "norm": norm,
    "attention": attention,
    "conv": conv,
    "rms": rms,
    "token": token,
    "grouped": grouped,
    "embed": embed,
    "blocks": blocks,
    "step": step,
}


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


def tokens():
    """What policies that see and read have beside that."""
    for batch, rows, cols, base, table in (
        (1, 3, 24, 0, 0),
        (2, 7, 40, 1, 0),
        (1, 5, 1024, 1, 0),
        (2, 6, 64, 0, 1),
        (2, 9, 48, 0, 2),
    ):
        size = {"batch": batch, "rows": rows, "cols": cols}
        yield {"op": "rms"} | size | {"base": base, "table": table}
    for batch, rows, inputs, outs, split, size, turned in (
        (1, 5, 24, [32, 16, 16], 32, 8, 48),
        (2, 7, 40, [48, 16, 16], 64, 16, 64),
        (2, 3, 72, [64, 64, 64], 64, 64, 128),
        (1, 9, 64, [256, 256, 256], 256, 256, 512),
    ):
        part = {"op": "token", "kind": "parts", "batch": batch, "rows": rows}
        part |= {"inputs": inputs, "parts": outs, "split": split, "size": size}
        yield part | {"turned": turned, "places": 23}
    for batch, rows, inputs, outputs, act in (
        (1, 5, 32, 64, "silu"),
        (2, 51, 24, 72, "silu"),
        (2, 7, 136, 40, "tanh"),
    ):
        part = {"op": "token", "kind": "gated", "batch": batch, "rows": rows}
        yield part | {"inputs": inputs, "outputs": outputs, "act": act}
    plain = {"act": "none", "add": False, "scale": 0, "gates": 0, "norm": False}
    for batch, rows, inputs, outputs, more in (
        (2, 5, 32, 72, {"act": "silu"}),
        (1, 6, 40, 24, {"act": "tanh", "add": True}),
        (2, 3, 24, 40, {"scale": 5.5}),
        (2, 7, 64, 40, {"add": True, "gates": 1}),
        (2, 7, 40, 72, {"add": True, "gates": 2, "norm": True}),
    ):
        part = {"op": "token", "kind": "half", "batch": batch, "rows": rows}
        yield part | {"inputs": inputs, "outputs": outputs} | plain | more
    for batch, queries, past, keys, heads, kv_heads, size, mask, lengths in (
        (1, 5, 0, 9, 4, 2, 8, "all", None),
        (2, 21, 0, 21, 4, 1, 16, "first_unseen", [13, 21]),
        (3, 7, 40, 7, 6, 2, 8, "earlier", [1, 40, 17]),
        (2, 6, 33, 6, 8, 1, 8, "first_sees_self", [30, 2]),
        (2, 50, 20, 50, 3, 1, 64, "all", [20, 5]),
        (3, 10, 0, 70, 4, 2, 8, "all", [70, 3, 41]),
        (1, 9, 25, 9, 2, 1, 256, "earlier", [25]),
    ):
        part = {"op": "grouped", "batch": batch, "queries": queries, "past": past}
        part |= {"keys": keys, "heads": heads, "kv_heads": kv_heads, "size": size}
        yield part | {"mask": mask, "lengths": lengths}
    for batch, rows, vocabulary, cols, scale in (
        (2, 9, 50, 24, 1),
        (1, 7, 11, 40, 5.5),
    ):
        part = {"op": "embed", "batch": batch, "rows": rows, "vocabulary": vocabulary}
        yield part | {"cols": cols, "scale": scale}
    for batch, height, width, side, cols, scale, shift in (
        (2, 8, 12, 4, 3, 2, -1),
        (1, 28, 14, 14, 3, 2, -1),
        (2, 8, 8, 2, 16, 1, 0),
    ):
        part = {"op": "blocks", "batch": batch, "height": height, "width": width}
        part |= {"side": side, "cols": cols}
        yield part | {"scale": scale, "shift": shift}
    for batch, rows, cols, guided, kept in (
        (1, 8, 32, False, False),
        (2, 10, 32, True, False),
        (2, 7, 8, True, True),
    ):
        part = {"op": "step", "batch": batch, "rows": rows, "cols": cols}
        part |= {"time": 0.7, "dt": -0.1, "guidance": 3.25}
        yield part | {"guided": guided, "kept": kept}


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
    yield from tokens()


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
