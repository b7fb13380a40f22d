# SPDX-License-Identifier: Apache-2.0
"""`tendon`: the program that is inside the package."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn

from . import _library


def main() -> NoReturn:
    program = str(_library.find("tendon"))
    own = str(pathlib.Path(sys.executable).parent)  # whose python3 has this package
    environment = os.environ | {"PATH": f"{own}:{os.environ.get('PATH', '')}"}
    os.execve(program, ["tendon", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
