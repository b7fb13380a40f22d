#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the files of build/dev, in parallel: tidy.py [PATH...].

A file that passed is not checked again until something changes that clang
would read: build/lint/tidy/ remembers the hash of its preprocessed text.
"""

import hashlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATABASE = ROOT / "build/dev/compile_commands.json"
PASSED = ROOT / "build/lint/tidy"
FOLDERS = ("src", "bench", "examples", "fuzz", "tests")
LEFT_OUT = {
    # The analyzer walks every path through every assert of a test, for minutes;
    # tests are run under the sanitizers instead.
    "*_test.c": "clang-analyzer-*",
    # Those of our functions that a signal handler may call say so in words only.
    f"{ROOT}/examples/*": "bugprone-signal-handler",
}
COMPLAINT = re.compile(r"^(?=/\S+: (?:error|warning):)", re.MULTILINE)
CLANG, TIDY = "clang-19", "clang-tidy-19"


def run(*command):
    return subprocess.run(command, capture_output=True, check=False)


def fingerprint(command, rules):
    """A hash of the rules and of all text, macros and comments of a file."""
    _, *arguments = shlex.split(command)
    done = run(CLANG, *arguments, "-E", "-C", "-dD", "-o", "-")
    if done.returncode != 0:
        return None  # clang-tidy will say what is wrong
    return hashlib.sha256(rules + done.stdout).hexdigest()


def check(entry, rules):
    """Returns the complaints about a file, none if it passes."""
    key = fingerprint(entry["command"], rules)
    if key and (PASSED / key).exists():
        return []
    file = entry["file"]
    less = [f"--checks=-{what}" for of, what in LEFT_OUT.items() if fnmatch(file, of)]
    done = run(TIDY, "-p", DATABASE.parent, "--quiet", *less, file)
    if done.returncode != 0:
        return COMPLAINT.split((done.stdout or done.stderr).decode())
    if key:
        (PASSED / key).touch()
    return []


def chosen(wanted):
    """The entries of the compile database to look at, one a file."""
    entries = {}
    for entry in json.loads(DATABASE.read_text(encoding="utf-8")):
        path = Path(entry["file"]).relative_to(ROOT)
        if path.parts[0] in FOLDERS and (not wanted or str(path) in wanted):
            entries[path] = entry
    return entries.values()


def main():
    PASSED.mkdir(parents=True, exist_ok=True)
    rules = (ROOT / ".clang-tidy").read_bytes() + run(TIDY, "--version").stdout
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda entry: check(entry, rules), chosen(sys.argv[1:]))
        # A header is complained about by all who include it: once is enough.
        complaints = dict.fromkeys(itertools.chain.from_iterable(results))
    print("".join(complaints).replace(f"{ROOT}/", ""), end="")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
