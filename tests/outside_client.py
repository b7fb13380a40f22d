# SPDX-License-Identifier: Apache-2.0
"""A robot's side of Tendon with nothing but eclipse-zenoh, msgpack and numpy.

    with Client("tcp/127.0.0.1:7447", ROUTE, "robot-1") as client:
        server = client.status()[0]
        client.attach(server["server_id"])
        client.send(state=tensor(np.zeros(6)), images={"front": jpeg}, task="wave")
        chunk = array(client.receive()["actions"])

ROUTE is cluster/experiment/model/version/application.
"""

import json
import queue
import time

import msgpack
import numpy as np
import zenoh


def open_session(endpoint):
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([endpoint]))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("transport/shared_memory/enabled", "false")
    return zenoh.open(config)


def tensor(values):
    values = np.ascontiguousarray(values, "<f4")
    return {"dtype": "<f4", "shape": list(values.shape), "data": values.tobytes()}


def array(tensor):
    return np.frombuffer(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])


class Client:
    def __init__(self, endpoint, route, client_uuid):
        self.route, self.client_uuid = route, client_uuid
        self.boot = time.time_ns() // 1_000_000  # grows with each start
        self.seq = 0
        self.actions = queue.SimpleQueue()
        self.session = open_session(endpoint)
        key = f"{route}/{client_uuid}"
        self.observations = self.session.declare_publisher(f"{key}/obs")
        self.session.declare_subscriber(
            f"{key}/action",
            lambda sample: self.actions.put(msgpack.unpackb(bytes(sample.payload))),
        )
        # While this token lives the server keeps our place.
        self.token = self.session.liveliness().declare_token(f"{key}/alive/{self.boot}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def status(self, attach=None):
        """What every server of the model says of itself, or, to an attach, one."""
        replies = self.session.get(
            f"{self.route}/status",
            payload=attach and msgpack.packb(attach),
            target=zenoh.QueryTarget.ALL,
            consolidation=zenoh.ConsolidationMode.NONE,
            timeout=10,
        )
        return [
            msgpack.unpackb(bytes(reply.ok.payload)) for reply in replies if reply.ok
        ]

    def attach(self, server_id):
        """Asks one server to take us; returns when it listens to our observations."""
        ask = {
            "client_uuid": self.client_uuid,
            "server_id": server_id,
            "boot": self.boot,
        }
        for answer in self.status(attach=ask):
            if not answer["attach"]["accepted"]:
                raise PermissionError(answer["attach"]["reason"])
            while not self.observations.matching_status.matching:
                time.sleep(0.01)
            return answer
        raise LookupError(f"server {server_id} does not answer")

    def send(self, **fields):
        self.seq += 1
        message = {"seq_id": self.seq, "boot": self.boot}
        message["client_uuid"] = self.client_uuid
        self.observations.put(msgpack.packb(message | fields))
        return self.seq

    def receive(self, timeout=30):
        """The next action message; queue.Empty when none comes in time."""
        return self.actions.get(timeout=timeout)
