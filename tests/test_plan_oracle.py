# SPDX-License-Identifier: Apache-2.0
"""The planner against others: solvers that are not ours, an exhaustive grid.

A sample; tools/plan-oracle has the whole."""

import pathlib
import shutil
import subprocess

import pytest
from plan_packings import disagreements
from tendon_process import BIN

ORACLE = pathlib.Path(BIN).with_name("plan_oracle")


@pytest.mark.parametrize(("solver", "count"), [("glpsol", 60), ("cbc", 20)])
def test_packings_cost_what_others_find(solver, count):
    assert shutil.which(solver), f"{solver} is missing: run tools/setup --test"
    assert list(disagreements(solver, ORACLE, 1, count)) == []


def test_the_search_reaches_what_an_exhaustive_grid_finds():
    done = subprocess.run(
        [ORACLE, "grid", "1", "60"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
