# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/*.msgpack with PyPI's msgpack, knowing nothing of the C."""

import pathlib

import msgpack
from messages import KINDS, SINGLE_FLOAT

FOLDER = pathlib.Path(__file__).parent


def encode(kind, message):
    return msgpack.packb(message, use_single_float=kind in SINGLE_FLOAT)


def files():
    """(path, bytes) of every golden file."""
    for kind, cases in KINDS.items():
        for case, message in cases.items():
            yield FOLDER / f"{kind}_{case}.msgpack", encode(kind, message)


if __name__ == "__main__":
    for path, data in files():
        path.write_bytes(data)
        print(f"{path.name}: {len(data)} bytes")
