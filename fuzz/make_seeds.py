# SPDX-License-Identifier: Apache-2.0
"""Writes fuzz/seeds/ for the decoders of messages: the golden ones, and bad ones.

The bad ones are made from the full message of each kind, so that a fuzzer
starts deep inside.
"""

import copy
import pathlib
import sys

import msgpack

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "golden"))

import make
import messages

LAST = b"THE LAST ONE"
NAN = b"\x00\x00\xc0\x7f"

# What goes where a value was.
BYTES = {
    "array_of_2g": b"\xdd\x80\x00\x00\x00",
    "map_of_4g": b"\xdf\xff\xff\xff\xff",
    "text_of_2g": b"\xdb\x80\x00\x00\x00",
    "binary_of_4g": b"\xc6\xff\xff\xff\xff",
    "nested_deeply": b"\x91" * 60 + b"\xc0",
    "extension": b"\xd6\xff\x00\x00\x00\x00",
    "never_used": b"\xc1",
    "bad_utf8": b"\xa3\xed\xa0\x80",
    "nan": b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
}


def tensors_of(message):
    for value in message.values():
        if isinstance(value, dict):
            if "dtype" in value and "data" in value:
                yield value
            yield from tensors_of(value)


def with_last_value(encode, message, replacement):
    """The message with the bytes of its last value replaced."""
    *_, last = message
    data = encode({**message, last: LAST})
    return data[: -len(encode(LAST))] + replacement


def broken_tensors(encode, message):
    for name, change in {
        "wrong_dtype": {"dtype": "<c8"},
        "wrong_shape": {"shape": [3, 1 << 31]},
        "nine_sides": {"shape": [1] * 9},
        "not_finite": {"dtype": "<f4", "shape": [1], "data": NAN},
    }.items():
        broken = copy.deepcopy(message)
        for tensor in tensors_of(broken):
            tensor.update(change)
            yield name, encode(broken)
            break


def bad(encode, message):
    whole = encode(message)
    yield "empty", b""
    yield "cut_short", whole[: len(whole) // 2]
    yield "one_byte_more", whole + b"\xc0"
    yield "newer_schema", encode({**message, "schema": 2})
    yield "unknown_fields", encode({"x": [1, {"y": None}], **message})
    yield "not_a_map", encode([message])
    yield "key_of_number", encode({7: 7, **message})
    yield "schema_twice", encode_pairs(encode, [*message.items(), ("schema", 1)])
    for name, replacement in BYTES.items():
        yield name, with_last_value(encode, message, replacement)
    yield from broken_tensors(encode, message)


def encode_pairs(encode, pairs):
    body = b"".join(encode(key) + encode(value) for key, value in pairs)
    return msgpack.Packer().pack_map_header(len(pairs)) + body


def seeds(kind, cases):
    def encode(value):
        return make.encode(kind, value)

    for case, message in cases.items():
        yield case, encode(message)
    yield from bad(encode, cases["full"])


def in_pieces(cases):
    """Observations with images that stay in the pieces; the first byte cuts."""
    raw = {"codec": "raw", "shape": [30, 20, 3], "data": b"r" * 1800}
    images = {"top": b"j" * 1500, "wrist": raw, "small": b"s" * 40}
    full = {**cases["full"], "images": images}
    for name, data in seeds("obs", {**cases, "full": full}):
        for step in (3, 40, 70):
            yield f"{name}_{step}", bytes([step]) + data


def write(kind, made):
    folder = HERE / "seeds" / kind
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in made:
        (folder / name).write_bytes(data)
    print(f"{kind}: {len(list(folder.iterdir()))} seeds")


if __name__ == "__main__":
    for kind, cases in messages.KINDS.items():
        write(kind, seeds(kind, cases))
    write("obs_pieces", in_pieces(messages.KINDS["obs"]))
