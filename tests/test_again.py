# SPDX-License-Identifier: Apache-2.0
"""Robots that missed an answer, and robots that had nothing to ask for a while."""

import msgpack
import numpy as np
import pytest
from outside_client import Client, array, tensor
from outside_server import Server
from scene import IMAGES, JOINTS, ROUTE, ROWS, STATUS, manifest
from tendon_process import wait_until

STATE = np.linspace(-0.5, 0.5, len(JOINTS))


@pytest.fixture
def attached(site):
    """Serves, and returns a client that is taken and a watch."""

    def open_both(**changes):
        site.serve(**changes)
        client = site.keep(Client(site.endpoint, ROUTE, "robot-1"))
        client.attach("gpu-1")
        return client, site.watch()

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


def test_another_chunk_is_made_without_the_first_half(attached):
    client, watch = attached(engine={"halves": True})
    seen = client.send(state=tensor(STATE), images=IMAGES)
    first = client.receive()
    watch.wait_count("gpu-1", "answered", 1)
    asking = client.send(again=seen, anew=True)
    second = client.receive()
    assert second["response_to_seq_id"] == seen
    assert second["superseded"] == [asking]
    assert second["chunk_id"] > first["chunk_id"]
    watch.wait_count("gpu-1", "chunks_decoded", 2)
    assert watch.count("gpu-1", "prefixes_made") == 1
    assert watch.count("gpu-1", "prefix_hits") == 1


@pytest.mark.parametrize(
    "changes", [{"engine": {"halves": True}, "prefixes": {"mb": 0}}, {}]
)
def test_no_other_chunk_is_made_where_no_prefix_is_kept(attached, changes):
    client, watch = attached(**changes)
    seen = client.send(state=tensor(STATE), images=IMAGES)
    client.receive()
    watch.wait_count("gpu-1", "answered", 1)
    client.send(again=seen, anew=True)
    assert client.receive()["error"]["code"] == "NOTFOUND"
    client.send(again=seen)  # the chunk itself is kept
    assert "error" not in client.receive()
    watch.wait_count("gpu-1", "kept_chunk_hits", 1)
    assert watch.count("gpu-1", "chunks_decoded") == 0


class Forgetful(Server):
    """Loses the answer to every tenth observation, until it is asked for again."""

    def __init__(self, endpoint, keeps):
        self.keeps, self.missed, self.words = keeps, {}, []
        super().__init__(endpoint, ROUTE, STATUS, lambda _: np.zeros((ROWS, 6)))

    def on_observation(self, sample):
        obs = msgpack.unpackb(bytes(sample.payload))
        if "again" in obs:
            self.words.append(obs)
            self.answer_again(obs)
        elif obs["seq_id"] % 10 == 0:
            self.missed[obs["seq_id"]] = obs
        else:
            self.act(obs, actions=tensor(self.policy(obs)))

    def answer_again(self, word):
        missed = self.missed.get(word["again"])
        if missed and self.keeps:
            actions = tensor(self.policy(missed))
            self.act(missed, actions=actions, superseded=[word["seq_id"]])
        else:
            self.act(word, error={"code": "NOTFOUND"})


@pytest.mark.parametrize("keeps", [True, False])
def test_a_robot_asks_for_what_it_missed_without_pictures(site, keeps):
    site.router()
    server = site.keep(Forgetful(site.endpoint, keeps))
    site.robot(chunk_size_threshold=1, ask_again=True)
    watch = site.watch()
    watch.wait_count("robot-1", "asked_again", 3)
    watch.wait_more("robot-1", "merged", 20)
    for word in server.words[:3]:
        assert word["again"] in server.missed
        assert "images" not in word and "state" not in word
    ends = watch.newest["robot-1"]["counters"]
    assert ends["superseded" if keeps else "refused"] >= 2
    assert ends["superseded"] * ends["refused"] == 0


def test_a_robot_observes_anew_unless_it_is_told_to_ask_again(site):
    site.router()
    server = site.keep(Forgetful(site.endpoint, keeps=True))
    site.robot(chunk_size_threshold=1)
    watch = site.watch()
    wait_until(lambda: len(server.missed) > 2, "it goes on")
    watch.wait_more("robot-1", "merged", 5)
    assert server.words == []


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


def test_a_silent_robot_is_gone_and_comes_back_by_sending(site):
    content = manifest(site.endpoint) | {"scheduling": {"cadence": {"gone_s": 0.2}}}
    server = site.start("server", "serve", site.write("server.yaml", content))
    server.wait_line("serve: ready")
    watch = site.watch()
    with Client(site.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        for times in (1, 2):
            client.send(state=tensor(STATE), images=IMAGES)
            assert "error" not in client.receive()
            watch.wait_count("gpu-1", "clients_gone", times)
        server.wait_line("robot-1 is back")
