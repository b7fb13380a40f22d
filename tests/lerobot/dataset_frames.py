# SPDX-License-Identifier: Apache-2.0
"""Datasets of what dataset_log records, as any LeRobot writes and reads them."""

import numpy as np
import torch

SIDE = 64
NAMES = ["seed", "ordinal", "frame", "noise"]  # of dataset_log
CAMERAS = ["observation.images.front", "observation.images.wrist"]
TASKS = ["push it", "pick it up", "hände hoch"]  # one is dataset_log's as well


def vector(**changes):
    return {"dtype": "float32", "shape": (len(NAMES),), "names": NAMES} | changes


def camera(**changes):
    names = ["height", "width", "channels"]
    return {"dtype": "video", "shape": (SIDE, SIDE, 3), "names": names} | changes


def features(**changes):
    """As LeRobot's recorder orders them: action, state, pictures."""
    plain = {"action": vector(), "observation.state": vector()}
    return plain | {key: camera() for key in CAMERAS} | changes


def frame_of(wanted, rng, i):
    def value(feature):
        if feature["dtype"] in ("image", "video"):
            return np.full(feature["shape"], 40 + 3 * i, np.uint8)
        return rng.standard_normal(feature["shape"]).astype(feature["dtype"])

    return {key: value(feature) for key, feature in wanted.items()}


def add_episode(dataset, wanted, number, frames=6):
    """With two tasks in it."""
    rng = np.random.default_rng(number)
    for i in range(frames):
        task = TASKS[(number + i // 3) % len(TASKS)]
        dataset.add_frame(frame_of(wanted, rng, i) | {"task": task})
    dataset.save_episode()


def same_row(row, other):
    assert row.keys() == other.keys()
    for key, value in row.items():
        if isinstance(value, torch.Tensor):
            assert value.dtype == other[key].dtype
            assert torch.equal(value, other[key]), key
        else:
            assert value == other[key], key


def check_ours(rows, finished):
    """The rows that dataset_log recorded are there, value for value."""
    for number, (seed, ordinal, frames) in finished.items():
        found = [row for row in rows if row["episode_index"] == number]
        assert [int(row["frame_index"]) for row in found] == list(range(frames))
        for i, row in enumerate(found):
            state = row["observation.state"].tolist()
            assert state[:3] == [seed, ordinal, i]
            assert row["action"].tolist() == [-value for value in state]
            level = int(state[3]) & 0xFF
            for key in CAMERAS:
                assert (row[key] * 255 - level).abs().max() < 6
            assert row["task"] == ("put it down" if ordinal % 2 else "pick it up")
