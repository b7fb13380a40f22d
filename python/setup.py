# SPDX-License-Identifier: Apache-2.0
"""Puts libtendon.so, what it loads and the `tendon` program into the wheel.

They are built in the source tree, as `make` does; with TENDON_BUILD they are
taken from that folder, as they are.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ("cmake", "ninja", "cargo", "cc")
TARGETS = ("tendon", "tendon_shared", "tendon_video", "tendon_formats")
NATIVE = ("libtendon.so", "libtendon_video.so", "libtendon_formats.so", "tendon")


def build_native():
    """The folder that has them."""
    if given := os.environ.get("TENDON_BUILD"):
        return pathlib.Path(given)
    if not (ROOT / "CMakePresets.json").exists():
        sys.exit(f"{ROOT} is not Tendon's source tree: `pip install ./python` there")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        words = f"{ROOT}/tools/setup --all installs them"
        sys.exit(f"missing: {', '.join(missing)}; {words}")
    for command in (
        ["cmake", "--preset", "release"],
        ["cmake", "--build", "--preset", "release", "--target", *TARGETS],
    ):
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            words = "tools/setup --all installs what it needs"
            sys.exit(f"{' '.join(command)} failed; {ROOT}/{words}")
    return ROOT / "build/release"


class BuildWithNative(build_py):
    def run(self):
        if not self.editable_mode:  # a tree's own build is found without a copy
            shutil.rmtree(pathlib.Path(self.build_lib, "tendon"), ignore_errors=True)
        super().run()
        if not self.editable_mode:
            self.copy_native(build_native())

    def copy_native(self, build):
        target = pathlib.Path(self.build_lib, "tendon/_native")
        target.mkdir(parents=True, exist_ok=True)
        for name in NATIVE:
            if not (build / name).exists():
                sys.exit(f"{name} is not in {build}: build {' and '.join(TARGETS)}")
            shutil.copy2((build / name).resolve(), target / name)
            if shutil.which("strip"):
                subprocess.run(["strip", "--strip-unneeded", target / name], check=True)


class PlatformWheel(bdist_wheel):
    """For this platform and any Python: what is compiled knows nothing of it."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithNative(Distribution):
    def has_ext_modules(self):
        return True


made = ROOT / "build/python"
made.mkdir(parents=True, exist_ok=True)
setup(
    distclass=WithNative,
    cmdclass={"build_py": BuildWithNative, "bdist_wheel": PlatformWheel},
    options={
        "build": {"build_base": str(made)},
        "egg_info": {"egg_base": str(made)},
    },
)
