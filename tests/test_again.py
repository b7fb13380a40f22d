# SPDX-License-Identifier: Apache-2.0
"""Robots that missed an answer, and robots that had nothing to ask for a while."""

import numpy as np
import pytest
from outside_client import Client, array, tensor
from scene import IMAGES, JOINTS, ROUTE, manifest

STATE = np.linspace(-0.5, 0.5, len(JOINTS))


@pytest.fixture
def attached(house):
    """Serves, and returns a client that is taken and a watch."""

    def open_both(**changes):
        house.serve(**changes)
        client = house.keep(Client(house.endpoint, ROUTE, "robot-1"))
        client.attach("gpu-1")
        return client, house.watch()

    return open_both


def test_a_missed_chunk_is_sent_again(attached):
    client, watch = attached()
    missed = client.send(state=tensor(STATE), images=IMAGES)
    first = client.receive()
    watch.wait_count("gpu-1", "answered", 1)
    asking = client.send(again=missed)
    second = client.receive()
    assert second["response_to_seq_id"] == missed
    assert second["superseded"] == [asking]
    assert second["chunk_id"] == first["chunk_id"]
    np.testing.assert_array_equal(array(second["actions"]), array(first["actions"]))
    watch.wait_count("gpu-1", "kept_chunk_hits", 1)


def test_what_is_not_kept_is_said_to_be_so(attached):
    client, watch = attached()
    client.send(state=tensor(STATE), images=IMAGES)
    client.receive()
    watch.wait_count("gpu-1", "answered", 1)
    client.send(again=99)
    assert client.receive()["error"]["code"] == "NOTFOUND"
    client.send(again=1, episode=1)  # the chunk was of the episode before
    assert client.receive()["error"]["code"] == "NOTFOUND"
    watch.wait_count("gpu-1", "again_misses", 2)


def test_without_precompute_nothing_runs_until_asked(attached):
    client, watch = attached(precompute=False)
    client.send(state=tensor(STATE), images=IMAGES)
    newest = client.send(state=tensor(STATE), images=IMAGES)
    watch.wait_count("gpu-1", "superseded", 1)
    asking = client.send(again=newest)
    answer = client.receive()
    assert answer["response_to_seq_id"] == newest
    assert asking in answer["superseded"]
    watch.wait_count("gpu-1", "answered", 1)
    assert watch.count("gpu-1", "waiting") == 0


def test_a_silent_robot_is_gone_and_comes_back_by_sending(house):
    content = manifest(house.endpoint) | {"scheduling": {"cadence": {"gone_s": 0.2}}}
    server = house.start("server", "serve", house.write("server.yaml", content))
    server.wait_line("serve: ready")
    watch = house.watch()
    with Client(house.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        for times in (1, 2):
            client.send(state=tensor(STATE), images=IMAGES)
            assert "error" not in client.receive()
            watch.wait_count("gpu-1", "clients_gone", times)
        server.wait_line("robot-1 is back")
