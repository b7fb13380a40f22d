# SPDX-License-Identifier: Apache-2.0
"""What the pages under docs/ say of the project is so."""

import pathlib
import re

import pytest
from tendon_process import run

ROOT = pathlib.Path(__file__).parents[1]
PAGES = {
    "docs/robot-settings.md": ("| field ", "robot", "--fields"),
    "docs/manifest.md": ("| field ", "serve", "--fields"),
    "docs/metrics.md": ("| name ", "serve", "--metrics"),
    "docs/profile.md": ("| field ", "profile", "--fields"),
    "docs/factory.md": ("| field ", "plan", "--fields"),
}
WITNESSES = ["docs/gaps.md", "docs/rules.md"]


@pytest.mark.parametrize("file", PAGES)
def test_page_is_what_the_table_makes(file):
    start, *command = PAGES[file]
    page = (ROOT / file).read_text()
    table = run(*command).stdout
    assert page[page.index(start) :] == table, "remake it with tools/docs"


def witnesses(page):
    """(file, name) of each `src/a_test.c: one, another` and `docs/b.md`."""
    folders = "src|tests|tools|docs|bench|fuzz|examples|include"
    quoted = rf"`((?:{folders})/[\w./-]+)(?:: ([^`]+))?`"
    for file, names in re.findall(quoted, (ROOT / page).read_text()):
        for name in names.split(", "):
            yield file, name


def exists(file, name):
    path = ROOT / file
    return path.is_file() and re.search(rf"\b{name}\b", path.read_text())


@pytest.mark.parametrize("page", WITNESSES)
def test_every_test_that_is_named_exists(page):
    named = list(witnesses(page))
    assert len(named) > 20
    assert [witness for witness in named if not exists(*witness)] == []


def test_every_command_that_is_named_exists():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    text = "\n".join(page.read_text() for page in pages)
    found = set(re.findall(r"`tendon ([a-z]+)(?: ([a-z]+))?\b[^`]*`", text))
    assert len(found) > 20
    for command, case in found:
        assert f"\n  {command} " in run("--help").stdout, command
        if command in ("bench", "dataset") and case:
            assert f"\n  {case} " in run(command, "--help").stdout, case


def dependencies():
    """What tools/setup and the requirements files name, without what a
    distribution adds to a name; `a|b` are two names of one thing."""
    setup = (ROOT / "tools/setup").read_text()
    for names in re.findall(r"^\w+_packages=\((.*?)\)$", setup, re.M | re.S):
        for name in names.replace('"', "").split():
            yield re.sub(r"\blib|(1g|-19|-build|-tools|-web)?(-dev)?\b(?!-)", "", name)
    for file in ("tests", "tests/lerobot", "bench/peers"):
        text = (ROOT / file / "requirements.txt").read_text()
        yield from re.findall(r"^[\w-]+", text, re.M)


def test_every_dependency_has_a_row():
    page = (ROOT / "docs/dependencies.md").read_text().lower()
    rows = " ".join(re.findall(r"^\| ([^|]+) \|", page, re.M))
    names = set(dependencies())
    assert len(names) > 50
    assert [n for n in names if not any(a in rows for a in n.split("|"))] == []


GLOSSARY = ROOT / "docs/concepts/glossary.md"
# What things were called once, and what is said instead. On every page:
FORMER = {
    r"\bporch\b": "loading",
    r"\bthe (site|house)\b": "Tendon, or the module",
    r"\bone's own\b": "your own",
    r"\bwhom\b": "which client, server or robot",
    r"\bgone on with\b": "continued",
    r"\btd_host_\w+": "td_server_…",
    r"\btd_client_(open|run|start|step|stop|close)\b": "td_robot_…",
    r"\btd_native_body\w*": "td_native_architecture_…",
    r"\btendon/(edge|serve)\.h": "tendon/robot.h, tendon/server.h",
}
# And as names of code, with what may stand before and behind:
FORMER_NAMES = {
    r"porch\w*": "loading",
    r"(module_)?house\w*": "site, world, module",
    r"sought": "wanted",
    r"(un)?see_fn|unsee|tell_fn": "what it does",
    r"puppets?|puppet_\w+": "fake_server",
    r"shel(f|ved)(_\w+)?": "store",
    r"seated|desk|errand|reel": "placed, admission, late_reply, frames",
    r"td_edge_(number|options)_\w+": "td_edge_api_…",
}
CODE = (
    "bench",
    "clients",
    "examples",
    "fuzz",
    "include",
    "python",
    "rust",
    "src",
    "tests",
)


def glossary():
    """(word, meaning, where it shows) of each row."""
    rows = re.findall(
        r"^\| \*\*(.+)\*\* \| (.+) \| (.+) \|$", GLOSSARY.read_text(), re.M
    )
    assert len(rows) > 100
    return rows


def fields():
    for command in ("robot", "serve", "profile", "plan"):
        yield from re.findall(
            r"^\| `([^`]+)` \|", run(command, "--fields").stdout, re.M
        )


def test_each_word_has_one_row_in_order():
    words = [word.lower() for word, _, _ in glossary()]
    assert words == sorted(set(words))


def test_every_name_of_the_glossary_exists():
    headers = "\n".join(
        path.read_text()
        for folder in ("include", "src")
        for path in (ROOT / folder).rglob("*.h")
    )
    package = (ROOT / "python/tendon/__init__.py").read_text()
    topics = (ROOT / "docs/wire.md").read_text()
    known = {
        "td_": lambda name: re.search(rf"\b{name}\b", headers),
        "tendon ": lambda name: f"\n  {name.split()[1]} " in run("--help").stdout,
        "tendon.": lambda name: f'"{name.split(".")[1]}"' in package,
        "src/": lambda name: (ROOT / name).exists(),
        "docs/": lambda name: (ROOT / name).exists(),
        "topic ": lambda name: re.search(rf"[`/]{name.split()[1]}`", topics),
        "ARCH": lambda name: (ROOT / name).exists(),
    }
    there = set(fields())
    for word, _, where in glossary():
        for name in re.sub(r"topic `", "`topic ", where).split(", "):
            name = name.strip("`")
            kind = next((kind for kind in known if name.startswith(kind)), None)
            assert known[kind](name) if kind else name in there, f"{word}: {name}"


@pytest.mark.parametrize(
    "page",
    ["README.md", *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))],
)
def test_no_page_uses_a_former_word(page):
    text = (ROOT / page).read_text()
    found = {old: new for old, new in FORMER.items() if re.search(old, text)}
    assert not found


def names_of(path):
    """The names in a file of code; its comments and texts are left out."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(\\.|[^"\\\n])*"', " ", path.read_text())
    return set(re.findall(r"[A-Za-z_]\w*", text))


@pytest.mark.parametrize("folder", CODE)
def test_no_code_uses_a_former_name(folder):
    endings = (".c", ".h", ".cu", ".cuh", ".hpp", ".cpp", ".rs", ".py")
    files = [p for p in (ROOT / folder).rglob("*") if p.suffix in endings]
    files = [p for p in files if "target" not in p.parts]  # what cargo left
    assert files
    former = re.compile("|".join(FORMER_NAMES))
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in names_of(path)
        if former.fullmatch(name)
    }
    assert not found, FORMER_NAMES
