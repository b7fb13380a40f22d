# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the foundation: every figure in the format that CONTRIBUTING
has, and the cases there. What they measured is not judged here."""

import shutil
import subprocess

import pytest
from bench_rows import read_rows
from tendon_process import BIN, run

BESIDE, ALONE = True, False  # measured with a peer in the same run, or not
CASES = {
    "wire": {
        "obs/100k/encode-decode/p50": BESIDE,
        "obs/100k/beyond-memcpy/p50": ALONE,
        "obs/100k/decode/allocations": ALONE,
    },
    "sim": {"4-robots/minute/p50": BESIDE, "64-robots/minute/p50": BESIDE},
    "rt --only 64b": {"tcp/64b/put-callback/p50": BESIDE},
    "tick --only 1000hz/lateness": {"1000hz/lateness/p99": BESIDE},
    "soak --robots 2": {
        "server/resident": BESIDE,
        "robots/resident": BESIDE,
        "robots/unaccounted": ALONE,
        "server/unaccounted": ALONE,
    },
}


@pytest.mark.parametrize("bench", CASES)
def test_every_case_is_measured(bench):
    done = run("bench", *bench.split(), "--quick", "--json")
    judges = bench.startswith("soak")  # what it has seen, and ends with 1
    assert done.returncode == 0 or judges, done.stderr
    rows = read_rows(done.stdout)
    assert {row["bench"] for row in rows.values()} == {bench.split()[0]}
    beside = {case: "ratio" in row for case, row in rows.items()}
    assert CASES[bench].items() <= beside.items()


def test_tendon_alone_says_where_the_benchmarks_are(tmp_path):
    tendon = shutil.copy(BIN, tmp_path / "tendon")
    done = subprocess.run([tendon, "bench", "wire"], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"tendon bench: {tmp_path}/tendon-bench: No such file" in done.stderr
    assert "`make all` builds" in done.stderr
