# SPDX-License-Identifier: Apache-2.0
"""What test_package.py runs on every Python: a server, who asks it, and a robot."""

import sys
import threading

import numpy as np
import tendon

ENDPOINT, FOLDER = sys.argv[1:]
WHO = {"cluster": "lab", "experiment": "trial"}
WHAT = {"version": "v1", "application": "wave"}
JOINTS = ["waist", "elbow"]


class Arm(tendon.Robot):
    joints = JOINTS

    def __init__(self):
        self.moved = threading.Event()

    def read(self):
        return np.zeros(2)

    def write(self, action):
        if (action == 1).all():
            self.moved.set()


def main():
    assert "site-packages" in tendon.__file__, tendon.__file__
    server = tendon.Server(ENDPOINT, **WHO)
    server.model("ones", lambda obs: np.ones((10, 2)), actions=JOINTS, chunk=10, **WHAT)
    server.start()
    with tendon.Connection(ENDPOINT, "station-1", **WHO) as connection:
        model = connection.model("ones", **WHAT)
        model.observe(state=[1, 2])
        assert (model.get_result(60_000).actions == 1).all()
    arm = Arm()
    arm.start(
        cluster_uuid="lab",
        experiment_tag="trial",
        model_id="ones",
        model_version="v1",
        application_tag="wave",
        client_uuid="arm-1",
        endpoint=ENDPOINT,
        actions_per_chunk=10,
        boot_file=f"{FOLDER}/boot",
        realtime={"priority": 0, "wake_us": -1, "lock_memory": False},
    )
    assert arm.moved.wait(60), arm.report()
    arm.close()
    server.close()


main()
