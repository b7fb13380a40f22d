# SPDX-License-Identifier: Apache-2.0
"""A dataset that LeRobot wrote, as CSV and JPEG: every value, every picture."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

LeRobotDataset = pytest.importorskip("lerobot.datasets.lerobot_dataset").LeRobotDataset
pytestmark = pytest.mark.skipif(
    "TENDON_BIN" not in os.environ, reason="needs TENDON_BIN"
)

CAMERA = "observation.images.top"
JOINTS = ["lift.pos", "turn, left.pos"]
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": (2,), "names": JOINTS},
    "action": {"dtype": "float32", "shape": (2,), "names": JOINTS},
    "reward": {"dtype": "float32", "shape": (1,), "names": None},
    "done": {"dtype": "bool", "shape": (1,), "names": None},
    CAMERA: {
        "dtype": "video",
        "shape": (64, 96, 3),
        "names": ["height", "width", "channels"],
    },
}
TASKS = ["pick", 'place it, "gently"']


def frame(rng, i):
    slope = np.linspace(0, 200, 64)[:, None, None] + 5 * i
    return {
        "observation.state": rng.standard_normal(2).astype(np.float32),
        "action": rng.standard_normal(2).astype(np.float32),
        "reward": rng.standard_normal(1).astype(np.float32),
        "done": np.array([i % 3 == 0]),
        CAMERA: np.broadcast_to(slope % 256, (64, 96, 3)).astype(np.uint8),
    }


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets") / "set"
    dataset = LeRobotDataset.create("test/set", fps=30, features=FEATURES, root=folder)
    rng = np.random.default_rng(2)
    episodes = [[frame(rng, i) for i in range(length)] for length in (5, 8)]
    for number, frames in enumerate(episodes):
        for values in frames:
            dataset.add_frame({**values, "task": TASKS[number]})
        dataset.save_episode()
    dataset.finalize()
    return folder, episodes


def export(*words, code=0):
    command = [os.environ["TENDON_BIN"], "dataset", "export", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def rows_of(path):
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


def numbers(row, key):
    return [row[f"{key}/{name}"] for name in JOINTS]


def test_every_value_and_every_picture(recorded, tmp_path):
    folder, episodes = recorded
    out = tmp_path / "out"
    sums = json.loads(export(folder, out, "--json"))
    assert (sums["episodes"], sums["frames"], sums["pictures"]) == (2, 13, 13)
    table = rows_of(out / "episodes.csv")
    assert [(row["frames"], row["tasks"]) for row in table] == [
        ("5", TASKS[0]),
        ("8", TASKS[1]),
    ]
    for number, frames in enumerate(episodes):
        rows = rows_of(out / f"episode-{number:06d}.csv")
        for i, (row, values) in enumerate(zip(rows, frames, strict=True)):
            assert (row["frame"], row["task"]) == (str(i), TASKS[number])
            assert abs(float(row["timestamp_s"]) - i / 30) < 1e-6
            for key in ("observation.state", "action"):
                cells = np.array(numbers(row, key), dtype=np.float32)
                assert np.array_equal(cells, values[key])
            assert np.float32(row["reward"]) == values["reward"][0]
            assert row["done"] == str(int(values["done"][0]))
            picture = out / CAMERA / f"episode-{number:06d}" / f"frame-{i:06d}.jpg"
            shown = np.asarray(Image.open(picture), dtype=float)
            assert np.abs(shown - values[CAMERA]).mean() < 6


def test_some_episodes_and_no_pictures(recorded, tmp_path):
    folder, _ = recorded
    out = tmp_path / "out"
    export(folder, out, "--episodes", "1", "--no-pictures")
    assert sorted(path.name for path in out.iterdir()) == [
        "episode-000001.csv",
        "episodes.csv",
    ]


@pytest.mark.parametrize(
    "wanted", ["2", "1:0", "x", "0:", "-1", "0:99999999999999999999"]
)
def test_episodes_that_are_not_there(recorded, tmp_path, wanted):
    out = tmp_path / "out"
    assert "there are 0 to 1" in export(
        recorded[0], out, f"--episodes={wanted}", code=1
    )
    assert not out.exists()


def test_a_folder_with_something_in_it_stays_as_it_is(recorded, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    assert "empty folder" in export(recorded[0], tmp_path, code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_is_no_dataset(tmp_path):
    assert str(tmp_path) in export(tmp_path, tmp_path / "out", code=1)
