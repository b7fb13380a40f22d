# SPDX-License-Identifier: Apache-2.0
"""Our recorder goes on with what LeRobot recorded, and LeRobot with ours: all of it
is read, and nothing that was there before has changed."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_frames import (
    CAMERAS,
    SIDE,
    TASKS,
    add_episode,
    camera,
    check_ours,
    features,
    same_row,
    vector,
)
from dataset_recorder import Work, record
from lerobot.configs.video import RGBEncoderConfig
from lerobot.datasets import compute_stats
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from tendon_process import run

ENCODERS = {"av1": "libsvtav1", "h264": "h264"}


def create(folder, wanted, codec="h264", **more):
    videos = any(feature["dtype"] == "video" for feature in wanted.values())
    return LeRobotDataset.create(
        "test/set",
        fps=30,
        features=wanted,
        root=folder,
        robot_type="so101_follower",
        use_videos=videos,
        rgb_encoder=RGBEncoderConfig(vcodec=ENCODERS[codec]),
        **more,
    )


def lerobot_records(folder, wanted=None, codec="h264", episodes=2):
    wanted = wanted or features()
    dataset = create(folder, wanted, codec)
    for number in range(episodes):
        add_episode(dataset, wanted, number)
    dataset.finalize()


def lerobot_goes_on(folder, codec):
    encoder = RGBEncoderConfig(vcodec=ENCODERS[codec])
    dataset = LeRobotDataset.resume("test/set", root=folder, rgb_encoder=encoder)
    add_episode(dataset, features(), dataset.num_episodes)
    dataset.finalize()


def we_go_on(folder, seed, codec="h264", episodes=2):
    ran = record(folder, seed, Work(episodes=episodes, frames=9, codec=codec))
    assert ran.code == 0, ran.text
    return ran.finished


def rows_of(folder):
    dataset = LeRobotDataset("test/set", root=folder)
    return [dataset[i] for i in range(len(dataset))]


def files_of(folder):
    """What nobody may write again: all files but those about the whole."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "meta"
    }


def info_of(folder):
    return json.loads((folder / "meta/info.json").read_text())


def edit_info(folder, change):
    info = info_of(folder)
    change(info)
    (folder / "meta/info.json").write_text(json.dumps(info))


