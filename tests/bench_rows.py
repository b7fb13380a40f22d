# SPDX-License-Identifier: Apache-2.0
"""What `tendon bench NAME --json` prints, checked line by line."""

import json

import pytest

NUMBER = int, float
NEEDED = {"bench": str, "case": str, "value": NUMBER, "unit": str, "better": str}
PAIR = {"against": str, "against_value": NUMBER, "ratio": NUMBER}


def read_row(line):
    row = json.loads(line)
    wanted = NEEDED | (PAIR if PAIR.keys() & row.keys() else {})
    for key, kind in wanted.items():
        assert isinstance(row.get(key), kind), f"{key} in {line}"
    assert row.keys() == wanted.keys(), line
    assert row["better"] in ("less", "more"), line
    if "ratio" in row:
        product = row["ratio"] * row["against_value"]
        assert product == pytest.approx(row["value"], rel=0.01), line
    return row


def read_rows(text):
    """By their cases."""
    rows = [read_row(line) for line in text.splitlines()]
    found = {row["case"]: row for row in rows}
    assert len(found) == len(rows), "a case twice"
    return found
