# SPDX-License-Identifier: Apache-2.0
"""Writes fuzz/seeds/{safetensors,checkpoint}/: what a checkpoint folder holds, good
and bad."""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "tests/golden/checkpoints"
FLOWS = HERE.parent / "tests/golden/flows"


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


DEEP = b'{"t":' + b"[" * 5000 + b"]" * 5000 + b"}"
SAFETENSORS = {
    "empty": b"",
    "no_tensors": tensors({}),
    "two": tensors(
        {"a": one(), "b": one("BF16", (2, 2), (8, 16)), "__metadata__": {"x": "y"}},
        bytes(range(16)),
    ),
    "every_dtype": tensors(
        {
            dtype: one(dtype, (1,), (8 * i, 8 * i + 8))
            for i, dtype in enumerate(("F64", "I64"))
        }
        | {"F16": one("F16", (4,), (16, 24)), "BOOL": one("BOOL", (8,), (24, 32))},
        bytes(32),
    ),
    "nan": tensors({"a": one()}, struct.pack("<2f", 1, float("nan"))),
    "of_nothing": tensors({"a": one(shape=(0, 3), offsets=(0, 0))}),
    "scalar": tensors({"a": one("I64", (), (0, 8))}, bytes(8)),
    "cut_short": tensors({"a": one()}, bytes(4)),
    "header_cut_short": tensors({"a": one()})[:20],
    "header_of_all": tensors({"a": one()}, length=2**64 - 1),
    "header_of_16m": tensors({"a": one()}, length=2**24),
    "overlap": tensors({"a": one(), "b": one(offsets=(4, 12))}, bytes(12)),
    "hole": tensors({"a": one(), "b": one(offsets=(12, 20))}, bytes(20)),
    "bytes_of_nobody": tensors({"a": one()}, bytes(16)),
    "offsets_backwards": tensors({"a": one(offsets=(8, 0))}, bytes(8)),
    "offsets_negative": tensors({"a": one(offsets=(-8, 0))}, bytes(8)),
    "offsets_beyond_64_bits": tensors({"a": one(offsets=(0, 2**64))}, bytes(8)),
    "sides_overflow": tensors({"a": one(shape=(2**62, 2**62))}, bytes(8)),
    "unknown_dtype": tensors({"a": one("F4")}, bytes(8)),
    "not_aligned": tensors(
        {"a": one("U8", (1,), (0, 1)), "b": one(offsets=(1, 9))}, bytes(9)
    ),
    "nine_sides": tensors({"a": one(shape=(1,) * 8 + (2,))}, bytes(8)),
    "a_name_twice": tensors(b'{"a":{},"a":{}}'),
    "nested_deeply": tensors(DEEP),
    "not_utf8": tensors(b'{"\xff":1}'),
}


def checkpoint_seeds():
    files = {"c": "config", "b": "policy_preprocessor", "a": "policy_postprocessor"}
    for folder in sorted(GOLDEN.iterdir()):
        for letter, name in files.items():
            text = (folder / f"{name}.json").read_text()
            small = json.dumps(json.loads(text), separators=(",", ":"))
            yield f"{name}_{folder.name}", letter.encode() + small.encode()
    for name in ("smolvla-odd", "pi0-relative", "pi05-trained"):
        config = json.loads((FLOWS / name / "config.json").read_text())
        small = json.dumps(config, separators=(",", ":"))
        yield f"config_{name}", b"c" + small.encode()
    yield "config_cut_short", b'c{"type":"act","input_features":{'
    yield "config_deep", b"c" + DEEP
    yield "config_no_object", b"c[]"
    yield "config_unknown", b'c{"type":"tdmpc"}'
    yield "steps_no_list", b'b{"steps":{}}'
    yield "steps_unknown", b'b{"steps":[{"registry_name":"crop","config":{}}]}'
    yield "steps_no_object", b'b{"steps":[7]}'


def write(name, seeds):
    folder = HERE / "seeds" / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, data in seeds:
        (folder / seed).write_bytes(data)


if __name__ == "__main__":
    write("safetensors", SAFETENSORS.items())
    write("checkpoint", checkpoint_seeds())
