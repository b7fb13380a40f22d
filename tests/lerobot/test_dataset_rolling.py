# SPDX-License-Identifier: Apache-2.0
"""Files that have grown enough are followed by the next, and LeRobot reads across
them. The limits are 1 MB in place of 100 and 200, with two files a folder."""

import dataclasses
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from dataset_recorder import Work, looked_at, record
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from tendon_process import run

MB = 1 << 20
CAMERA = "observation.images.front"
SMALL = {"data_files_size_in_mb": 1, "video_files_size_in_mb": 1, "chunks_size": 2}


def recorded(folder, work):
    """A first episode, then more with small limits; gives what was finished."""
    few = dataclasses.replace(work, episodes=1, frames=1)
    finished = record(folder, 1, few).finished
    path = folder / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | SMALL))
    ran = record(folder, 2, work)
    assert ran.code == 0, ran.text
    assert run("dataset", "verify", folder).returncode == 0
    return finished | ran.finished


def places_of(dataset, prefix):
    """(chunk, file) of each episode."""
    return [
        (episode[f"{prefix}/chunk_index"], episode[f"{prefix}/file_index"])
        for episode in dataset.meta.episodes
    ]


def check_files(folder, places):
    """They follow one another without a gap, two a chunk, and are as large as they
    may be."""
    used = sorted(set(places))
    assert places == sorted(places)
    assert used == [(i // 2, i % 2) for i in range(len(used))]
    assert len(used) >= 3  # of two chunks
    files = {
        tuple(map(int, re.findall(r"-(\d{3})", str(path.relative_to(folder))))): path
        for path in folder.rglob("*-*/file-*")
    }
    assert sorted(files) == used
    for place in used:
        if places.count(place) > 1:
            assert files[place].stat().st_size < 1.1 * MB


def rows_in(folder, place):
    path = folder / "chunk-{:03d}/file-{:03d}.parquet".format(*place)
    return pq.read_metadata(path).num_rows


def test_rows_go_on_in_the_next_file(tmp_path):
    folder = tmp_path / "arm"
    finished = recorded(folder, Work(episodes=8, frames=30_000, cameras=0))
    dataset = LeRobotDataset("test/set", root=folder)
    places = places_of(dataset, "data")
    check_files(folder / "data", places)
    for place in set(places):
        of = [finished[n][2] for n, at in enumerate(places) if at == place]
        assert rows_in(folder / "data", place) == sum(of)
    table = dataset.hf_dataset.with_format("numpy")[:]
    np.testing.assert_array_equal(table["index"], np.arange(len(dataset)))
    expected = [
        (seed, ordinal, frame)
        for _, (seed, ordinal, frames) in sorted(finished.items())
        for frame in range(frames)
    ]
    np.testing.assert_array_equal(table["observation.state"][:, :3], expected)
    np.testing.assert_array_equal(table["action"], -table["observation.state"])


def test_episodes_go_on_in_the_next_file(tmp_path):
    """Their statistics are large where there are many channels."""
    folder = tmp_path / "arm"
    finished = recorded(folder, Work(episodes=40, frames=3, cameras=0, how="wide"))
    dataset = LeRobotDataset("test/set", root=folder)
    places = places_of(dataset, "meta/episodes")
    check_files(folder / "meta/episodes", places)
    for place in set(places):
        assert rows_in(folder / "meta/episodes", place) == places.count(place)
    lengths = [frames for _, (_, _, frames) in sorted(finished.items())]
    assert list(dataset.meta.episodes["length"]) == lengths
    assert len(dataset) == sum(lengths)
    for number, (seed, ordinal, _) in sorted(finished.items()):
        row = dataset[dataset.meta.episodes["dataset_from_index"][number]]
        assert row["observation.state"][:3].tolist() == [seed, ordinal, 0]
    assert looked_at(folder) == (finished, 0)  # our own reader


@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_pictures_go_on_in_the_next_file(tmp_path, codec):
    folder = tmp_path / "arm"
    work = Work(episodes=12, frames=600, cameras=1, codec=codec, how="noisy")
    finished = recorded(folder, work)
    dataset = LeRobotDataset("test/set", root=folder)
    check_files(folder / "videos" / CAMERA, places_of(dataset, f"videos/{CAMERA}"))
    first = 0
    for number, (_, _, frames) in sorted(finished.items()):
        for i in {first, first + frames // 2, first + frames - 1}:
            row = dataset[i]
            assert row["episode_index"] == number
            level = int(row["observation.state"][3]) & 0xFF
            assert abs(row[CAMERA].mean() * 255 - (level / 2 + 63.5)) < 8
        first += frames
