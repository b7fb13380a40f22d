# SPDX-License-Identifier: Apache-2.0
"""tools/fuzz, with a fuzzer of one line in a clone that needs no building."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FUZZER = """#include <stdlib.h>
int LLVMFuzzerTestOneInput(const char *data, size_t size)
{
    (void)data;
    if (size > LONGEST) abort();
    return 0;
}
"""


@pytest.fixture
def fuzz(tmp_path):
    def script(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(longest, *options):
        subprocess.run(
            ["clang-19", "-xc", "-", "-fsanitize=fuzzer,address,undefined"]
            + [f"-DLONGEST={longest}", "-o", tmp_path / "build/fuzz/fuzz_one"],
            input=FUZZER,
            text=True,
            check=True,
        )
        return subprocess.run(
            [tmp_path / "tools/fuzz", "one", *options],
            env=os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )

    script(tmp_path / "tools/setup", "exit 0")
    script(tmp_path / "bin/cmake", "exit 0")
    shutil.copy(ROOT / "tools/fuzz", tmp_path / "tools")
    shutil.copy(ROOT / "tools/lsan.supp", tmp_path / "tools")
    for folder in ("build/fuzz", "fuzz/seeds/one"):
        (tmp_path / folder).mkdir(parents=True)
    return run


def test_a_million_runs_by_default(fuzz):
    assert "Done 1000000 runs" in fuzz(5000).stderr
    assert "Done 2000 runs" in fuzz(5000, "-runs=2000").stderr


def test_an_abort_is_a_failure_and_no_skip(fuzz, tmp_path):
    assert fuzz(3).returncode == 1
    assert list((tmp_path / "build/corpus").glob("one-crash-*"))
