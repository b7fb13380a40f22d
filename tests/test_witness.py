# SPDX-License-Identifier: Apache-2.0
"""Strangers who know the wire alone work with `tendon serve` and `tendon robot`."""

import contextlib
import io
import threading

import numpy as np
import PIL.Image
import pytest
from outside_client import Client, array, tensor
from outside_server import Server
from scene import FPS, IMAGES, KINDS, ROUTE, ROWS, STATUS
from tendon_process import wait_until


def expected_chunk(state, cursor):
    """What the synthetic model answers; src/engine/synthetic/model.h says so."""
    w = 2 * np.pi * 0.25 / FPS
    k, j = np.arange(ROWS)[:, None], np.arange(len(KINDS))[None, :]
    moves = np.array([kind != "hold" for kind in KINDS.values()])

    def wave(n):
        return moves * 0.1 * np.sin(w * n + 0.7 * j)

    return (np.float32(state)[j] + wave(cursor + k) - wave(cursor)).astype("<f4")


@pytest.fixture(scope="module")
def server(module_site):
    return module_site.serve(
        clients=[{"client_uuid": f"robot-{i}"} for i in range(4)],
        accept_unknown=False,
        engine={"max_batch": 4, "latency": {"kind": "fixed", "ms": 20}},
    )


@pytest.fixture
def connect(module_site, server):
    """Makes clients of the server, and closes them."""
    with contextlib.ExitStack() as made:
        yield lambda name: made.enter_context(Client(module_site.endpoint, ROUTE, name))
    # The next test uses the same names.
    with Client(module_site.endpoint, ROUTE, "nobody") as nobody:
        wait_until(lambda: not nobody.status()[0].get("clients"), "all have left")


def check(client, states, cursors):
    """Asks once for each state, and holds each answer against the formula."""
    for state, cursor in zip(states, cursors, strict=True):
        seq = client.send(
            state=tensor(state), images=IMAGES, cursor=int(cursor), task="wave"
        )
        action = client.receive()
        assert action["response_to_seq_id"] == seq, action
        assert action["boot"] == client.boot
        assert action["server_id"] == "gpu-1"
        assert action["inference_time_ms"] >= 20
        chunk = array(action["actions"])
        np.testing.assert_allclose(chunk, expected_chunk(state, cursor), atol=1e-6)


def test_status_has_every_field(connect):
    (status,) = connect("robot-0").status()
    assert status.pop("server_boot") > 0
    # A field at its default may be left out.
    assert {"rtc": False, "clients": 0, "load": 0} | status == {
        "schema": 1,
        "model_id": "synthetic",
        "model_version": "v1",
        "server_id": "gpu-1",
        "expected_cameras": {"front": [48, 64]},
        "action_dim": 6,
        "max_actions_per_chunk": ROWS,
        "observation_features": {
            "state": {"dtype": "<f4", "shape": [6]},
            "front": {"dtype": "|u1", "shape": [48, 64, 3]},
        },
        "state": "ready",
        "action_names": list(KINDS),
        "action_kinds": list(KINDS.values()),
        "state_names": list(KINDS),
        "state_kinds": list(KINDS.values()),
        "step_period_us": 10_000,
        "rtc": False,
        "capacity": 256,
        "clients": 0,
        "load": 0,
    }


def test_client_gets_the_chunks_of_the_formula(connect):
    client = connect("robot-0")
    assert client.attach("gpu-1")["clients"] == 1
    rng = np.random.default_rng(1)
    check(client, rng.uniform(-3, 3, (10, 6)), rng.integers(0, 10_000, 10))


def test_several_clients_each_get_their_own(connect, module_site):
    clients = [connect(f"robot-{i}") for i in range(4)]
    for client in clients:
        client.attach("gpu-1")
    rng = np.random.default_rng(2)
    threads, wrong = [], []

    def work(client, states):
        try:
            check(client, states, range(len(states)))
        except Exception as error:
            wrong.append(error)  # to be raised on the test's own thread

    watch = module_site.watch()
    for client in clients:
        states = rng.uniform(-3, 3, (10, 6))
        threads.append(threading.Thread(target=work, args=(client, states)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert not wrong
    # While one batch runs the others wait for the next, together.
    watch.wait_count("gpu-1", "answered", 40)
    runs = watch.count("gpu-1", "batches")
    assert runs < watch.count("gpu-1", "answered")


def test_nobody_listens_to_a_stranger(connect, module_site):
    own, stranger = connect("robot-0"), connect("robot-1")
    own.attach("gpu-1")
    watch = module_site.watch()
    wait_until(lambda: "gpu-1" in watch.newest, "metrics of the server")
    before = watch.count("gpu-1", "received")

    assert not stranger.observations.matching_status.matching
    for _ in range(5):
        stranger.send(state=tensor(np.zeros(6)), images=IMAGES)
    check(own, np.zeros((5, 6)), range(5))
    watch.wait_count("gpu-1", "answered", before + 5)
    assert watch.count("gpu-1", "received") == before + 5
    assert stranger.actions.empty()


def test_a_client_that_leaves_makes_room(connect):
    first = connect("robot-2")
    first.attach("gpu-1")
    first.session.close()
    again = connect("robot-2")
    wait_until(lambda: again.status()[0].get("clients", 0) == 0, "room is made")
    again.attach("gpu-1")
    check(again, np.zeros((1, 6)), [0])


def policy(obs):
    return np.repeat(array(obs["state"])[None, :], ROWS, axis=0)


@pytest.mark.parametrize("codec", ["jpeg", "raw"])
def test_server_drives_a_robot(site, codec):
    site.router()
    watch = site.watch()
    server = site.keep(Server(site.endpoint, ROUTE, STATUS, policy))
    robot = site.robot(image_codec=codec)
    watch.wait_moving("robot-1")

    obs = server.observations["robot-1"]
    assert obs["task"] == "wave to the camera"
    assert array(obs["state"]).shape == (6,)
    assert obs["boot"] == int((site.folder / "robot-1.boot").read_text())
    image = obs["images"]["front"]
    if codec == "jpeg":
        assert image[:2] == b"\xff\xd8" and image[-2:] == b"\xff\xd9"
        picture = np.asarray(PIL.Image.open(io.BytesIO(image)))
    else:
        picture = np.frombuffer(image["data"], "|u1").reshape(image["shape"])
    assert picture.shape == (48, 64, 3)
    assert picture.std() > 10  # not an empty one
    assert robot.stop() == 0
    watch.wait_state("robot-1", "STOPPED")


def test_robot_goes_where_the_server_says(site):
    """The state that a robot reports is the one it was sent to."""
    site.router()
    target = np.linspace(-0.5, 0.5, 6, dtype="<f4")
    server = site.keep(
        Server(site.endpoint, ROUTE, STATUS, lambda obs: np.tile(target, (ROWS, 1)))
    )
    site.robot()

    def arrived():
        obs = server.observations.get("robot-1")
        return obs and np.allclose(array(obs["state"]), target, atol=1e-3)

    wait_until(arrived, "the joints follow")
