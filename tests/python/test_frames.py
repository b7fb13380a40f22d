# SPDX-License-Identifier: Apache-2.0
"""Raw frames, which a worker reads where a robot on its machine wrote them."""

import os
import pathlib
import re
import sys
import textwrap

import numpy as np
import pytest
import tendon
from scene import CAMERAS, JOINTS, ROUTE, ROWS, manifest
from scripts import Script
from tendon_process import wait_until

CLUSTER, EXPERIMENT, MODEL, VERSION, APPLICATION = ROUTE.split("/")
WHO = {"cluster": CLUSTER, "experiment": EXPERIMENT}
WHAT = {"version": VERSION, "application": APPLICATION}
COPIED = "/memfd:tendon-worker"

# Says in which file the frame lies, and what is in it.
POLICY = """
    import pathlib
    import time

    import numpy as np
    from tendon import worker

    HERE = pathlib.Path(__file__).parent
    ROWS = np.zeros((worker.wanted["chunk"], len(worker.wanted["actions"])))

    def file_of(array):
        at = array.ctypes.data
        for line in open("/proc/self/maps"):
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            if begin <= at < end:
                return line.split()[5]

    def infer(obs):
        frame = obs["front"]
        if obs["task"] == "wait":
            (HERE / "begun").touch()
            while not (HERE / "go").exists():
                time.sleep(0.01)
        text = f"{file_of(frame)} {frame.min()} {frame.max()} {frame.flags.writeable}"
        if obs["task"] == "wait":
            (HERE / "seen").write_text(text)
        return {"actions": ROWS, "text": text}
"""

# A robot that is there until it is killed.
ROBOT = """
    import sys

    import numpy as np
    import tendon

    server, cluster, experiment, model, version, application = sys.argv[1:]
    connection = tendon.Connection(
        server, "doomed", cluster=cluster, experiment=experiment
    )
    asked = connection.model(model, version=version, application=application)
    frame = np.full((48, 64, 3), 7, np.uint8)
    state = np.zeros(6, np.float32)
    text = ""
    while not text.startswith("/dev/shm/"):
        asked.observe(state=state, front=frame)
        text = asked.get_result(60_000).text
    print("lies in", text, flush=True)
    asked.observe(state=state, front=frame, task="wait")
    asked.get_result()
"""


@pytest.fixture
def server(site):
    policy = site.write("policy.py", textwrap.dedent(POLICY))
    made = manifest(site.endpoint)
    made["models"][0]["engine"] = {
        "kind": "worker",
        "command": [sys.executable, "-m", "tendon.worker", f"{policy}:infer"],
        "actions": JOINTS,
        "cameras": CAMERAS,
        "chunk": ROWS,
    }
    started = site.start("worker", "serve", site.write("worker.yaml", made))
    started.wait_line("serve: ready")
    return started


@pytest.fixture
def connect(site, server):
    def begin(client="station-1", **changes):
        made = tendon.Connection(site.endpoint, client, **WHO | changes)
        site.kept.callback(made.close)
        return made, made.model(MODEL, **WHAT)

    return begin


def ask(model, color):
    """Where a frame of one color lay; the policy saw nothing but that color."""
    frame = np.full((48, 64, 3), color, np.uint8)
    model.observe(state=np.zeros(6, np.float32), front=frame)
    place, least, most, writeable = model.get_result(60_000).text.split()
    assert (int(least), int(most), writeable) == (color, color, "False")
    return place


def ask_until(model, begins):
    """Each frame of another color, wherever it lies."""
    colors = iter(range(1 << 30))

    def look():
        place = ask(model, next(colors) % 256)
        return place if place.startswith(begins) else None

    return wait_until(look, f"frames lie in {begins}")


def files_of(server):
    """What its worker has mapped of /dev/shm."""
    pid = re.findall(r"starts as process (\d+)", server.text())[-1]
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return set(re.findall(r"/dev/shm/\S+", maps))


def test_a_frame_is_read_where_the_robot_wrote_it(server, connect):
    _, model = connect()
    place = ask_until(model, "/dev/shm/")
    assert files_of(server) == {place}
    for color in range(100):
        assert ask(model, color) == place


def test_two_robots_have_a_file_each(connect):
    _, one = connect("one")
    _, other = connect("other")
    places = {ask_until(one, "/dev/shm/"), ask_until(other, "/dev/shm/")}
    assert len(places) == 2
    for color in range(100):
        assert {ask(one, color), ask(other, 255 - color)} == places


def test_without_shared_memory_frames_are_copied(server, connect):
    _, model = connect(shared_memory=False)
    for color in range(100):
        assert ask(model, color) == COPIED
    assert not files_of(server)


def test_a_file_that_was_removed_is_not_needed(server, connect):
    _, model = connect()
    os.unlink(ask_until(model, "/dev/shm/"))
    assert ask(model, 3) == COPIED
    wait_until(lambda: not files_of(server), "the worker lets it go")
    assert ask(model, 4) == COPIED


def test_a_robot_may_die_while_its_frame_is_read(site, server, connect):
    names = (CLUSTER, EXPERIMENT, MODEL, VERSION, APPLICATION)
    robot = Script(site, "robot", ROBOT, site.endpoint, *names)
    place = robot.wait_line("lies in").split()[2]
    wait_until((site.folder / "begun").exists, "the policy has the frame")
    robot.kill()
    (site.folder / "go").touch()
    seen = site.folder / "seen"
    wait_until(lambda: seen.exists() and seen.read_text(), "it has read it")
    assert seen.read_text() == f"{place} 7 7 False"
    connection, model = connect()
    assert ask_until(model, "/dev/shm/") != place
    connection.close()
    wait_until(lambda: not files_of(server), "what robots left is let go")
    assert not server.lines("starts again")
