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
from tendon.worker import layout
from tendon.worker.answers import Misfit, split, to_chunk, to_numpy, to_value, to_values
from tendon.worker.policy import Policy

POLICY = pathlib.Path(__file__).parent / "worker" / "policy.py"
STATE = np.arange(6, dtype=np.float32)
EXPECTED = STATE[None, :] + np.float32(0.01) * np.arange(ROWS)[:, None]


def worker_manifest(endpoint, policy, engine):
    """The tests' manifest with a worker for its engine."""
    made = manifest(endpoint)
    made["models"][0]["engine"] = {
        "kind": "worker",
        "python": f"policy.py:{policy}",
        "actions": JOINTS,
        "cameras": CAMERAS,
        "chunk": ROWS,
    } | engine
    return made


@pytest.fixture
def start(site, monkeypatch):
    """Starts a server of a policy that stands beside its manifest."""
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")

    def begin(policy, text, **engine):
        site.write("policy.py", text)
        made = worker_manifest(site.endpoint, policy, engine)
        return site.start("worker", "serve", site.write("worker.yaml", made))

    return begin


@pytest.fixture
def serve(start):
    """One of tests/worker/policy.py, at work."""

    def begin(policy, **engine):
        server = start(policy, POLICY.read_text(), **engine)
        server.wait_line("serve: ready")
        return server

    return begin


@pytest.fixture
def client(site):
    """Connects a robot to the server."""

    def connect():
        made = site.keep(Client(site.endpoint, ROUTE, "robot-0"))
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


def test_a_robot_gets_the_text_of_an_exception(serve, client):
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
    assert to_numpy(kind([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
    array = to_chunk(kind([[1, 2], [3, 4]]), (5, 2))
    assert array.dtype == np.float32
    assert array.tolist() == [[1, 2], [3, 4]]


def test_a_dict_is_actions_and_results():
    assert split([[1]]) == ([[1]], {})
    assert split({"actions": [[1]], "value": 3, "none": None}) == ([[1]], {"value": 3})
    with pytest.raises(Misfit, match="a dict of action, not of actions"):
        split({"action": [[1]]})


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "<i8", [3]),
        (0.5, "<f8", [0.5]),
        (True, "|b1", [True]),
        (np.float32([[1, 2]]), "<f4", [[1, 2]]),
        (np.array([1, 2], ">f4"), "<f4", [1, 2]),
        (np.array([1, 2], np.uint16), "<i4", [1, 2]),
        (np.array([1, 2], np.uint32), "<i8", [1, 2]),
        (OnlyDlpack([1, 2]), "<f8", [1, 2]),
        (b"\1\2", "|u1", [1, 2]),
        ("ab", "|u1", [97, 98]),
    ],
)
def test_a_result_keeps_its_dtype(value, dtype, expected):
    name, number, array = to_value("value", value)
    assert (name, layout.DTYPES[number], array.dtype.str) == ("value", dtype, dtype)
    assert array.tolist() == expected


def test_a_text_called_text_is_the_answers_text():
    assert to_value("text", "go left")[1] == layout.TEXT_DTYPE
    assert to_value("text", [1])[1] == layout.DTYPES.index("<i8")
    with pytest.raises(Misfit, match="text: 8193 bytes, at most 8192"):
        to_value("text", "a" * 8193)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"labels": ["a", "b"]}, "labels is <U1 of 1 sides, which cannot be sent"),
        ({"more": {"a": 1}}, "more is object of 1 sides"),
        ({"big": np.zeros(1, np.uint64)}, "big is uint64 of 1 sides"),
        ({"deep": np.zeros([1] * 9)}, "deep is float64 of 9 sides"),
        ({"": 1}, "'' is not a name of 1 to 64 bytes"),
        ({"a" * 65: 1}, "is not a name"),
        ({"a\nb": 1}, "is not a name"),
        ({7: 1}, "7 is not a name"),
        ({str(i): i for i in range(33)}, "results: 33, at most 32"),
        ({"large": np.zeros(257)}, "2112 bytes, there is room for 2048"),
    ],
)
def test_a_result_that_cannot_be_sent_is_named(named, why):
    with pytest.raises(Misfit, match=why):
        to_values(named, 2048)


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


@pytest.mark.parametrize("answer", [["a", "b"], [[1], [1, 2]], object()])
def test_what_is_no_numbers_is_refused(answer):
    with pytest.raises(Misfit, match="the policy gave no rows of numbers"):
        to_chunk(answer, (5, 3))


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


class Halves:
    spec = {"prefix": True}

    def __call__(self, obs):
        return [[obs]]

    def prefix(self, observations):
        return [-obs for obs in observations]

    def decode(self, pairs):
        return [[[prefix]] for _, prefix in pairs]

    def prefix_bytes(self, prefix):
        return 0


