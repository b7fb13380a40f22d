# SPDX-License-Identifier: Apache-2.0
"""`tendon bench plan`: every size of factory has its figures."""

import pytest
from bench_rows import read_rows
from tendon_process import run

SIZES = [
    "P4/64-robots/8-gpus",
    "8-classes/512-robots/64-gpus",
    "13-classes/1000-robots/128-gpus",
]


@pytest.fixture(scope="module")
def rows():
    done = run("bench", "plan", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    return read_rows(done.stdout)


@pytest.mark.parametrize("size", SIZES)
def test_each_size_has_its_figures(rows, size):
    packing = rows[f"packing/{size}/p50"]["value"]
    assert 0 < packing < rows[f"{size}/p50"]["value"]
    assert rows[f"{size}/cpu/p50"]["value"] > 0
    assert rows[f"verification/{size}/p50"]["value"] > 0


def test_admission_is_quicker_than_a_plan(rows):
    assert rows["admission/512-robots/p50"]["value"] < rows[f"{SIZES[0]}/p50"]["value"]
