# SPDX-License-Identifier: Apache-2.0
"""The package as it stands in the tree, on the library that was built with the
binary under test."""

import os
import pathlib
import sys

import pytest
from tendon_process import BIN, ROOT

os.environ.setdefault("TENDON_BUILD", str(pathlib.Path(BIN).parent))
sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No setting comes from where the tests happen to run."""
    for name in list(os.environ):
        if name.startswith("TENDON_") and name not in ("TENDON_BIN", "TENDON_BUILD"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