def test_a_policy_may_work_in_two_halves():
    policy = Policy(Halves())
    assert policy.splits
    prefixes = policy.prefix([1, 2])
    assert prefixes == [-1, -2]
    assert policy.prefix_bytes(prefixes[0]) == 1  # nothing takes nothing
    assert policy.decode([({}, prefix) for prefix in prefixes]) == [[[-1]], [[-2]]]
    policy.drop(prefixes[0])


def test_a_policy_that_says_prefix_must_have_it(monkeypatch):
    monkeypatch.delattr(Halves, "decode")
    with pytest.raises(TypeError, match="spec says prefix, but there is no decode"):
        Policy(Halves())


def test_what_a_policy_names_beside_its_actions_is_sent(serve, client, site):
    serve("infer_more")
    robot, watch = client(), site.watch()
    action = ask(robot, task="wave")
    results = action["results"]
    np.testing.assert_allclose(array(action["actions"]), EXPECTED, atol=1e-6)
    assert action["text"] == "waving"
    assert array(results["value"]).tolist() == [0.5]
    assert array(results["attention"]).tolist() == STATE[None].tolist()
    assert results["attention"]["dtype"] == "<f8"
    assert bytes(array(results["plan"])).decode() == "left, then right"
    assert set(results) == {"value", "attention", "plan"}
    watch.wait_count("gpu-1", "answered", 1)
    robot.send(again=action["response_to_seq_id"])
    kept = robot.receive()
    assert kept["response_to_seq_id"] == action["response_to_seq_id"]
    assert (kept["text"], kept["results"]) == (action["text"], results)


def test_results_that_do_not_fit_are_refused_by_name(serve, client):
    serve("infer_more")
    robot = client()
    error = ask(robot, task="too much")["error"]
    assert error["code"] == "MISMATCH"
    assert "1600064 bytes, there is room for 1048576 (results_kb)" in error["text"]
    assert "results" in ask(robot)


def ask_again(robot, missed, delay):
    """For another continuation of what was seen then."""
    promised = tensor(np.zeros((1, len(JOINTS))))
    rtc = {"base_chunk": 1, "delay": delay, "prefix": promised}
    robot.send(again=missed, rtc=rtc)
    return robot.receive()


def test_a_missed_answer_is_made_from_the_kept_prefix(serve, client, site):
    serve("Halves")
    robot, watch = client(), site.watch()
    first = ask(robot)
    assert array(first["results"]["delay"]).tolist() == [0]
    watch.wait_count("gpu-1", "answered", 1)
    again = ask_again(robot, first["response_to_seq_id"], delay=3)
    assert again["response_to_seq_id"] == first["response_to_seq_id"]
    assert array(again["results"]["delay"]).tolist() == [3]
    np.testing.assert_array_equal(array(again["actions"]), array(first["actions"]))
    watch.wait_count("gpu-1", "prefix_hits", 1)


def test_a_prefix_goes_with_its_worker_and_the_chunk_stays(serve, client, site):
    server = serve("Halves")
    robot, watch = client(), site.watch()
    first = ask(robot)
    watch.wait_count("gpu-1", "answered", 1)
    os.kill(worker_pid(server), signal.SIGKILL)
    wait_until(lambda: len(server.lines("ready after")) == 2, "it is back")
    wait_until(lambda: robot.status()[0]["state"] == "ready", "and says so")
    lost = ask_again(robot, first["response_to_seq_id"], delay=3)
    assert lost["error"]["code"] == "NOTFOUND"
    watch.wait_count("gpu-1", "again_misses", 1)
    robot.send(again=first["response_to_seq_id"])
    kept = robot.receive()
    np.testing.assert_array_equal(array(kept["actions"]), array(first["actions"]))
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)


def test_a_robot_is_told_of_a_crash_between_the_halves(serve, client):
    server = serve("Halves")
    robot = client()
    assert ask(robot, task="die decoding")["error"]["code"] == "CLOSED"
    wait_until(lambda: len(server.lines("ready after")) == 2, "it is back")
    wait_until(lambda: robot.status()[0]["state"] == "ready", "and says so")
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)


def test_a_policy_that_wants_more_memory_than_it_may_fails_by_name(serve, client):
    serve("infer_or_not", memory_mb=2048)
    robot = client()
    error = ask(robot, task="grow")["error"]
    assert error["code"] == "NOMEM"
    assert "Unable to allocate 8.00 GiB" in error["text"]
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)


def test_a_policy_that_leaks_is_started_again(serve, client):
    server = serve("infer_or_not", memory_mb=1024)
    robot = client()
    for _ in range(3):
        assert ask(robot, task="leak")["error"]["code"] == "NOMEM"
    server.wait_line("has run out of memory; it starts again in 0.1 s")
    wait_until(lambda: len(server.lines("ready after")) == 2, "it is back")
    wait_until(lambda: robot.status()[0]["state"] == "ready", "and says so")
    np.testing.assert_allclose(array(ask(robot)["actions"]), EXPECTED, atol=1e-6)