def sound(folder):
    done = run("dataset", "verify", folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("codec", ENCODERS)
def test_each_goes_on_with_what_the_other_recorded(tmp_path, codec):
    folder = tmp_path / "set"
    lerobot_records(folder, codec=codec)
    kept = {}
    for seed in (1, 2):
        rows, files = rows_of(folder), files_of(folder)
        kept |= we_go_on(folder, seed, codec)
        both = rows_of(folder)
        for row, other in zip(rows, both, strict=False):
            same_row(row, other)
        check_ours(both, kept)
        assert files.items() <= files_of(folder).items()
        assert [int(row["index"]) for row in both] == list(range(len(both)))
        sound(folder)
        lerobot_goes_on(folder, codec)
        for row, other in zip(both, rows_of(folder), strict=False):
            same_row(row, other)
        sound(folder)
    tasks = LeRobotDataset("test/set", root=folder).meta.tasks
    assert sorted(tasks.index) == sorted({*TASKS, "put it down"})
    assert list(tasks["task_index"]) == list(range(len(tasks)))


def test_statistics_go_on_too(tmp_path):
    """As LeRobot's own would, of the same rows."""
    folder = tmp_path / "set"
    lerobot_records(folder)
    before = LeRobotDataset("test/set", root=folder).meta
    total = before.stats
    finished = we_go_on(folder, 1)
    after = LeRobotDataset("test/set", root=folder)
    plain = {k: v for k, v in after.features.items() if v["dtype"] != "video"}
    for number in finished:
        rows = after.hf_dataset.filter(
            lambda row, number=number: row["episode_index"] == number
        ).with_format("numpy")[:]
        columns = {key: rows[key] for key in plain}
        columns["timestamp"] = columns["frame_index"] / after.fps
        own = compute_stats.compute_episode_stats(columns, plain)
        total = compute_stats.aggregate_stats([total, own])
    for key in plain:
        for name, value in total[key].items():
            np.testing.assert_allclose(
                after.meta.stats[key][name],
                value,
                rtol=1e-5,
                atol=1e-5,
                err_msg=f"{key} {name}",
            )
    for key in CAMERAS:
        counts = [meta.stats[key]["count"][0] for meta in (before, after.meta)]
        assert counts[1] > counts[0]
        assert after.meta.stats[key]["mean"].shape == (3, 1, 1)


def test_a_dataset_without_an_episode_is_begun(tmp_path):
    folder = tmp_path / "set"
    create(folder, features()).finalize()
    finished = we_go_on(folder, 1)
    check_ours(rows_of(folder), finished)
    assert info_of(folder)["features"][CAMERAS[0]]["info"]["video.codec"] == "h264"
    sound(folder)


def strip_quantiles(folder):
    """As in datasets that were converted from v2.1."""
    for path in folder.glob("meta/episodes/*/*.parquet"):
        table = pq.read_table(path)
        keep = [name for name in table.column_names if "/q" not in name]
        pq.write_table(table.select(keep), path, compression="snappy")
    stats = json.loads((folder / "meta/stats.json").read_text())
    for of in stats.values():
        for name in [name for name in of if name.startswith("q")]:
            del of[name]
    (folder / "meta/stats.json").write_text(json.dumps(stats))


def test_a_dataset_without_quantiles_stays_one(tmp_path):
    folder = tmp_path / "set"
    lerobot_records(folder)
    strip_quantiles(folder)
    rows = rows_of(folder)
    finished = we_go_on(folder, 1)
    both = rows_of(folder)
    for row, other in zip(rows, both, strict=False):
        same_row(row, other)
    check_ours(both, finished)
    stats = LeRobotDataset("test/set", root=folder).meta.stats
    assert set(stats["action"]) == {"min", "max", "mean", "std", "count"}
    sound(folder)


def test_numbers_of_double_width_stay_so(tmp_path):
    folder = tmp_path / "set"
    wide = vector(dtype="float64")
    lerobot_records(folder, features(**{"action": wide, "observation.state": wide}))
    rows = rows_of(folder)
    finished = we_go_on(folder, 1)
    both = rows_of(folder)
    for row, other in zip(rows, both, strict=False):
        same_row(row, other)
    schema = pq.read_schema(folder / "data/chunk-000/file-001.parquet")
    assert schema.field("action").type == pa.list_(pa.float64(), len(vector()["names"]))
    check_ours(both, finished)
    sound(folder)


OTHER_NAMES = {
    "singular": camera(names=["height", "width", "channel"]),
    "channels first": camera(
        shape=(3, SIDE, SIDE), names=["channels", "height", "width"]
    ),
}


@pytest.mark.parametrize("feature", OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_sides_of_a_picture_under_other_names(tmp_path, feature):
    """Older datasets name them in other ways; the pictures are the same."""
    folder = tmp_path / "set"
    lerobot_records(folder)
    edit_info(folder, lambda info: info["features"][CAMERAS[0]].update(feature))
    finished = we_go_on(folder, 1)
    check_ours(rows_of(folder), finished)
    kept = info_of(folder)["features"][CAMERAS[0]]
    assert kept["names"] == feature["names"]


REFUSED = {
    "images": (
        {key: camera(dtype="image") for key in CAMERAS},
        f"{CAMERAS[0]}: the dataset has images, this recorder makes videos; "
        "LeRobot converts it",
    ),
    "another camera": (
        {"observation.images.top": camera()},
        "observation.images.top: the dataset has it, this recorder does not",
    ),
    "another size": (
        {CAMERAS[0]: camera(shape=(SIDE, 2 * SIDE, 3))},
        f"{CAMERAS[0]}: shape: the dataset has 64x128x3, this recorder 64x64x3",
    ),
    "a value that we do not have": (
        {"next.reward": {"dtype": "float32", "shape": (1,), "names": None}},
        "next.reward: the dataset has it, this recorder does not",
    ),
    "another type": (
        {"action": vector(dtype="int64")},
        "action: dtype: the dataset has int64, this recorder float32",
    ),
    "another joint": (
        {"observation.state": vector(names=["seed", "ordinal", "frame", "grip"])},
        "observation.state: names[3]: the dataset has grip, this recorder noise",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_gone_on_with_is_said(tmp_path, case):
    changes, why = REFUSED[case]
    folder = tmp_path / "set"
    lerobot_records(folder, features(**changes), episodes=1)
    files = files_of(folder)
    ran = record(folder, 1, Work(episodes=1))
    assert ran.code == 3
    assert f"failed MISMATCH: {why}" in ran.text
    assert files_of(folder) == files
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_another_codec_is_said(tmp_path):
    folder = tmp_path / "set"
    lerobot_records(folder, codec="av1", episodes=1)
    ran = record(folder, 1, Work(episodes=1, codec="h264"))
    assert ran.code == 3
    assert f"{CAMERAS[0]}: codec: the dataset has av1, this recorder h264" in ran.text
