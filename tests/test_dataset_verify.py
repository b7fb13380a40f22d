# SPDX-License-Identifier: Apache-2.0
"""`tendon dataset info | verify`: a dataset shown, and held to its format."""

import json
import os
import pathlib
import shutil

import pytest
from dataset_recorder import Work, record, repaired
from tendon_process import BIN, Tendon, run

DATA = "data/chunk-000/file-000.parquet"
HANG = pathlib.Path(BIN).with_name("libhang.so")
VIDEO = "videos/observation.images.front/chunk-000/file-000.mp4"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "arm"
    assert record(folder, 1, Work(episodes=3, frames=12)).code == 0
    return folder


@pytest.fixture
def folder(recorded, tmp_path):
    """A copy to be damaged."""
    copy = tmp_path / "arm"
    shutil.copytree(recorded, copy)
    return copy


def test_what_was_recorded_has_no_fault(recorded):
    shown = json.loads(run("dataset", "verify", recorded, "--json").stdout)
    assert shown == {"folder": str(recorded), "faults": [], "unfinished": 0}
    done = run("dataset", "verify", recorded)
    assert done.returncode == 0
    assert "nothing is wrong" in done.stdout


def test_nothing_is_left_beside_it(recorded):
    assert os.listdir(recorded.parent) == ["arm"]
    assert repaired(recorded) == {}


def test_repair_says_what_it_drops(folder):
    journal = folder.parent / ".arm.recording/episode"
    journal.mkdir(parents=True)
    shown = json.loads(run("dataset", "repair", folder, "--json").stdout)
    assert shown == {"folder": str(folder), "saved": [], "dropped": 1, "left": []}
    journal.mkdir(parents=True)
    done = run("dataset", "repair", folder)
    assert (done.returncode, done.stdout) == (0, "dropped an episode without a frame\n")
    assert "nothing is unfinished" in run("dataset", "repair", folder).stdout
    assert os.listdir(folder.parent) == ["arm"]


def test_info_says_what_is_there(recorded):
    shown = json.loads(run("dataset", "info", recorded, "--json").stdout)
    assert shown["robot_type"] == "seeded"
    assert shown["fps"] == 30
    assert shown["total_episodes"] == 3
    assert shown["tasks"] == ["pick it up", "put it down"]
    assert (shown["recorder"], shown["unfinished"]) == (0, 0)
    by_key = {row["key"]: row for row in shown["features"]}
    assert by_key["action"]["names"] == ["seed", "ordinal", "frame", "noise"]
    assert by_key["observation.images.wrist"]["shape"] == [64, 64, 3]
    assert by_key["tendon.missing"]["dtype"] == "int64"
    text = run("dataset", "info", recorded).stdout
    assert "observation.images.front, video 64x64x3" in text


def folder_numbered(parent, number):
    """A new folder, with this number if the file system gives it away again."""
    for i in range(200):
        made = parent / f"next-{i}"
        made.mkdir()
        if made.stat().st_ino == number:
            break
    return made


def test_a_reader_may_be_slower_than_recorders(folder, tmp_path):
    """Each episode makes a new folder of it, and file systems soon give one the
    number of one that has gone."""
    number, go, longer = folder.stat().st_ino, tmp_path / "go", tmp_path / "longer"
    assert record(longer, 1, Work(episodes=4, frames=12)).code == 0
    env = {"LD_PRELOAD": str(HANG), "HANG_AT": "meta/episodes", "HANG_UNTIL": str(go)}
    asan = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
    args = ("dataset", "export", folder, tmp_path / "csv", "--no-pictures")
    export = Tendon(tmp_path / "export.log", *args, env=env | asan)
    try:
        export.wait_line("hangs")
        shutil.rmtree(folder)
        made = folder_numbered(tmp_path, number)
        for part in longer.iterdir():
            part.rename(made / part.name)
        made.rename(folder)
        go.touch()
        assert export.ended() == 0, export.text()
        assert "4 episodes" in export.text()
    finally:
        export.end()


