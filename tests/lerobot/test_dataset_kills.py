# SPDX-License-Identifier: Apache-2.0
"""LeRobot itself opens what a killed recorder left, finished episodes and all."""

import random

import pytest
from dataset_recorder import Ledger, Work, record

pytest.importorskip("datasets")

KILLS = 3


def load(folder):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    return LeRobotDataset("tendon/kills", root=folder)


def look_at(folder, there):
    """Every frame of it, pictures and all."""
    dataset = load(folder)
    assert dataset.num_episodes == len(there)
    assert dataset.num_frames == sum(frames for _, _, frames in there.values())
    for i in range(dataset.num_frames):
        row = dataset[i]
        seed, ordinal, _ = there[int(row["episode_index"])]
        assert row["index"] == i
        assert row["observation.state"][:3].tolist() == [
            seed,
            ordinal,
            row["frame_index"],
        ]
        assert row["action"][0] == -seed
        assert row["observation.images.front"].shape == (3, 64, 64)
        assert row["task"] == ("put it down" if ordinal % 2 else "pick it up")


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_lerobot_opens_what_is_left(tmp_path, codec):
    draw = random.Random(7)
    work = Work(episodes=3, frames=10, codec=codec)
    whole_s = record(tmp_path / "timed", 0, work).seconds
    ledger = Ledger(tmp_path / "arm")
    ledger.add(record(ledger.folder, 1, work))
    for i in range(KILLS // 2):
        ledger.add(
            record(
                ledger.folder, i + 2, work, kill_after_s=draw.uniform(0.1, 1) * whole_s
            )
        )
        look_at(ledger.folder, ledger.check())
    ledger.repair(ledger.check())
    look_at(ledger.folder, ledger.check())
