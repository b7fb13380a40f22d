# SPDX-License-Identifier: Apache-2.0
"""python -m tendon.lerobot link: LeRobot's names for our two commands.

LeRobot may have commands of these names one day, and two packages that install the
same file break each other: so they are made by hand, and only where nobody has them.
"""

import argparse
import pathlib
import shutil
import sys

COMMANDS = {
    "lerobot-policy-server": "tendon.lerobot.policy_server",
    "lerobot-robot-client": "tendon.lerobot.robot_client",
}
MARK = "# made by: python -m tendon.lerobot link"


def script(module: str) -> str:
    return f"#!{sys.executable}\n{MARK}\nfrom {module} import main\n\nmain()\n"


def is_ours(path: pathlib.Path) -> bool:
    return MARK in path.read_text(errors="replace")


def link(folder: pathlib.Path) -> int:
    refused = 0
    for name, module in COMMANDS.items():
        there = shutil.which(name) or folder / name
        path = pathlib.Path(there)
        if path.exists() and not is_ours(path):
            print(f"{name}: left alone, {path} is somebody else's", file=sys.stderr)
            refused = 1
            continue
        path = folder / name
        path.write_text(script(module))
        path.chmod(0o755)
        print(f"{name}: {path}")
    return refused


def unlink(folder: pathlib.Path) -> int:
    for name in COMMANDS:
        path = folder / name
        if path.exists() and is_ours(path):
            path.unlink()
            print(f"{name}: removed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tendon.lerobot")
    parser.add_argument("command", choices=("link", "unlink"))
    parser.add_argument(
        "--folder",
        type=pathlib.Path,
        default=pathlib.Path(sys.executable).parent,
        help="where to; the interpreter's own",
    )
    options = parser.parse_args()
    return {"link": link, "unlink": unlink}[options.command](options.folder)


if __name__ == "__main__":
    sys.exit(main())
