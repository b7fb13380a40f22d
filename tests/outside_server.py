# SPDX-License-Identifier: Apache-2.0
"""A server's side of Tendon with nothing but eclipse-zenoh, msgpack and numpy.

    with Server("tcp/127.0.0.1:7447", ROUTE, status, policy) as server:
        ...

`status` is what it says of itself, and policy(obs) makes the rows x channels
that answer an observation.
"""

import time

import msgpack
import zenoh
from outside_client import open_session, tensor


class Server:
    def __init__(self, endpoint, route, status, policy):
        self.route, self.policy = route, policy
        self.boot = time.time_ns() // 1_000_000
        self.status = {"server_boot": self.boot, "state": "ready"} | status
        self.server_id = status["server_id"]
        self.observations = {}  # the newest of each client
        self.clients = {}  # subscriptions, by client
        self.session = open_session(endpoint)
        self.session.declare_queryable(f"{route}/status", self.on_query)
        # Robots look again when this token goes.
        self.token = self.session.liveliness().declare_token(
            f"{route}/status/alive/{self.server_id}/{self.boot}"
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def on_query(self, query):
        """Without a payload: who are you? With one: take this client."""
        reply = dict(self.status)
        if query.payload:
            attach = msgpack.unpackb(bytes(query.payload))
            asked = attach["server_id"], attach.get("server_boot", 0)
            if asked not in ((self.server_id, self.boot), (self.server_id, 0)):
                return
            self.subscribe(attach["client_uuid"])
            reply["attach"] = {"accepted": True}
        query.reply(f"{self.route}/status", msgpack.packb(reply))

    def subscribe(self, client):
        if client not in self.clients:
            self.clients[client] = self.session.declare_subscriber(
                f"{self.route}/{client}/obs", self.on_observation
            )

    def on_observation(self, sample):
        obs = msgpack.unpackb(bytes(sample.payload))
        if "again" in obs:  # for an answer that it missed: none is kept here
            self.act(obs, error={"code": "NOTFOUND"})
            return
        self.observations[obs["client_uuid"]] = obs
        self.act(obs, actions=tensor(self.policy(obs)))

    def act(self, obs, **fields):
        """Answers an observation."""
        message = {
            "response_to_seq_id": obs["seq_id"],
            "server_id": self.server_id,
        } | {name: obs[name] for name in ("boot", "route", "episode") if name in obs}
        self.session.put(
            f"{self.route}/{obs['client_uuid']}/action",
            msgpack.packb(message | fields),
            priority=zenoh.Priority.INTERACTIVE_HIGH,
            express=True,
        )
