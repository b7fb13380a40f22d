# SPDX-License-Identifier: Apache-2.0
"""Tendon's library for users' programs, and such programs at work."""

import os
import pathlib
import subprocess

from tendon_process import BIN, ROOT, Tendon

BUILD = pathlib.Path(BIN).parent
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
LIBAV = ("libavcodec", "libavformat", "libavutil", "libswscale", "libx264", "libSvtAv1")


def libav_of(path):
    """What of libav a program or library brings into its process, by name."""
    done = subprocess.run(["ldd", path], check=True, capture_output=True, text=True)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    return [name for name in names if name.startswith(LIBAV)]


class Sdk:
    """Tendon as `cmake --install` leaves it."""

    def __init__(self, folder):
        self.prefix = folder / "prefix"
        self.folder = folder
        subprocess.run(
            ["cmake", "--install", BUILD, "--prefix", self.prefix],
            check=True,
            capture_output=True,
        )
        self.libs = next(self.prefix.rglob("libtendon.so")).parent

    def flags(self, *args):
        env = os.environ | {"PKG_CONFIG_PATH": str(self.libs / "pkgconfig")}
        return subprocess.run(
            ["pkg-config", *args, "tendon"],
            env=env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()

    def compile(self, source, *options, compiler="cc", name="program", static=False):
        program = self.folder / name
        wanted = ["--static"] if static else []
        flags = self.flags("--cflags", "--libs", *wanted)
        if static:
            flags = [
                str(self.libs / "libtendon.a") if f == "-ltendon" else f for f in flags
            ]
        command = [compiler, *WARNINGS, *options, ROOT / source, "-o", program, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program

    def env(self):
        return {"LD_LIBRARY_PATH": str(self.libs)}


class Program(Tendon):
    """Not ours, but our library is in it."""

    def __init__(self, log, program, *args, env):
        self.log = pathlib.Path(log)
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [program, *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=os.environ | env,
            )
