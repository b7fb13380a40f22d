# SPDX-License-Identifier: Apache-2.0
"""`tendon bench python`: our SDK and our robots beside others'. What is measured is not
judged here, only that it is."""

import pathlib
import shutil
import subprocess

import pytest
from bench_rows import read_rows
from tendon_process import BIN, ROOT, run, wait_until
from test_bench_net import missing, networks

LOAD_S = 300  # LeRobot is slow to import where others are at work
ABSENT = "what it needs is not installed (tools/setup --bench, --lerobot)"


def measure(case):
    """The rows, or skips."""
    done = subprocess.run(
        [BIN, "bench", "python", "--quick", "--json", "--only", case],
        capture_output=True,
        text=True,
        timeout=LOAD_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read_rows(done.stdout) or pytest.skip(ABSENT)


@pytest.mark.parametrize("case", ["raw/1840k", "jpeg/100k"])
def test_the_sdk_is_compared_with_those_who_are_there(case):
    rows = measure(case)
    for name, row in rows.items():
        peer = row.get("against", "nobody").lower()
        assert peer == "nobody" or name.startswith(f"{case}/beside-{peer}/")
        assert row["value"] > 0


def test_a_robot_that_holds_the_lock_is_held_safe_and_logged():
    rows = measure("gil")
    for name in ("gil/lateness/p99", "gil/lateness/p99.9"):
        assert rows[name]["against"] == "undisturbed"
    assert rows["gil/failsafe"]["value"] >= 1
    assert rows["gil/logged"]["value"] >= 1


def test_lerobots_client_and_ours_drive_one_robot_over_a_bad_network():
    if reason := missing():
        pytest.skip(reason)
    rows = measure("net")
    figures = {"fresh": "%", "age/p50": "ms", "age/p99": "ms", "carried": "kB/s"}
    for name, unit in figures.items():
        row = rows[f"net/100mbit-loss2/{name}"]
        assert (row["against"], row["unit"]) == ("LeRobot", unit)
        assert row["value"] > 0 and row["against_value"] > 0
    wait_until(lambda: not networks(), "the networks are gone")


def test_an_environment_from_an_older_list_is_named(tmp_path):
    tendon = pathlib.Path(tmp_path, "build", "release", "tendon")
    python = pathlib.Path(tmp_path, "build", "venv-bench", "bin", "python")
    for file in (tendon, python):
        file.parent.mkdir(parents=True)
    for name in ("tendon", "tendon-bench"):
        shutil.copy(pathlib.Path(BIN).with_name(name), tendon.with_name(name))
    python.touch()
    pathlib.Path(tmp_path, "bench").symlink_to(ROOT / "bench")
    python.parents[1].joinpath("requirements.txt").write_text("numpy\n")
    done = subprocess.run(
        [tendon, "bench", "python", "--quick", "--only", "raw"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = "is installed from an older list (tools/setup --bench): figures without it"
    assert f"Tendon {line}" in done.stdout + done.stderr


def test_only_says_which_benchmarks_it_is_for():
    done = run("bench", "wire", "--only", "gil")
    assert done.returncode == 2
    assert "--only is for tick, rt, python, engine and record" in done.stderr
