# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/stats.f64: statistics of columns and pictures as LeRobot
computes them, nine of a channel each, case after case. With LeRobot's Python:

    build/venv-lerobot/bin/python tests/golden/make_stats.py
"""

import pathlib

import numpy as np
from lerobot.datasets.compute_stats import get_feature_stats

FILE = pathlib.Path(__file__).parent / "stats.f64"
NAMES = ["min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"]
# The same tables are in src/dataset/stats_test.c: type,
# rows, channels, scale and offset; pictures, height and width.
COLUMNS = [
    ("float32", 1, 2, 3.0, -1.0),
    ("float32", 2, 1, 3.0, -1.0),
    ("float32", 7, 1, 3.0, -1.0),
    ("float32", 129, 1, 360.0, -180.0),
    ("float32", 1800, 1, 360.0, -180.0),
    ("float32", 1800, 6, 360.0, -180.0),
    ("float32", 300, 3, 0.001, 1000.0),
    ("float32", 50, 2, 0.0, 127.0),
    ("float64", 1800, 1, 60.0, 0.0),
    ("int64", 1800, 1, 1800.0, 1e7),
    ("bool", 300, 1, 1.0, 0.0),
]
PICTURES = [(1, 4, 6), (20, 48, 64), (100, 120, 160)]


def share(count):
    """Numbers in [0, 1) that C makes as well."""
    i = np.arange(count, dtype=np.uint64)
    return ((i * 2654435761 + 12345) % (1 << 32)).astype(np.float64) / (1 << 32)


def column(dtype, rows, channels, scale, offset):
    values = offset + scale * share(rows * channels)
    if dtype == "bool":
        return (values >= 0.5).reshape(rows, channels)
    return values.astype(dtype).reshape(rows, channels)


def pictures(count, height, width):
    """Of shape count x RGB x height x width; brightness drifts."""
    shape = (count, height, width, 3)
    values = share(int(np.prod(shape))).reshape(shape) * 90
    values += np.arange(count).reshape(count, 1, 1, 1)
    return values.astype(np.uint8).transpose(0, 3, 1, 2)


def statistics():
    for case in COLUMNS:
        yield get_feature_stats(column(*case), axis=0, keepdims=False), 1.0
    for case in PICTURES:
        yield get_feature_stats(pictures(*case), axis=(0, 2, 3), keepdims=True), 255.0


if __name__ == "__main__":
    parts = [
        np.asarray(stats[name], dtype=np.float64).ravel() / scale
        for stats, scale in statistics()
        for name in NAMES
    ]
    FILE.write_bytes(np.concatenate(parts).astype("<f8").tobytes())
    print(f"{FILE.name}: {sum(map(len, parts))} numbers")
