# SPDX-License-Identifier: Apache-2.0
"""Policies of LeRobot's behind a real server, as strangers on the wire meet them."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest
import tiny
from outside_client import Client, array, tensor
from tendon.lerobot.policy_server import PolicyServerConfig, manifest_of
from tendon_process import free_endpoint, wait_until
from tiny import CAMERAS, FLOW, JOINTS, KINDS, ROWS, observation

LOAD_S = 300
CLI = [sys.executable, "-m", "tendon.lerobot.policy_server"]


def config_of(folder, endpoint, **more):
    host, port = endpoint.removeprefix("tcp/").split(":")
    return PolicyServerConfig(
        pretrained_name_or_path=str(folder),
        host=host,
        port=int(port),
        action_names=JOINTS,
        **more,
    )


def wait_ready(process, text):
    """LeRobot is slow to import where others are at work."""

    def look():
        assert process.poll() is None, text()
        return "serve: ready" in text()

    wait_until(look, "it serves", LOAD_S)


@pytest.fixture
def serve(site, checkpoint):
    """A server of a small policy; `engine` changes what its manifest says."""

    def begin(kind, policy="Policy", engine=None, **more):
        site.endpoint = free_endpoint()
        manifest = manifest_of(config_of(checkpoint(kind), site.endpoint, **more))
        made = manifest["models"][0]["engine"]
        made["command"][-1] = f"tiny:{policy}"
        made |= engine or {}
        path = site.write("manifest.yaml", manifest)
        seeds = {"TINY_SEEDS": str(site.folder / "seeds")}
        server = site.start("server", "serve", path, env=seeds)
        wait_ready(server.process, server.text)
        return server

    return begin


@pytest.fixture
def connect(site):
    def attach(kind, name="robot-0"):
        route = f"local/default/{kind}/v1/default"
        made = site.keep(Client(site.endpoint, route, name))
        (status,) = made.status()
        made.attach(status["server_id"])
        made.said = status
        return made

    return attach


def message(obs):
    images = {
        name: {"codec": "raw", "shape": [*size, 3], "data": obs[name].tobytes()}
        for name, size in CAMERAS.items()
    }
    return {"state": tensor(obs["state"]), "images": images, "task": obs["task"]}


def ask(client, obs, timeout=60, **more):
    seq = client.send(**message(obs), **more)
    action = client.receive(timeout)
    assert action["response_to_seq_id"] == seq
    return action


def seed_of(site, client, seq):
    """What the policy was given for it, the last time."""
    for line in reversed((site.folder / "seeds").read_text().splitlines()):
        name, number, seed = line.split()
        if (name, int(number)) == (client, seq):
            return int(seed)
    raise LookupError(f"{client} {seq}")


@pytest.fixture(scope="session")
def local(checkpoint):
    made = {}

    def get(kind, obs):
        if kind not in made:
            made[kind] = tiny.Policy({"pretrained_path": str(checkpoint(kind))})
        return made[kind]([obs])[0].numpy()

    return get


@pytest.mark.parametrize("kind", KINDS)
def test_served_is_local_bit_for_bit(kind, serve, connect, local, site):
    serve(kind)
    robot = connect(kind)
    assert robot.said["action_names"] == robot.said["state_names"] == JOINTS
    assert robot.said["expected_cameras"] == {k: list(v) for k, v in CAMERAS.items()}
    assert robot.said["max_actions_per_chunk"] == ROWS
    for number in range(2):
        obs = observation(number)
        action = ask(robot, obs)
        obs["seed"] = seed_of(site, "robot-0", action["response_to_seq_id"])
        np.testing.assert_array_equal(array(action["actions"]), local(kind, obs))


def watch_of(site, kind):
    return site.watch(route=f"local/default/{kind}/v1/default")


@pytest.mark.parametrize("kind", FLOW)
def test_another_chunk_is_denoised_from_the_kept_prefix(
    kind, serve, connect, local, site
):
    """The pull path: vision, language and state are paid for once."""
    serve(kind)
    robot, watch = connect(kind), watch_of(site, kind)
    server = robot.said["server_id"]
    obs = observation(0)
    first = ask(robot, obs)
    seq = first["response_to_seq_id"]
    seed = seed_of(site, "robot-0", seq)
    watch.wait_count(server, "answered", 1)
    asking = robot.send(again=seq, anew=True)
    second = robot.receive(60)
    assert (second["response_to_seq_id"], second["superseded"]) == (seq, [asking])
    assert not np.array_equal(array(second["actions"]), array(first["actions"]))
    other = seed_of(site, "robot-0", seq)
    assert other != seed
    np.testing.assert_array_equal(
        array(second["actions"]), local(kind, obs | {"seed": other})
    )
    watch.wait_count(server, "chunks_decoded", 2)
    assert watch.count(server, "prefixes_made") == 1
    assert watch.count(server, "prefix_hits") == 1


def test_without_room_for_prefixes_none_is_made(serve, connect, local, site):
    kind = "smolvla"
    serve(kind, prefix_mb=0)
    robot, watch = connect(kind), watch_of(site, kind)
    server = robot.said["server_id"]
    obs = observation(0)
    action = ask(robot, obs)
    seq = action["response_to_seq_id"]
    obs["seed"] = seed_of(site, "robot-0", seq)
    np.testing.assert_array_equal(array(action["actions"]), local(kind, obs))
    watch.wait_count(server, "answered", 1)
    robot.send(again=seq, anew=True)
    assert robot.receive(60)["error"]["code"] == "NOTFOUND"
    robot.send(again=seq)
    again = robot.receive(60)
    np.testing.assert_array_equal(array(again["actions"]), array(action["actions"]))
    assert watch.count(server, "chunks_decoded") == 0


def test_without_precompute_a_chunk_is_made_when_it_is_pulled(serve, connect, site):
    kind = "pi0"
    serve(kind, enable_precompute=False)
    robot, watch = connect(kind), watch_of(site, kind)
    server = robot.said["server_id"]
    seq = robot.send(**message(observation(0)))
    watch.wait_count(server, "waiting", 1)
    robot.send(again=seq)
    assert robot.receive(60)["response_to_seq_id"] == seq
    watch.wait_count(server, "chunks_decoded", 1)
    robot.send(again=seq, anew=True)
    assert robot.receive(60)["response_to_seq_id"] == seq
    watch.wait_count(server, "chunks_decoded", 2)
    assert watch.count(server, "prefixes_made") == 1


def test_served_in_batches_is_local(serve, connect, local, site):
    kind = "smolvla"
    server = serve(kind, max_batch=4)
    robots = {name: connect(kind, name) for name in ("a", "b", "c", "d")}
    for turn in range(3):
        sent = {name: observation(turn, f"pick the {name}") for name in robots}
        seqs = {name: robots[name].send(**message(obs)) for name, obs in sent.items()}
        for name, obs in sent.items():
            action = robots[name].receive()
            obs["seed"] = seed_of(site, name, seqs[name])
            np.testing.assert_allclose(
                array(action["actions"]), local(kind, obs), atol=1e-5, rtol=0
            )
    assert server.is_running()


def test_a_worker_that_fails_is_reported_and_comes_back(serve, connect, local):
    """It runs out of memory, crashes and hangs: its robot gets an error each time."""
    serve("act", "Naughty", engine={"memory_mb": 8192, "answer_s": 1})
    robot = connect("act")
    expected = local("act", observation(1))
    for task, error in (("leak", "NOMEM"), ("crash", "CLOSED"), ("hang", "CLOSED")):
        assert ask(robot, observation(0, task))["error"]["code"] == error
        wait_until(lambda: robot.status()[0]["state"] == "ready", "it is back", LOAD_S)
        np.testing.assert_array_equal(
            array(ask(robot, observation(1))["actions"]), expected
        )


def test_the_command_serves_a_checkpoint(site, checkpoint, connect, local):
    """As a person starts it, with LeRobot's own options."""
    site.endpoint = free_endpoint()
    host, port = site.endpoint.removeprefix("tcp/").split(":")
    log = site.folder / "command.log"
    options = {
        "host": host,
        "port": port,
        "fps": 30,
        "inference_latency": 0.033,
        "obs_queue_timeout": 2,
        "enable_precompute": False,
        "policy_type": "act",
        "pretrained_name_or_path": checkpoint("act"),
        "action_names": json.dumps(JOINTS),
    }
    args = [f"--{name}={value}" for name, value in options.items()]
    with contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            [*CLI, *args],
            stdout=stack.enter_context(log.open("w")),
            stderr=subprocess.STDOUT,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_ready(process, log.read_text)
        robot = connect("act")
        obs = observation(5)
        action = ask(robot, obs, must_go=True)  # or it would not be computed
        np.testing.assert_array_equal(array(action["actions"]), local("act", obs))