def test_older_statistics_have_no_quantiles(folder):
    path = folder / "meta/stats.json"
    stats = json.loads(path.read_text())
    for feature in stats.values():
        for name in ("q01", "q10", "q50", "q90", "q99"):
            del feature[name]
    path.write_text(json.dumps(stats))
    done = run("dataset", "verify", folder)
    assert done.returncode == 0, done.stdout


def edit_info(folder, **change):
    path = folder / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def cut(folder, name, keep):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * keep)])


def add_stray(folder):
    stray = folder / "data/chunk-000/file-007.parquet"
    shutil.copy(folder / DATA, stray)


def empty_stats(folder):
    path = folder / "meta/stats.json"
    stats = json.loads(path.read_text())
    del stats["action"]
    path.write_text(json.dumps(stats))


DAMAGES = {
    "rows counted wrongly": (lambda f: edit_info(f, total_frames=7), "meta/"),
    "episodes counted wrongly": (lambda f: edit_info(f, total_episodes=2), "meta/"),
    "tasks counted wrongly": (
        lambda f: edit_info(f, total_tasks=1),
        "meta/tasks.parquet",
    ),
    "another frame rate": (lambda f: edit_info(f, fps=10), ""),
    "another version": (
        lambda f: edit_info(f, codebase_version="v2.1"),
        "meta/info.json",
    ),
    "a path that climbs out": (
        lambda f: edit_info(f, data_path="../{chunk_index}/{file_index}.parquet"),
        "meta/info.json",
    ),
    "info.json cut": (lambda f: cut(f, "meta/info.json", 0.5), "meta/info.json"),
    "stats.json cut": (lambda f: cut(f, "meta/stats.json", 0.5), "meta/stats.json"),
    "statistics of 2 GB": (
        lambda f: os.truncate(f / "meta/stats.json", 2 << 30),
        "meta/stats.json",
    ),
    "no statistics of a feature": (empty_stats, "meta/stats.json"),
    "tasks cut": (lambda f: cut(f, "meta/tasks.parquet", 0.5), "meta/tasks.parquet"),
    "rows cut": (lambda f: cut(f, DATA, 0.7), DATA),
    "rows gone": (lambda f: (f / DATA).unlink(), DATA),
    "video cut": (lambda f: cut(f, VIDEO, 0.6), VIDEO),
    "video gone": (lambda f: (f / VIDEO).unlink(), VIDEO),
    "a file that no episode names": (add_stray, "data/chunk-000/file-007.parquet"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_fault_is_named_with_its_file(folder, damage):
    hurt, file = DAMAGES[damage]
    hurt(folder)
    done = run("dataset", "verify", folder, "--json")
    assert done.returncode == 1, done.stderr
    faults = json.loads(done.stdout)["faults"]
    assert any(fault["file"].startswith(file) for fault in faults), faults
    assert all(fault["what"] and fault["remedy"] for fault in faults)
    assert faults[0]["what"] in run("dataset", "verify", folder).stdout


@pytest.mark.parametrize("part", ["info", "verify", "repair"])
def test_wrong_usage_is_said(part, tmp_path):
    assert "examples:" in run("dataset", part, "--help").stdout
    assert run("dataset", part).returncode == 2
    assert run("dataset", part, tmp_path, "--what").returncode == 2


def test_no_dataset_there_is_said(tmp_path):
    for part in ("info", "verify"):
        done = run("dataset", part, tmp_path / "nothing")
        assert done.returncode == 1
        assert "nothing" in done.stderr
        done = run("dataset", part, tmp_path / "nothing", "--json")
        assert (done.returncode, done.stdout) == (1, "")
    assert run("dataset", "repair", tmp_path / "nothing").returncode == 0
    assert run("dataset").returncode == 2
    assert run("dataset", "polish").returncode == 2
    assert "verify" in run("dataset", "--help").stdout
    assert os.listdir(tmp_path) == []
