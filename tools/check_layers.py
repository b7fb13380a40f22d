#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the modules to their tables: check_layers.py [ROOT].

The module table of ARCHITECTURE.md says what each module may use. Every
#include in src/ and include/tendon/, and every DEPS in CMakeLists.txt, must
keep to it. A module with rooms inside has a table of its own, in its README.md:
what each room may use of other modules, and of the module's other rooms. Tests
(*_test.c), bench/ and fuzz/ may use everything.
"""

import re
import sys
from pathlib import Path

# Public headers that are not named after the module they belong to.
PUBLIC = {
    "err": "base",
    "slice": "base",
    "score": "sched",
    "worker": "engine",
    "infer": "engine",
    "library": "edge",
    "robot": "edge",
    "connect": "client",
    "tendon": "client",
}

SOURCES = {".c", ".h", ".hpp", ".cu", ".cuh"}
HEADING = r"^\|\s*{}\s*\|.*\|\s*may use\s*\|\s*$"
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
MODULE = re.compile(r"^td_module\((\w+)(.*?)\)", re.MULTILINE | re.DOTALL)
DEPS = re.compile(r"\bDEPS\s+((?:\w+\s*)+)")


class Broken(Exception):
    """The map itself cannot be read."""


def read_table(text, first):
    """Returns {name: what its row says it may use}, as written."""
    heading = re.compile(HEADING.format(first))
    lines = iter(text.splitlines())
    if not any(heading.match(line) for line in lines):
        raise Broken(f"no table '| {first} | what it is for | may use |'")
    next(lines, None)  # |---|---|---|
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        rows[cells[0].strip("`/ ")] = cells[-1]
    return rows


def allowed(module, rows):
    """Expands a row into the set of modules it may use, itself included."""
    uses = {module}
    for term in rows[module].split(","):
        term = term.strip()
        if term in ("", "-", "–"):
            continue
        name, _, below = term.partition(" and ")
        if term == "all":
            uses |= set(rows)
        elif name not in rows or below not in ("", "below"):
            raise Broken(f"{module}/ may use '{term}', which is no module")
        else:
            uses |= allowed(name, rows) if below else {name}
    return uses


def owner(path, modules):
    """The module of a path below the root; None if no module owns it."""
    if path.parts[:2] == ("include", "tendon"):
        name = PUBLIC.get(path.stem, path.stem)
        return name if name in modules else None
    if path.parts[0] == "src" and len(path.parts) > 2:
        return path.parts[1]
    return None


class Rooms:
    """The rooms inside one module, by the table of its README.md."""

    def __init__(self, module, table, modules):
        self.module = module
        self.rooms = {}
        for room, cell in table.items():
            terms = [term.strip(" `/") for term in cell.split(",")]
            self.rooms[room] = {t for t in terms if t not in ("", "-", "–")}
        for room, uses in self.rooms.items():
            for term in uses - set(self.rooms) - modules - {"all"}:
                raise Broken(f"{module}/{room}/ may use '{term}', which is nothing")

    def of(self, path):
        """The room that a path below the root is in; "" for the module itself."""
        folder = "/".join(path.parts[2:-1])
        while folder and folder not in self.rooms:
            folder = folder.rpartition("/")[0]
        return folder

    def check(self, path, found, other):
        """What is wrong with an #include of `found`, of module `other`; or None."""
        room = self.of(path)
        uses = self.rooms.get(room, {"all"})
        if "all" in uses:
            return None
        name = other if other != self.module else self.of(found) or self.module
        if name in uses or name == room:
            return None
        return f"{self.module}/{room} may not use {name}"

    def check_folder(self, path):
        if len(path.parts) > 3 and not self.of(path):
            yield f"1: is in no room of src/{self.module}/README.md"


def read_rooms(root, rows):
    """Returns {module: its Rooms} of the modules that have any."""
    rooms = {}
    for readme in sorted((root / "src").glob("*/README.md")):
        module = readme.parent.name
        table = read_table(readme.read_text(encoding="utf-8"), "room")
        try:
            rooms[module] = Rooms(module, table, allowed(module, rows))
        except Broken as broken:
            raise Broken(f"{readme.relative_to(root)}: {broken}") from broken
    return rooms


def target(root, path, include):
    """The path below the root that an #include in `path` names, or None."""
    for folder in (path.parent, Path("src"), Path("include")):
        full = (root / folder / include).resolve()
        if full.is_file() and full.is_relative_to(root):
            return full.relative_to(root)
    return None


def check_file(root, path, rows, rooms):
    """Yields 'line: what is wrong' for one source or header."""
    module = owner(path, rows)
    if module not in rows:
        yield "1: belongs to no module of ARCHITECTURE.md"
        return
    uses = allowed(module, rows)
    inside = rooms.get(module) if path.parts[0] == "src" else None
    if inside:
        yield from inside.check_folder(path)
    text = (root / path).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        found = match and target(root, path, match[1])
        if not found:
            continue
        other = owner(found, rows)
        if other and other not in uses:
            yield f"{number}: {module} may not use {other}"
        elif path.parts[0] == "include" and found.parts[0] == "src":
            yield f"{number}: a public header may not use {found}"
        elif inside and found.parts[0] == "src":
            wrong = inside.check(path, found, other)
            if wrong:
                yield f"{number}: {wrong}"


def check_build(text, rows):
    """Yields 'line: what is wrong' for the DEPS of CMakeLists.txt."""
    for match in MODULE.finditer(text):
        module = match[1]
        number = text.count("\n", 0, match.start()) + 1
        if module not in rows:
            yield f"{number}: {module} is no module of ARCHITECTURE.md"
            continue
        deps = DEPS.search(match[2])
        for other in deps[1].split() if deps else ():
            if other not in allowed(module, rows):
                yield f"{number}: {module} may not use {other}"


def check(root):
    """Returns a line for each breach, in the order of the paths."""
    architecture = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    build = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    rows = read_table(architecture, "module")
    for module in rows:
        allowed(module, rows)
    rooms = read_rooms(root, rows)

    errors = [f"CMakeLists.txt:{error}" for error in check_build(build, rows)]
    for folder in ("include/tendon", "src"):
        for full in sorted((root / folder).rglob("*")):
            if full.suffix not in SOURCES or full.name.endswith("_test.c"):
                continue
            path = full.relative_to(root)
            errors += [
                f"{path}:{error}" for error in check_file(root, path, rows, rooms)
            ]
    return errors


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
    try:
        errors = check(root.resolve())
    except Broken as broken:
        where = "" if "README.md" in str(broken) else "ARCHITECTURE.md: "
        errors = [f"{where}{broken}"]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
