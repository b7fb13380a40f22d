# SPDX-License-Identifier: Apache-2.0
"""`tendon bench record`: what recording costs. What is measured is not judged here,
only that it is."""

import subprocess

import pytest
from bench_rows import read_rows
from tendon_process import BIN

LOAD_S = 300  # LeRobot is slow to import where others are at work


def measure(case):
    done = subprocess.run(
        [BIN, "bench", "record", "--quick", "--json", "--only", case],
        capture_output=True,
        text=True,
        timeout=LOAD_S,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: beyond a limit
    return read_rows(done.stdout)


def test_one_core_is_watched():
    rows = measure("one-core")
    assert rows["one-core/missing"]["value"] >= 0
    assert rows["one-core/share"]["value"] > rows["one-core/share-without"]["value"] > 0


def test_the_tick_is_watched_with_and_without():
    rows = measure("lateness")
    for name in ("lateness/p99", "lateness/p99.9"):
        assert rows[name]["against"] == "not recording"


def test_lerobots_writer_has_the_same_frames():
    rows = measure("cpu")
    if "against" not in rows["cpu/beside-lerobot"]:
        pytest.skip("LeRobot is not installed (tools/setup --lerobot)")
    for row in rows.values():
        assert row["value"] > 0 and row["against_value"] > 0
