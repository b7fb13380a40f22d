# SPDX-License-Identifier: Apache-2.0
"""What of docs/wire.md's table a subscriber of Zenoh's own can see: how urgent a
message is, whether it waits for others, and that it never blocks who sends it."""

import numpy as np
import pytest
import tendon
from arms import Arm, settings
from outside_client import open_session
from scene import IMAGES, ROUTE
from tendon_process import wait_until
from zenoh import CongestionControl, Priority

DROP = CongestionControl.DROP
EXPECTED = {  # by what follows the route
    "robot-1/obs": (Priority.DATA, False, DROP),
    "robot-1/action": (Priority.INTERACTIVE_HIGH, True, DROP),
    "robot-1/reset": (Priority.DATA_HIGH, True, DROP),
    "robot-1/metrics": (Priority.DATA_LOW, False, DROP),
    "metrics": (Priority.DATA_LOW, False, DROP),
}


@pytest.fixture
def seen(site):
    """How the newest message of each topic came."""
    site.serve()
    found = {}

    def look(sample):
        topic = str(sample.key_expr).removeprefix(f"{ROUTE}/")
        found[topic] = sample.priority, sample.express, sample.congestion_control

    site.keep(open_session(site.endpoint)).declare_subscriber(f"{ROUTE}/**", look)
    return found


def test_every_topic_travels_as_it_should(site, seen):
    arm = Arm()
    site.kept.callback(arm.close)
    arm.start(**settings(site))
    wait_until(lambda: "robot-1/action" in seen, "no answer")
    arm.reset("the cup fell")
    wait_until(lambda: seen.keys() >= EXPECTED.keys(), "not every topic is used")
    assert seen == EXPECTED


def test_a_program_that_asks_is_as_patient_as_a_robot(site, seen):
    cluster, experiment, model, version, application = ROUTE.split("/")
    station = tendon.Connection(
        site.endpoint, "robot-1", "bench", cluster=cluster, experiment=experiment
    )
    site.kept.callback(station.close)
    asked = station.model(model, version=version, application=application)
    asked.wait(60_000)
    asked.observe(state=np.zeros(6, np.float32), front=IMAGES["front"])
    assert asked.get_result(60_000).ok
    wait_until(lambda: "robot-1/obs" in seen, "nothing was asked")
    assert seen["robot-1/obs"] == EXPECTED["robot-1/obs"]
