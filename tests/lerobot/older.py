# SPDX-License-Identifier: Apache-2.0
"""An older LeRobot at work, whose package comes first on the path.

usage: older.py read FOLDER OUT     every frame of a dataset, into a file
       older.py record FOLDER      two episodes of what dataset_log records, too
"""

import importlib.metadata
import sys

import torch
from dataset_frames import add_episode, features
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def read(folder, out):
    dataset = LeRobotDataset("test/set", root=folder)
    saved = {
        "version": importlib.metadata.version("lerobot"),
        "rows": [dataset[i] for i in range(len(dataset))],
        "stats": dataset.meta.stats,
    }
    torch.save(saved, out)


def record(folder):
    dataset = LeRobotDataset.create(
        "test/set",
        fps=30,
        features=features(),
        root=folder,
        robot_type="so101_follower",
        vcodec="h264",
    )
    for number in range(2):
        add_episode(dataset, features(), number)
    dataset.finalize()


if __name__ == "__main__":
    {"read": read, "record": record}[sys.argv[1]](*sys.argv[2:])
