# SPDX-License-Identifier: Apache-2.0
"""`tendon bench sched`: every strategy has its figures, alone or beside others."""

import pytest
from bench_rows import read_rows
from tendon_process import run

STRATEGIES = [
    "deadline_aware",
    "model_deadline",
    "tiered_deadline",
    "priority_tiered",
    "batch_optimized",
    "round_robin",
]


@pytest.fixture(scope="module")
def rows():
    done = run("bench", "sched", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    return read_rows(done.stdout)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_has_its_figures(rows, strategy):
    figures = f"{strategy}/1000-waiting"
    p50 = rows[f"{figures}/decision/p50"]["value"]
    p99 = rows[f"{figures}/decision/p99"]["value"]
    assert 0 < p50 <= p99
    assert rows[f"{figures}/decisions"]["value"] > 0


@pytest.mark.parametrize("cadence", ["half-left", "quarter-left"])
def test_robots_miss_more_the_more_there_is_to_do(rows, cadence):
    missed = [rows[f"{cadence}/load-{load}/missed"]["value"] for load in (70, 130)]
    assert missed[0] < missed[1] < 100
