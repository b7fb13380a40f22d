# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py, on small sites with one thing wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "check_layers.py"

TABLE = """# A site
| module | what it is for | may use |
|---|---|---|
| `base/` | the ground | – |
| `wire/` | bytes | base |
| `net/` | transports | base |
| `server/` | joins them | base, wire |
| `door/` | more ways in | server and below |
| `cli/` | commands | all |

| module | an unrelated table |
"""

HOUSE = {
    "ARCHITECTURE.md": TABLE,
    "CMakeLists.txt": "td_module(base)\ntd_module(wire\n  DEPS base)\n",
    "include/tendon/err.h": "",
    "include/tendon/wire.h": '#include "tendon/err.h"\n',
    "src/base/log.c": '#include "log.h"\n#include <stdio.h>\n',
    "src/base/log.h": '#include "tendon/err.h"\n',
    "src/wire/obs.c": '#include "base/log.h"\n#include "tendon/wire.h"\n',
    "src/net/net.h": '#include "base/log.h"\n',
    "src/server/server.h": "",
    "src/door/door.c": '#include "server/server.h"\n#include "tendon/wire.h"\n',
    "src/cli/main.c": '#include "net/net.h"\n#include "server/server.h"\n',
}


def check(root, **changes):
    """Builds the site with some files changed; returns the tool's lines."""
    for path, text in (HOUSE | changes).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, TOOL, root], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines()


def test_a_tree_that_keeps_the_table_passes(tmp_path):
    assert check(tmp_path) == []


def test_tests_may_use_everything(tmp_path):
    assert check(tmp_path, **{"src/base/log_test.c": '#include "net/net.h"\n'}) == []


BREACHES = {
    "an include names its line": (
        {"src/wire/obs.c": '// bytes\n\n#include "net/net.h"\n'},
        "src/wire/obs.c:3: wire may not use net",
    ),
    "angle brackets and spaces do not hide it": (
        {"src/wire/obs.c": "#  include <net/net.h>\n"},
        "src/wire/obs.c:1: wire may not use net",
    ),
    "neither does a relative path": (
        {"src/wire/obs.c": '#include "../net/net.h"\n'},
        "src/wire/obs.c:1: wire may not use net",
    ),
    "a header deep inside a module is of that module": (
        {"src/net/inproc/hub.h": '#include "tendon/wire.h"\n'},
        "src/net/inproc/hub.h:1: net may not use wire",
    ),
    "below means the row of that module": (
        {"src/door/door.c": '#include "net/net.h"\n'},
        "src/door/door.c:1: door may not use net",
    ),
    "a public header has a module": (
        {"include/tendon/err.h": '#include "tendon/wire.h"\n'},
        "include/tendon/err.h:1: base may not use wire",
    ),
    "a public header stands alone": (
        {"include/tendon/wire.h": '#include "base/log.h"\n'},
        "include/tendon/wire.h:1: a public header may not use src/base/log.h",
    ),
    "CUDA's sources keep to the map": (
        {"src/wire/obs.cu": '#include "net/net.h"\n'},
        "src/wire/obs.cu:1: wire may not use net",
    ),
    "and its headers": (
        {"src/wire/obs.cuh": '#include "net/net.h"\n'},
        "src/wire/obs.cuh:1: wire may not use net",
    ),
    "and those of C++": (
        {"include/tendon/err.hpp": '#include "tendon/wire.h"\n'},
        "include/tendon/err.hpp:1: base may not use wire",
    ),
    "a room needs a row": (
        {"src/attic/box.c": ""},
        "src/attic/box.c:1: belongs to no module of ARCHITECTURE.md",
    ),
    "a public header needs a row": (
        {"include/tendon/attic.h": ""},
        "include/tendon/attic.h:1: belongs to no module of ARCHITECTURE.md",
    ),
    "the build keeps to the map": (
        {"CMakeLists.txt": "\ntd_module(net DEPS base wire)\n"},
        "CMakeLists.txt:2: net may not use wire",
    ),
    "the build builds no unknown room": (
        {"CMakeLists.txt": "td_module(attic)\n"},
        "CMakeLists.txt:1: attic is no module of ARCHITECTURE.md",
    ),
    "a row that names no module": (
        {"ARCHITECTURE.md": TABLE.replace("base, wire", "base, wires")},
        "ARCHITECTURE.md: server/ may use 'wires', which is no module",
    ),
    "a lost table": (
        {"ARCHITECTURE.md": "# A site\n"},
        "ARCHITECTURE.md: no table '| module | what it is for | may use |'",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_breach(name, tmp_path):
    changes, line = BREACHES[name]
    assert check(tmp_path, **changes) == [line]


ROOMS = {
    "src/net/README.md": """# net
| room | what it is for | may use |
|---|---|---|
| `inproc/` | in one process | base |
| `zenoh/` | over a network | base, inproc, net |
""",
    "src/net/inproc/hub.h": '#include "base/log.h"\n',
    "src/net/zenoh/link.c": '#include "net/inproc/hub.h"\n#include "net/net.h"\n',
    "src/net/open.c": '#include "net/zenoh/link.h"\n#include "base/log.h"\n',
    "src/net/zenoh/link.h": "",
}


def test_rooms_in_order_pass(tmp_path):
    assert check(tmp_path, **ROOMS) == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"src/net/inproc/hub.h": '#include "net/zenoh/link.h"\n'},
            "src/net/inproc/hub.h:1: net/inproc may not use zenoh",
        ),
        (
            {"src/net/inproc/hub.h": '\n#include "net/net.h"\n'},
            "src/net/inproc/hub.h:2: net/inproc may not use net",
        ),
        (
            {"src/net/attic/box.c": ""},
            "src/net/attic/box.c:1: is in no room of src/net/README.md",
        ),
        (
            {
                "src/net/README.md": ROOMS["src/net/README.md"].replace(
                    "base |", "wire |"
                )
            },
            "src/net/README.md: net/inproc/ may use 'wire', which is nothing",
        ),
    ],
)
def test_a_room_keeps_to_its_row(tmp_path, changes, line):
    assert check(tmp_path, **(ROOMS | changes)) == [line]
