# SPDX-License-Identifier: Apache-2.0
"""Numbers that Python and C make alike from a name: what they are need not be
kept, only what comes of them. src/engine/native/hashed.c does the same.

Number i of a name is splitmix64 of FNV-1a(name) + (i + 1) * 0x9E3779B97F4A7C15.
Its upper 24 bits are a float from -1 to 1, its upper 8 bits a byte.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _bits(name: str, count: int) -> np.ndarray:
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def floats(name: str, *shape: int) -> np.ndarray:
    bits = _bits(name, int(np.prod(shape)))
    whole = (bits >> np.uint64(40)).astype(np.int64) - 2**23
    return (whole.astype(np.float32) / np.float32(2**23)).reshape(shape)


def pixels(name: str, *shape: int) -> np.ndarray:
    bits = _bits(name, int(np.prod(shape)))
    return (bits >> np.uint64(56)).astype(np.uint8).reshape(shape)


def weights(name: str, *shape: int) -> np.ndarray:
    """As a trained network's might be: matrices keep the size of what they are
    given about as it is, norms are near 1 (Gemma's are what is added to 1), biases
    near 0."""
    values = floats(name, *shape)
    if name.endswith("running_var"):
        return np.float32(1) + values / np.float32(2)
    if len(shape) > 1:
        inputs = int(np.prod(shape[1:]))
        return values / np.float32(2 ** max(0, (inputs.bit_length() - 2) // 2))
    added = "gemma" in name and "vision" not in name
    if name.endswith("norm.weight") and added:
        return values / np.float32(4)
    if name.endswith(".weight"):
        return np.float32(1) + values / np.float32(4)
    return values / np.float32(8)
