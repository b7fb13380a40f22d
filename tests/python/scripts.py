# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, each in a process of its own."""

import os
import pathlib
import sys
import textwrap

from tendon_process import ROOT, Tendon

HERE = pathlib.Path(__file__).parent


class Script(Tendon):
    def __init__(self, site, name, text, *args, python=sys.executable, **env):
        import subprocess

        path = site.write(f"{name}.py", textwrap.dedent(text))
        self.log = site.folder / f"{name}.log"
        paths = [ROOT / "python", ROOT / "tests", HERE]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [python, "-u", path, *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=site.folder,
                env=os.environ | {"PYTHONPATH": ":".join(map(str, paths))} | env,
            )
        site.kept.callback(self.end)
