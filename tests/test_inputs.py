# SPDX-License-Identifier: Apache-2.0
"""Values that say how old they are, and observations that run beside others."""

import numpy as np
import pytest
from outside_client import Client, array, tensor
from scene import IMAGES, JOINTS, ROUTE

STATE = np.zeros(len(JOINTS))


def aged(values, age_ms):
    return tensor(values) | {"age_us": int(age_ms * 1000)}


def send(client, state_ms, force_ms):
    client.send(
        state=aged(STATE, state_ms),
        images=IMAGES,
        tensors={"force": aged([9.81], force_ms)},
    )
    return client.receive().get("error")


def test_ages_are_held_against_the_manifest(site):
    site.serve(inputs={"staleness_ms": 100, "alignment_ms": 5})
    watch = site.watch()
    with Client(site.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        assert send(client, 10, 12) is None
        assert send(client, 10, 20) is None
        error = send(client, 96, 100.5)
        assert error["code"] == "LIMIT"
        assert error["text"] == "force: is 100.5 ms old, at most 100 ms are taken"
        assert send(client, 99, 100) is None
        watch.wait_count("gpu-1", "stale", 1)
        watch.wait_count("gpu-1", "misaligned", 1)


def test_errors_of_observations_are_those_that_are_bad_in_themselves(site):
    site.serve(inputs={"staleness_ms": 100})
    watch = site.watch()
    with Client(site.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        assert send(client, 10, 10) is None
        watch.wait_count("gpu-1", "answered", 1)
        client.send(again=99)  # nothing is wrong with it, but nothing is kept
        assert client.receive()["error"]["code"] == "NOTFOUND"
        assert send(client, 10, 101)["code"] == "LIMIT"
        client.send(state=tensor(STATE), images={})
        assert client.receive()["error"]["code"] == "MISMATCH"
        client.send(state=7)
        assert client.receive()["error"]["code"] == "FORMAT"
        watch.wait_count("gpu-1", "malformed", 1)
    assert watch.count("gpu-1", "refused") == 2
    assert watch.count("gpu-1", "observation_errors") == 3


@pytest.mark.parametrize("engine", [{"continuous": True}, {}])
def test_robots_share_an_engine(site, engine):
    latency = {"kind": "fixed", "ms": 5, "per_batch_ms": 1, "prepare_ms": 1}
    site.serve(engine={"max_batch": 4, "latency": latency} | engine)
    watch = site.watch()
    for robot in ("robot-1", "robot-2", "robot-3"):
        site.robot(robot)
    for robot in ("robot-1", "robot-2", "robot-3"):
        watch.wait_moving(robot)
    with Client(site.endpoint, ROUTE, "witness") as client:
        client.attach("gpu-1")
        client.send(state=tensor(STATE), images=IMAGES)
        actions = array(client.receive()["actions"])
        np.testing.assert_array_equal(actions[0], STATE)
    assert watch.count("gpu-1", "failed") == 0
