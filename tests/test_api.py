# SPDX-License-Identifier: Apache-2.0
"""The C API: installed, compiled against as a user would, and run against a
real server."""

import pathlib
import re
import signal
import subprocess

import msgpack
import pytest
from outside_client import open_session
from scene import CAMERAS, ROUTE, robot_file
from sdk import Program
from tendon_process import ROOT, run, wait_until


@pytest.fixture
def start(site, sdk):
    """start(program, *args): with the file of a robot of its own."""

    def begin(program, *args, cameras=CAMERAS, **changes):
        content = robot_file(
            site.endpoint,
            "robot-1",
            site.folder,
            robot={"kind": "callback", "cameras": cameras},
            **changes,
        )
        path = site.write("own.yaml", content)
        made = Program(site.folder / "own.log", program, path, *args, env=sdk.env())
        site.kept.callback(made.end)
        return made

    return begin


def threads(program):
    tasks = pathlib.Path(f"/proc/{program.pid}/task").iterdir()
    return {(task / "comm").read_text().strip() for task in tasks}


@pytest.mark.parametrize("link", ["shared", "static"])
@pytest.mark.parametrize("name", ["my_robot", "pull_robot"])
def test_example_plays_chunks_and_ends_cleanly(site, sdk, start, name, link):
    site.serve()
    watch = site.watch()
    program = sdk.compile(f"examples/{name}.c", name=name, static=link == "static")
    robot = start(program, control_hz=300)
    watch.wait_moving("robot-1")
    assert watch.count("robot-1", "driver_failed") == 0
    control = watch.newest["robot-1"]["quantiles"]["control_ms"]
    assert (control["count"] > 0) == (name == "my_robot")
    assert "td-merge" in threads(robot)
    assert not {"td-server", "td-callback", "td-listen"} & threads(robot)
    assert robot.stop(signal.SIGINT) == 0


@pytest.mark.parametrize("name", ["my_robot", "pull_robot"])
def test_example_is_at_most_60_lines(name):
    source = ROOT / f"examples/{name}.c"
    assert len(source.read_text().splitlines()) <= 60


@pytest.mark.parametrize("wrong", ["blocks", "fails", "lies"])
def test_bad_driver_is_counted_and_the_fail_safe_acts(site, sdk, start, wrong):
    site.serve(engine={"cameras": {}})
    watch = site.watch()
    program = sdk.compile("tests/api/bad_driver.c", name="bad_driver")
    robot = start(program, wrong, cameras={}, driver_limit_s=0.1)
    watch.wait_count("robot-1", "failsafe_driver", 5)
    if wrong != "blocks":
        watch.wait_count("robot-1", "driver_failed", 5)
    assert robot.is_running()


def test_cpp_pulls_resets_and_changes_the_task(site, sdk, start):
    site.serve(engine={"cameras": {}})
    received, tasks = [], set()
    session = site.keep(open_session(site.endpoint))
    session.declare_subscriber(
        f"{ROUTE}/robot-1/reset",
        lambda sample: received.append(msgpack.unpackb(bytes(sample.payload))),
    )
    session.declare_subscriber(
        f"{ROUTE}/robot-1/obs",
        lambda sample: tasks.add(msgpack.unpackb(bytes(sample.payload))["task"]),
    )
    program = sdk.compile(
        "tests/api/robot.cpp", "-std=c++17", "-pedantic", compiler="g++", name="cpp"
    )
    robot = start(program, cameras={})
    assert robot.ended() == 0, robot.text()
    numbers = dict(line.split() for line in robot.text().splitlines())
    assert numbers["version"] == run("--version").stdout.split()[1]
    assert float(numbers["fresh"]) >= 100
    wait_until(lambda: received and len(tasks) == 2, "no reset, or no new task")
    assert [(t["episode"], t["reason"]) for t in received] == [(2, "the cup fell")]
    assert tasks == {"wave to the camera", "bow"}


def test_exactly_what_the_headers_declare_is_exported(sdk):
    declared = set()
    for header in (sdk.prefix / "include/tendon").iterdir():
        code = re.sub(r"//.*", "", header.read_text())
        declared |= set(re.findall(r"\b(td_[a-z_]+)\(", code))
    done = subprocess.run(
        ["nm", "-D", "--defined-only", sdk.libs / "libtendon.so"],
        check=True,
        capture_output=True,
        text=True,
    )
    exported = {
        line.split()[2].split("@")[0]
        for line in done.stdout.splitlines()
        if " T " in line
    }
    assert exported == declared


def test_soname_carries_the_major_version(sdk):
    done = subprocess.run(
        ["readelf", "-d", sdk.libs / "libtendon.so"], capture_output=True, text=True
    )
    assert "[libtendon.so.0]" in done.stdout


def test_command_line_says_that_a_callback_robot_is_for_programs(site):
    content = robot_file(
        site.endpoint, "robot-1", site.folder, robot={"kind": "callback"}
    )
    done = run("robot", site.write("own.yaml", content))
    assert done.returncode == 1
    assert "for programs that use the C API, tendon/robot.h" in done.stderr
