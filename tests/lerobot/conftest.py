# SPDX-License-Identifier: Apache-2.0
"""Needs LeRobot: `tools/setup --lerobot`, then build/venv-lerobot/bin/python -m pytest."""

import importlib.util
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]

# Elsewhere this folder is left out, and nobody's environment is touched.
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
if not collect_ignore_glob:
    sys.path[:0] = [str(ROOT / "python"), str(HERE)]
    os.environ |= {
        "HF_DATASETS_CACHE": str(ROOT / "build" / "datasets"),
        "HF_HUB_OFFLINE": "1",  # nothing here comes from the hub
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": f"{ROOT / 'python'}:{HERE}",
    }
    if program := os.environ.get("TENDON_BIN"):
        os.environ["TENDON_BUILD"] = str(pathlib.Path(program).parent)


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
