# SPDX-License-Identifier: Apache-2.0
"""libtendon_video.so: libav for those who have videos, and for nobody else."""

import os
import shutil
import subprocess

import pytest
from dataset_recorder import Work, record
from scene import robot_file
from sdk import BUILD, libav_of
from tendon_process import BIN, PATIENCE_S

LIBRARY = BUILD / "libtendon_video.so"
LARGER = {"cameras": {"front": {"height": 96, "width": 128}}}  # AV1 has a least size


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "arm"
    assert record(folder, 1, Work(episodes=1, frames=12)).code == 0
    return folder


@pytest.fixture
def alone(tmp_path):
    """The program, and nothing beside it that has to do with videos."""
    shutil.copy(BUILD / "libtendon_formats.so", tmp_path)
    return shutil.copy(BIN, tmp_path / "tendon")


def run(program, *args, **env):
    return subprocess.run(
        [program, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        env=os.environ | env,
    )


@pytest.mark.parametrize("name", ["tendon", "libtendon.so"])
def test_libav_is_in_no_process_from_the_start(name):
    assert libav_of(BUILD / name) == []


def test_libav_is_in_the_library():
    assert libav_of(LIBRARY)


def test_the_library_exports_one_function():
    command = ["nm", "-D", "--defined-only", LIBRARY]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    ours = [line.split()[2] for line in done.stdout.splitlines() if "td_" in line]
    assert ours == ["td_media_video_library"]


def check_reported(text, folder):
    assert "no videos without libtendon_video.so: build it with `make all`" in text
    assert "name it in TENDON_VIDEO_LIBRARY" in text
    assert f"not in {folder}, not in {folder}/../lib" in text


def test_a_program_alone_runs_and_says_what_is_missing(alone, recorded, tmp_path):
    assert run(alone, "--version").returncode == 0
    assert run(alone, "dataset", "info", recorded).returncode == 0
    done = run(alone, "dataset", "verify", recorded)
    assert done.returncode == 1
    assert "fault" not in done.stdout  # the dataset has none
    check_reported(done.stderr, tmp_path)
    done = run(alone, "dataset", "export", recorded, tmp_path / "out")
    assert done.returncode == 1
    check_reported(done.stderr, tmp_path)
    assert not (tmp_path / "out").exists()


def test_doctor_says_what_is_missing(alone, tmp_path):
    done = run(alone, "doctor")
    assert done.returncode == 0, done.stdout
    (said,) = [line for line in done.stdout.splitlines() if "  videos " in line]
    assert said.startswith("warn")
    check_reported(said, tmp_path)
    done = run(BIN, "doctor")
    assert "ok    videos         av1 and h264 can be recorded" in done.stdout


@pytest.mark.parametrize("change", ["record", "replay"])
def test_a_robot_that_needs_videos_does_not_start(
    alone, site, recorded, tmp_path, change
):
    data = tmp_path / "data"
    front = {"cameras": {"front": {"height": 64, "width": 64}}}
    joints = {"joints": ["seed", "ordinal", "frame", "noise"]}
    changes = {
        "record": {"robot": LARGER, "record": {"dir": str(data)}},
        "replay": {
            "robot": front | joints | {"kind": "replay", "dataset": str(recorded)}
        },
    }[change]
    site.serve()
    content = robot_file(site.endpoint, "robot-1", site.folder, **changes)
    done = run(alone, "robot", site.write("robot-1.yaml", content))
    assert done.returncode == 1
    check_reported(done.stdout + done.stderr, tmp_path)
    assert not data.exists()


def test_it_may_be_anywhere_when_it_is_named(alone, recorded, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "video.so"
    elsewhere.parent.mkdir()
    shutil.copy(LIBRARY, elsewhere)
    verify = ("dataset", "verify", recorded)
    done = run(alone, *verify, TENDON_VIDEO_LIBRARY=str(elsewhere))
    assert done.returncode == 0, done.stderr
    done = run(alone, *verify, TENDON_VIDEO_LIBRARY=f"{elsewhere}-not")
    assert done.returncode == 1
    assert f"TENDON_VIDEO_LIBRARY names {elsewhere}-not: No such file" in done.stderr


def test_libav_that_is_missing_is_named(recorded, tmp_path):
    broken = libav_of(LIBRARY)[0]
    (tmp_path / broken).touch()
    done = run(BIN, "dataset", "verify", recorded, LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1
    assert "install FFmpeg, which it needs" in done.stderr
    assert broken in done.stderr


def test_an_installed_program_finds_it(sdk, recorded):
    done = run(sdk.prefix / "bin/tendon", "dataset", "verify", recorded)
    assert done.returncode == 0, done.stderr