def test_a_command_that_cannot_serve_says_why():
    ended = subprocess.run(
        [*CLI, "--pretrained_name_or_path=/nowhere"],
        capture_output=True,
        text=True,
        timeout=LOAD_S,
    )
    assert ended.returncode == 1
    assert "/nowhere is no policy" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_checkpoint_of_another_type_is_refused(checkpoint):
    config = config_of(checkpoint("act"), "tcp/host:1", policy_type="pi0")
    with pytest.raises(ValueError, match="is of type act, not pi0"):
        manifest_of(config)


def test_precompute_is_the_manifests(checkpoint):
    config = config_of(checkpoint("act"), "tcp/host:1", enable_precompute=False)
    assert manifest_of(config)["models"][0]["precompute"] is False


def serve_natively(site, folder, kind):
    """The same checkpoint without Python."""
    site.endpoint = free_endpoint()
    manifest = manifest_of(config_of(folder, site.endpoint))
    made = manifest["models"][0]
    made["engine"] = {"kind": "native", "actions": made["engine"]["actions"]}
    server = site.start("native", "serve", site.write("native.yaml", manifest))
    wait_ready(server.process, server.text)


@pytest.mark.parametrize("kind", ["act", *FLOW])
def test_without_python_a_policy_answers_as_with_it(
    kind, serve, connect, checkpoint, site
):
    """The same noise too, which comes from client, episode and seq."""
    chunks = []
    for begin in (serve, lambda kind: serve_natively(site, checkpoint(kind), kind)):
        begin(kind)
        robot = connect(kind)
        for number in range(2):
            robot.send(**message(observation(number)))
            chunks.append(array(robot.receive()["actions"]))
    for with_python, without in zip(chunks[:2], chunks[2:], strict=True):
        largest = np.abs(with_python).max()
        np.testing.assert_allclose(without, with_python, atol=1e-4 * largest)
