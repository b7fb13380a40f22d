# SPDX-License-Identifier: Apache-2.0
"""LeRobot and our tables read each other's datasets, every value of them."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from lerobot.datasets.lerobot_dataset import LeRobotDataset

pytestmark = pytest.mark.skipif(
    "TENDON_BIN" not in os.environ, reason="needs the programs beside TENDON_BIN"
)

JOINTS = [f"joint_{i}.pos" for i in range(6)]
PLAIN = {
    "observation.state": {"dtype": "float32", "shape": (6,), "names": JOINTS},
    "action": {"dtype": "float32", "shape": (6,), "names": JOINTS},
    "reward": {"dtype": "float32", "shape": (1,), "names": None},
    "done": {"dtype": "bool", "shape": (1,), "names": None},
    "flags": {"dtype": "bool", "shape": (3,), "names": None},
    "count": {"dtype": "int64", "shape": (1,), "names": None},
    "exact": {"dtype": "float64", "shape": (2,), "names": None},
}
ODD = {
    "small": {"dtype": "uint8", "shape": (2,), "names": None},
    "matrix": {"dtype": "float32", "shape": (2, 3), "names": None},
    "note": {"dtype": "string", "shape": (1,), "names": None},
}
SIDES = ["height", "width", "channels"]
TASKS = ["pick", "place it there, gently", "hände hoch"]


def camera(dtype):
    return {
        "observation.images.top": {"dtype": dtype, "shape": (48, 64, 3), "names": SIDES}
    }


def value_of(rng, feature, i):
    shape, dtype = feature["shape"], feature["dtype"]
    if dtype in ("image", "video"):
        rows = np.linspace(0, 255, shape[0])[:, None, None]
        return np.broadcast_to((rows + 9 * i) % 256, shape).astype(np.uint8)
    if dtype == "string":
        return f"frame {i} of an episode"
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "bool" else 200, shape).astype(dtype)


def record(folder, features, episodes=3):
    rng = np.random.default_rng(1)
    videos = any(feature["dtype"] == "video" for feature in features.values())
    dataset = LeRobotDataset.create(
        "test/set",
        fps=30,
        features=features,
        root=folder,
        robot_type="arm",
        use_videos=videos,
    )
    for episode in range(episodes):
        for i in range(20 + episode):
            values = {
                key: value_of(rng, feature, i) for key, feature in features.items()
            }
            dataset.add_frame({**values, "task": TASKS[(episode + i // 10) % 3]})
        dataset.save_episode()
    dataset.finalize()
    return LeRobotDataset("test/set", root=folder)


def program(name, *arguments):
    path = pathlib.Path(os.environ["TENDON_BIN"]).parent / name
    return subprocess.run(
        [path, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def read(folder, out):
    out.mkdir()
    done = program("dataset_read", folder, out)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def same_values(ours, theirs, features):
    for key in features:
        expected = theirs[key]
        if isinstance(expected, str):
            assert ours[key] == [expected], key
        else:
            expected = expected.numpy()
            got = np.array(ours[key], expected.dtype).reshape(expected.shape)
            np.testing.assert_array_equal(got, expected, err_msg=key)
    assert ours["task"] == theirs["task"]


def picture(out, key, row):
    bytes_ = (out / f"{key}-{row}.rgb").read_bytes()
    return np.frombuffer(bytes_, np.uint8).reshape(48, 64, 3)


def as_rgb(tensor):
    return np.rint(tensor.numpy().transpose(1, 2, 0) * 255).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["image", "video"])
def test_every_value_that_lerobot_wrote_is_read(tmp_path, dtype):
    features = PLAIN | ODD | camera(dtype)
    theirs = record(tmp_path / "set", features)
    rows = read(tmp_path / "set", tmp_path / "out")
    assert len(rows) == len(theirs) == 63
    keys = [
        key
        for key, each in theirs.features.items()
        if each["dtype"] not in ("image", "video")
    ]
    for row in range(len(theirs)):
        item = theirs[row]
        same_values(rows[row], item, keys)
        ours = picture(tmp_path / "out", "observation.images.top", row)
        expected = as_rgb(item["observation.images.top"])
        if dtype == "image":
            np.testing.assert_array_equal(ours, expected)
        else:
            assert np.abs(ours.astype(int) - expected).max() <= 3, row


def test_tables_that_pandas_wrote_are_read(tmp_path):
    """As in converted datasets: one row group, lists of any length."""
    theirs = record(tmp_path / "set", PLAIN)
    paths = list((tmp_path / "set").glob("data/*/*.parquet"))
    assert paths
    for path in paths:
        pandas.read_parquet(path).to_parquet(path)
        assert pq.read_metadata(path).num_row_groups == 1
    rows = read(tmp_path / "set", tmp_path / "out")
    for row, item in zip(rows, theirs, strict=True):
        same_values(row, item, theirs.features)


@pytest.fixture
def copied(tmp_path):
    theirs = record(tmp_path / "set", PLAIN)
    for folder in ("data/chunk-000", "meta/episodes/chunk-000"):
        (tmp_path / "copy" / folder).mkdir(parents=True)
    done = program("dataset_copy", tmp_path / "set", tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    return theirs, tmp_path / "set", tmp_path / "copy"


def test_lerobot_reads_every_value_that_we_wrote(copied):
    theirs, _, copy = copied
    ours = LeRobotDataset("test/copy", root=copy)
    assert len(ours) == len(theirs)
    assert ours.num_episodes == 3
    for row in range(len(theirs)):
        mine, item = ours[row], theirs[row]
        assert mine.keys() == item.keys()
        assert mine["task"] == item["task"]
        for key in theirs.features:
            assert mine[key].dtype == item[key].dtype
            np.testing.assert_array_equal(
                mine[key].numpy(), item[key].numpy(), err_msg=key
            )


def test_files_have_the_form_of_lerobots(copied):
    _, theirs, ours = copied
    data = "data/chunk-000/file-000.parquet"
    left, right = (pq.ParquetFile(root / data) for root in (theirs, ours))
    assert right.schema_arrow.equals(left.schema_arrow, check_metadata=False)
    assert right.schema.equals(left.schema)
    assert right.metadata.num_row_groups == 3
    notes = [
        json.loads(each.schema_arrow.metadata[b"huggingface"]) for each in (left, right)
    ]
    assert notes[0]["info"] == notes[1]["info"]
    group = right.metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"SNAPPY"}
    tasks = [
        pandas.read_parquet(root / "meta/tasks.parquet") for root in (theirs, ours)
    ]
    pandas.testing.assert_frame_equal(*tasks)
    assert tasks[1].index.name == "task"
    infos = [
        json.loads((root / "meta/info.json").read_text()) for root in (theirs, ours)
    ]
    assert infos[0] == infos[1]
    assert list(infos[0]) == list(infos[1])


def test_episodes_are_those_of_lerobot(copied):
    theirs, _, copy = copied
    ours = LeRobotDataset("test/copy", root=copy).meta.episodes
    for mine, item in zip(ours, theirs.meta.episodes, strict=True):
        assert mine == item


@pytest.mark.parametrize("where", ["data", "meta/episodes"])
def test_a_table_that_is_cut_short_is_said(tmp_path, where):
    record(tmp_path / "set", PLAIN, episodes=1)
    path = tmp_path / "set" / where / "chunk-000/file-000.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    (tmp_path / "out").mkdir()
    done = program("dataset_read", tmp_path / "set", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("FORMAT: ") and "file-000.parquet" in done.stderr
