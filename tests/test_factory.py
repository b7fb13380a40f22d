# SPDX-License-Identifier: Apache-2.0
"""A factory's file: its schema and its reader take and refuse the same."""

import copy
import json
import pathlib

import pytest
import yaml
from jsonschema import Draft202012Validator
from tendon_process import ROOT, run

EXAMPLE = ROOT / "examples/factory.yaml"
EVERYTHING = ROOT / "fuzz/seeds/factory/everything.yaml"


@pytest.fixture(scope="module")
def schema():
    made = json.loads(run("plan", "--schema").stdout)
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


def test_the_example_is_printed_as_it_stands():
    assert run("plan", "--example").stdout == EXAMPLE.read_text()


@pytest.mark.parametrize("path", [EXAMPLE, EVERYTHING], ids=lambda p: p.stem)
def test_a_good_file_fits_the_schema(schema, path):
    assert list(schema.iter_errors(yaml.safe_load(path.read_text()))) == []


BROKEN = {
    "an unknown field": ("server_cluster.num_serverz", 8, "no such field"),
    "too many GPUs": ("server_cluster.num_servers", 1000000, "must be 0 to"),
    "half a robot": ("robot_fleet", [{"task": "x", "num_robots": 0.5}], "whole"),
    "no fleet": ("robot_fleet", [], "must have 1 to"),
    "a map of tasks": ("tasks", {"a": {}}, "each task stands by its own name"),
    "an unknown fallback": (
        "inspect_product.components.safety.fallback",
        "dance",
        "must be stop_and_resend",
    ),
    "no deadline": ("inspect_product.components.safety.slo_ms", None, "is missing"),
    "a task without a pipeline": ("pack", {"components": {}}, "is missing"),
    "a ratio above 1": (
        "inspect_product.pipeline.system2_to_system1_call_ratio",
        10,
        "must be 0 to 1",
    ),
}


def changed(path, value):
    """The example with another value at the path; None: without it."""
    made = copy.deepcopy(yaml.safe_load(EXAMPLE.read_text()))
    *folders, last = path.split(".")
    at = made
    for name in folders:
        at = at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return made


@pytest.mark.parametrize("case", BROKEN)
def test_a_bad_file_is_refused_by_both(schema, tmp_path: pathlib.Path, case):
    path, value, error = BROKEN[case]
    made = changed(path, value)
    assert list(schema.iter_errors(made))
    file = tmp_path / "factory.yaml"
    file.write_text(json.dumps(made))
    done = run("plan", file)
    assert done.returncode == 1
    assert "factory.yaml:1: " in done.stderr and error in done.stderr
