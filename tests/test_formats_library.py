# SPDX-License-Identifier: Apache-2.0
"""libtendon_formats.so: Parquet and tokenizers for those who need them, and for
nobody else."""

import os
import shutil
import subprocess

import pytest
from dataset_recorder import Work, record
from scene import robot_file
from sdk import BUILD
from tendon_process import BIN, PATIENCE_S

LIBRARY = BUILD / "libtendon_formats.so"
VIDEO = BUILD / "libtendon_video.so"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "arm"
    assert record(folder, 1, Work(episodes=1, frames=12)).code == 0
    return folder


@pytest.fixture
def alone(tmp_path):
    """The program with libtendon_video.so, and nothing else beside it."""
    shutil.copy(VIDEO, tmp_path)
    return shutil.copy(BIN, tmp_path / "tendon")


def run(program, *args, **env):
    return subprocess.run(
        [program, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        env=os.environ | env,
    )


def check_reported(text, folder):
    assert "no datasets without libtendon_formats.so: build it with `make all`" in text
    assert "name it in TENDON_FORMATS_LIBRARY" in text
    assert f"not in {folder}, not in {folder}/../lib" in text


def test_the_library_exports_two_functions():
    command = ["nm", "-D", "--defined-only", LIBRARY]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    ours = [line.split()[2] for line in done.stdout.splitlines()]
    assert ours == ["tdr_parquet_library", "tdr_tokenizer_library"]


@pytest.mark.parametrize("command", ["info", "verify"])
def test_a_program_alone_says_what_is_missing(alone, recorded, tmp_path, command):
    assert run(alone, "--version").returncode == 0
    done = run(alone, "dataset", command, recorded)
    assert done.returncode == 1
    assert "fault" not in done.stdout  # the dataset has none
    check_reported(done.stderr, tmp_path)


def test_doctor_says_what_is_missing(alone, tmp_path):
    done = run(alone, "doctor")
    assert done.returncode == 0, done.stdout
    (said,) = [line for line in done.stdout.splitlines() if "  datasets " in line]
    assert said.startswith("warn")
    check_reported(said, tmp_path)
    done = run(BIN, "doctor")
    assert "ok    datasets       can be recorded and read" in done.stdout


@pytest.mark.parametrize("change", ["record", "replay"])
def test_a_robot_that_needs_it_does_not_start(alone, site, recorded, tmp_path, change):
    data = tmp_path / "data"
    joints = {"joints": ["seed", "ordinal", "frame", "noise"]}
    front = {"cameras": {"front": {"height": 64, "width": 64}}}
    changes = {
        "record": {"record": {"dir": str(data)}},
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
    elsewhere = tmp_path / "elsewhere" / "formats.so"
    elsewhere.parent.mkdir()
    shutil.copy(LIBRARY, elsewhere)
    verify = ("dataset", "verify", recorded)
    done = run(alone, *verify, TENDON_FORMATS_LIBRARY=str(elsewhere))
    assert done.returncode == 0, done.stderr
    done = run(alone, *verify, TENDON_FORMATS_LIBRARY=f"{elsewhere}-not")
    assert done.returncode == 1
    assert f"TENDON_FORMATS_LIBRARY names {elsewhere}-not: No such" in done.stderr


def test_an_installed_program_finds_it(sdk, recorded):
    done = run(sdk.prefix / "bin/tendon", "dataset", "info", recorded)
    assert done.returncode == 0, done.stderr
