# SPDX-License-Identifier: Apache-2.0
"""A Python policy behind `tendon serve`, as strangers on the wire meet it."""

import asyncio
import os
import pathlib
import re
import signal
import sys

import numpy as np
import pytest
from outside_client import Client, array, tensor
from scene import CAMERAS, IMAGES, JOINTS, ROUTE, ROWS, manifest
from tendon_process import ROOT, wait_until

sys.path.insert(0, str(ROOT / "python"))
from tendon.worker.policy import Misfit, Policy, to_array, to_chunk

POLICY = pathlib.Path(__file__).parent / "worker" / "policy.py"
STATE = np.arange(6, dtype=np.float32)
EXPECTED = STATE[None, :] + np.float32(0.01) * np.arange(ROWS)[:, None]


def worker_manifest(endpoint, policy):
    """The tests' manifest with a worker for its engine."""
    made = manifest(endpoint)
    made["server"][0]["engine"] = {
        "kind": "worker",
        "python": f"policy.py:{policy}",
        "actions": JOINTS,
        "cameras": CAMERAS,
        "chunk": ROWS,
    }
    return made


@pytest.fixture
def start(house, monkeypatch):
    """Starts a server of a policy that stands beside its manifest."""
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")

    def begin(policy, text):
        house.write("policy.py", text)
        path = house.write("worker.yaml", worker_manifest(house.endpoint, policy))
        return house.start("worker", "serve", path)

    return begin


@pytest.fixture
def serve(start):
    """One of tests/worker/policy.py, at work."""

    def begin(policy):
        server = start(policy, POLICY.read_text())
        server.wait_line("serve: ready")
        return server

    return begin


@pytest.fixture
def client(house):
    """Connects a robot to the server."""

    def connect():
        made = house.keep(Client(house.endpoint, ROUTE, "robot-0"))
        made.attach("gpu-1")
        return made

    return connect


def ask(client, **fields):
    seq = client.send(**{"state": tensor(STATE), "images": IMAGES} | fields)
    action = client.receive()
    assert action["response_to_seq_id"] == seq
    return action


def test_a_policy_answers(serve, client):
    serve("infer")
    robot = client()
    for _ in range(3):
        np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)


def test_an_exception_is_told_to_its_robot(serve, client):
    server = serve("infer_or_not")
    robot = client()
    assert "the gripper is made of" in ask(robot, task="raise")["error"]["text"]
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)
    server.wait_line("Traceback")


def worker_pid(server):
    return int(re.findall(r"starts as process (\d+)", server.text())[-1])


def test_a_robot_is_told_when_its_worker_is_killed_and_it_comes_back(serve, client):
    server = serve("infer_or_not")
    robot = client()
    robot.send(state=tensor(STATE), images=IMAGES, task="hang")
    os.kill(worker_pid(server), signal.SIGKILL)
    assert robot.receive()["error"]["code"] == "CLOSED"
    server.wait_line("was ended by signal 9 (Killed); it starts again in 0.1 s")
    wait_until(lambda: len(server.lines("ready after")) == 2, "it is back")
    wait_until(lambda: robot.status()[0]["state"] == "ready", "and says so")
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)


def test_a_worker_ends_with_its_server(serve):
    server = serve("infer")
    pid = worker_pid(server)
    server.kill()
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "it is gone")


def test_a_policy_that_cannot_start_ends_the_server(start):
    server = start("infer", "import nothing_like_that\n")
    assert server.ended() == 1
    assert "ModuleNotFoundError: No module named 'nothing_like_that'" in server.text()


class OnlyDlpack:
    """As an array of another library is."""

    def __init__(self, values):
        self.values = np.array(values, np.float64)

    def __dlpack__(self, **kwargs):
        return self.values.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnDevice(OnlyDlpack):
    """Where numpy cannot follow; it converts by itself."""

    def __dlpack__(self, **_):
        raise BufferError("not on the CPU")

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype)


@pytest.mark.parametrize("kind", [list, np.array, OnlyDlpack, OnDevice])
def test_anything_like_an_array_is_taken(kind):
    array = to_array(kind([[1, 2], [3, 4]]))
    assert array.dtype == np.float32
    assert array.tolist() == [[1, 2], [3, 4]]
    assert to_array({"actions": kind([[1, 2]])}).tolist() == [[1, 2]]


def test_what_is_not_sent_of_a_dict_is_said_once(capsys):
    for _ in range(2):
        assert to_array({"actions": [[1]], "value": 3}).tolist() == [[1]]
    assert capsys.readouterr().out == "only actions are sent, left out: value\n"
    with pytest.raises(Misfit, match="a dict of action, not of actions"):
        to_array({"action": [[1]]})


@pytest.mark.parametrize(
    ("answer", "rows"),
    [(np.zeros((5, 3)), 5), (np.zeros(3), 1), (np.zeros((2, 3), int), 2)],
)
def test_a_chunk_may_be_short(answer, rows):
    assert to_chunk(answer, (5, 3)).shape == (rows, 3)


@pytest.mark.parametrize("shape", [(6, 3), (5, 2), (0, 3), (1, 5, 3), (4,)])
def test_a_chunk_of_another_shape_is_refused(shape):
    with pytest.raises(Misfit, match="the model has 1 to 5 x 3"):
        to_chunk(np.zeros(shape), (5, 3))


def test_one_that_raises_fails_alone():
    def infer(obs):
        return 1 / obs

    answers = Policy(infer).run([1, 0, 2])
    assert answers[::2] == [1, 0.5]
    assert isinstance(answers[1], ZeroDivisionError)


def test_coroutines_of_a_batch_run_together():
    waiting = []

    async def infer(obs):
        waiting.append(obs)
        while len(waiting) < 3:
            await asyncio.sleep(0)
        return 1 / obs

    answers = Policy(infer).run([1, 0, 2])
    assert answers[::2] == [1, 0.5]
    assert isinstance(answers[1], ZeroDivisionError)


def test_a_batch_needs_as_many_answers():
    answers = Policy(lambda observations: observations[1:], batched=True).run([1, 2])
    assert [str(answer) for answer in answers] == [
        "the policy gave 1 answers to 2 observations"
    ] * 2
