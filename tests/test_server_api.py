# SPDX-License-Identifier: Apache-2.0
"""A server in a user's program: compiled as a user would, and asked by a
real robot and by somebody from outside."""

import signal

import pytest
from outside_client import Client, array, tensor
from scene import CAMERAS, IMAGES, JOINTS, ROUTE, ROWS, manifest
from sdk import Program
from tendon_process import run

STATE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def own_manifest(endpoint, model="synthetic", engine=None):
    """With a function of the program's in the place of a model."""
    made = manifest(endpoint, model_id=model)
    made["models"][0]["engine"] = {
        "kind": "callback",
        "actions": JOINTS,
        "cameras": CAMERAS,
        "chunk": ROWS,
    } | (engine or {})
    return made


@pytest.fixture
def start(site, sdk):
    """start(program, manifest): a server that is ready."""

    def begin(program, content):
        path = site.write("own.yaml", content)
        made = Program(site.folder / "own.log", program, path, env=sdk.env())
        site.kept.callback(made.end)
        made.wait_line("serve: ready")
        return made

    return begin


@pytest.mark.parametrize("link", ["shared", "static"])
def test_example_serves_a_robot_and_ends_cleanly(site, sdk, start, link):
    program = sdk.compile(
        "examples/my_server.c", name="my_server", static=link == "static"
    )
    server = start(program, own_manifest(site.endpoint, "my-policy", {"max_batch": 4}))
    site.robot(model_id="my-policy")
    watch = site.watch(route=ROUTE.replace("synthetic", "my-policy"))
    watch.wait_moving("robot-1")
    server.wait_line("attached: robot-1")
    watch.wait_count("gpu-1", "score_calls", 1)
    assert server.stop(signal.SIGINT) == 0


def test_cpp_server_answers_while_its_scheduling_changes(site, sdk, start):
    program = sdk.compile(
        "tests/api/server.cpp",
        "-std=c++17",
        "-pedantic",
        compiler="g++",
        name="server",
    )
    server = start(program, own_manifest(site.endpoint))
    count = 60
    with Client(site.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        for _ in range(count):
            client.send(state=tensor(STATE), images=IMAGES, task="wave")
            answer = client.receive()
            assert "error" not in answer, answer
            assert array(answer["actions"]).shape == (ROWS, len(STATE))
            assert abs(array(answer["results"]["brightness"])[0] - 200) < 5
            assert answer["text"] == "wave"
        client.send(state=tensor(STATE), images=IMAGES, task="surprise me")
        error = client.receive()["error"]
        assert (error["code"], error["text"]) == ("INVALID", "what am I to do?")
        # A client's numbers go with it.
        assert server.stop(signal.SIGINT) == 0, server.text()
    numbers = dict(
        line.split() for line in server.text().splitlines() if line[:1].islower()
    )
    assert int(numbers["count"]) == count
    assert int(numbers["answered"]) == count
    assert int(numbers["dropped"]) == 0
    assert int(numbers["reported/inference_latency_ms"]) == count
    assert int(numbers["reported/event/attached"]) == 1
    assert int(numbers["reported/queue_depth"]) >= 1


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_command_line_says_that_a_callback_engine_is_for_programs(site, check):
    path = site.write("own.yaml", own_manifest(site.endpoint))
    done = run("serve", path, *check)
    assert done.returncode == 1
    assert "server gpu-1: engine.kind: callback runs a function of the" in done.stderr
    assert "(tendon/server.h), and there is none for model synthetic" in done.stderr


def test_model_without_its_function_is_refused_by_name(site, sdk):
    program = sdk.compile("examples/my_server.c", name="my_server")
    path = site.write("own.yaml", own_manifest(site.endpoint, "other"))
    made = Program(site.folder / "own.log", program, path, env=sdk.env())
    assert made.ended() == 1
    assert "model my-policy: the manifest has no such model" in made.text()
