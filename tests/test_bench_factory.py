# SPDX-License-Identifier: Apache-2.0
"""`tendon bench rosa` and `factory`: what they print and draw, in short runs."""

import pytest
from bench_rows import read_rows
from tendon_process import run


@pytest.fixture(scope="module")
def plots(tmp_path_factory):
    return tmp_path_factory.mktemp("plots")


@pytest.fixture(scope="module")
def rosa(plots):
    done = run("bench", "rosa", "--quick", "--json", "--plot", plots)
    assert done.returncode == 0, done.stderr
    return read_rows(done.stdout)


@pytest.fixture(scope="module")
def factory():
    done = run("bench", "factory", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    return read_rows(done.stdout)


PAPER = {
    "P4/8/equal/qualified": 29.5,
    "P4/8/rosa/qualified": 23.9,
    "P4/32/rosa/qualified": 89.4,
    "P2/32/rosa/qualified": 106.9,
    "P4/over-gpu-a-model": 12.06,
    "gpus-to-match/weighted": 8.6,
    "gpus-to-match/weighted/random-arrivals": 8.6,
    "16-robots/50ms/batch-16-over-1": 2.46,
}


@pytest.mark.parametrize("case", PAPER)
def test_figures_stand_beside_the_papers(rosa, case):
    assert rosa[case]["against"] == "paper"
    assert rosa[case]["against_value"] == pytest.approx(PAPER[case])


def test_a_split_that_is_overloaded_qualifies_nothing(rosa):
    assert rosa["P4/32/equal/qualified"]["value"] == 0


def test_every_figure_is_drawn(rosa, plots):
    drawn = {f"figure{number:02}.svg" for number in range(6, 15)}
    assert {path.name for path in plots.iterdir()} == drawn


@pytest.mark.parametrize("case", ["P4/8", "P4/32", "P4/64", "P2/32", "P3/32"])
@pytest.mark.parametrize("execution", ["sync", "sync/deviation", "async"])
def test_our_plans_have_all_columns(factory, case, execution):
    row = factory[f"{case}/{execution}/qualified"]
    assert row["value"] > 0 and row["against"] == "paper"


def test_acting_on_is_worth_more_than_standing_still(factory):
    columns = [factory[f"P4/8/{way}/qualified"]["value"] for way in ("sync", "async")]
    assert columns[0] < columns[1]
