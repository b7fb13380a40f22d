# SPDX-License-Identifier: Apache-2.0
"""LeRobot 0.4 reads what we recorded as 0.6 does, and we go on with what it did.

`tools/setup --lerobot` puts its code, without what it depends on, beside the
environment of 0.6, whose packages serve both.
"""

import importlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from dataset_frames import CAMERAS, check_ours, same_row
from dataset_recorder import Work, record
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from test_dataset_resumed import rows_of, we_go_on

HERE = pathlib.Path(__file__).parent
OLDER = next(pathlib.Path(sys.prefix).glob("lerobot-0.4.*"), None)


def obstacle():
    if OLDER is None:
        return "LeRobot 0.4 is not there: tools/setup --lerobot"
    try:
        importlib.import_module("torchcodec")  # its only way to read videos
    except (ImportError, OSError, RuntimeError):
        return "torchcodec does not load: tools/setup --test brings libavdevice"
    return ""


WHY_NOT = obstacle()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def older(*words):
    done = subprocess.run(
        [sys.executable, HERE / "older.py", *words],
        env=os.environ | {"PYTHONPATH": f"{OLDER}:{HERE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def older_rows(folder):
    out = folder.with_suffix(".rows")
    older("read", folder, out)
    saved = torch.load(out, weights_only=False)
    assert saved["version"].startswith("0.4.")
    return saved["rows"], saved["stats"]


def same_statistics(stats, others):
    assert stats.keys() == others.keys()
    for key, of in stats.items():
        for name, value in of.items():
            np.testing.assert_array_equal(value, others[key][name])


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_both_read_the_same(tmp_path, codec):
    folder = tmp_path / "arm"
    finished = record(folder, 3, Work(episodes=3, frames=9, codec=codec)).finished
    rows, stats = older_rows(folder)
    for row, other in zip(rows, rows_of(folder), strict=True):
        same_row(row, other)
    check_ours(rows, finished)
    assert {tuple(row[key].shape) for row in rows for key in CAMERAS} == {(3, 64, 64)}
    same_statistics(stats, LeRobotDataset("test/set", root=folder).meta.stats)


def test_we_go_on_with_what_it_recorded(tmp_path):
    folder = tmp_path / "set"
    older("record", folder)
    before, _ = older_rows(folder)
    finished = we_go_on(folder, 1)
    after, _ = older_rows(folder)
    for row, other in zip(before, after, strict=False):
        same_row(row, other)
    check_ours(after, finished)
    check_ours(rows_of(folder), finished)
