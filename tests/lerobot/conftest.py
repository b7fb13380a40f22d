# SPDX-License-Identifier: Apache-2.0
"""Needs LeRobot: `tools/setup --lerobot`, then build/venv-lerobot/bin/python -m pytest."""

import importlib.util
import os
import pathlib
import sys

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing here comes from the hub
os.environ["TOKENIZERS_PARALLELISM"] = "false"

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "python"), str(HERE)]
os.environ["PYTHONPATH"] = f"{ROOT / 'python'}:{HERE}"
if program := os.environ.get("TENDON_BIN"):
    os.environ["TENDON_BUILD"] = str(pathlib.Path(program).parent)

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The folder of a small policy of a kind, made once."""
    import tiny

    folder = tmp_path_factory.mktemp("checkpoints")
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = tiny.make(kind, folder / kind)
        return made[kind]

    return get
