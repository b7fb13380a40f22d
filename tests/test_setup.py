# SPDX-License-Identifier: Apache-2.0
"""tools/setup and tools/cargo, on machines that are made of a few fake programs."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FILES = [
    "tools/setup",
    "tools/progress",
    "tools/cargo",
    "rust/Cargo.toml",
    "tests/requirements.txt",
]
DPKG_QUERY = """for name in "${@:4}"; do
    [[ " $MISSING " == *" $name "* ]] || echo "$name installed"
done"""
APT_GET = 'echo "$*" >>"$APT_LOG"'


class Machine:
    """A clone, and programs that come before the real ones."""

    def __init__(self, folder):
        self.clone, self.bin = folder / "clone", folder / "bin"
        self.apt_log = folder / "apt.log"
        for file in FILES:
            (self.clone / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.clone / file)
        self.make_venv()
        self.program("dpkg-query", DPKG_QUERY)
        self.program("apt-get", APT_GET)
        self.program("apt-cache", "exit 0")
        self.program("sudo", "exit 1")
        self.rust("1.99.0")

    def make_venv(self):
        venv = self.clone / "build/venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "bin/python").symlink_to(sys.executable)
        shutil.copy(self.clone / "tests/requirements.txt", venv)

    def program(self, name, text, folder=None):
        path = (folder or self.bin) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def rust(self, version, folder=None):
        """A cargo that builds by saying which rustc it would use."""
        self.program("rustc", f"echo rustc {version}", folder)
        cargo = f'[ "$1" = build ] && exec rustc; echo "cargo {version} (0 2026-01-01)"'
        self.program("cargo", cargo, folder)

    def run(self, *command, user=0, missing="", first=None):
        self.program("id", f"echo {user}")
        folders = [first] if first else []
        path = ":".join(map(str, [*folders, self.bin, "/usr/bin", "/bin"]))
        given = {"PATH": path, "MISSING": missing, "APT_LOG": str(self.apt_log)}
        return subprocess.run(
            [self.clone / command[0], *command[1:]],
            env=os.environ | given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def apt(self):
        return self.apt_log.read_text() if self.apt_log.exists() else ""


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("user", [0, 1000])
def test_nothing_is_done_where_all_is_installed(machine, user):
    done = machine.run("tools/setup", "--test", user=user)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.apt() == ""


def test_root_installs_what_is_missing_and_no_more(machine):
    done = machine.run("tools/setup", "--test", missing="g++ ninja-build")
    assert done.returncode == 0, done.stderr
    assert machine.apt().splitlines()[-1].endswith(" ninja-build g++")


def test_any_name_of_a_thing_will_do(machine):
    assert machine.run("tools/setup", missing="libmsgpack-dev").stdout == ""
    both = "libmsgpack-dev libmsgpack-c-dev"
    assert machine.run("tools/setup", missing=both).returncode == 0
    assert machine.apt().splitlines()[-1].endswith(" libmsgpack-dev")


def test_without_root_the_one_line_to_run_is_printed(machine):
    done = machine.run("tools/setup", "--test", user=1000, missing="g++ make")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1].strip()
    assert line == "apt-get install -y --no-install-recommends make g++"
    assert machine.apt() == ""


def test_an_old_cargo_does_not_hide_a_newer_one(machine, tmp_path):
    old = tmp_path / "old"
    machine.rust("1.63.0", old)
    assert machine.run("tools/setup", first=old).returncode == 0
    assert machine.apt() == ""
    found = machine.run("tools/cargo", "--where", first=old).stdout.strip()
    assert found == str(machine.bin / "cargo")
    assert machine.run("tools/cargo", "build", first=old).stdout == "rustc 1.99.0\n"
