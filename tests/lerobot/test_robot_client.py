# SPDX-License-Identifier: Apache-2.0
"""LeRobot's robots under the C loop: a simulated one that implements its interface."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import sim_arm
from sim_arm import JOINTS
from tendon.lerobot.robot import LeRobotRobot
from tendon.lerobot.robot_client import RobotClientConfig, robot_settings
from tendon_process import free_endpoint, wait_until

LOAD_S = 300  # LeRobot is slow to import where others are at work
ENGINE = {
    "kind": "synthetic",
    "actions": JOINTS,
    "cameras": {name: {"height": 64, "width": 96} for name in ("front", "wrist")},
    "chunk": 50,
    "latency": {"kind": "fixed", "ms": 5},
}
QUIET = (
    "{realtime: {priority: 0, wake_us: -1, lock_memory: false}, driver_limit_s: 0.3}"
)


class Client:
    """tendon-robot-client, as a person starts it."""

    def __init__(self, site, *options):
        self.log, self.sent = site.folder / "client.log", site.folder / "sent"
        self.sent.touch()
        args = [
            "--robot.discover_packages_path=sim_arm",
            "--robot.type=sim_arm",
            "--robot.id=arm-1",
            f"--robot.log={self.sent}",
            f"--robot.calibration_dir={site.folder}/calibration",
            f"--server_address={site.endpoint.removeprefix('tcp/')}",
            "--policy_type=wave",
            "--task=wave",
            f"--settings={QUIET}",
            *options,
        ]
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tendon.lerobot.robot_client", *args],
                stdout=out,
                stderr=out,
                env=os.environ | {"XDG_STATE_HOME": str(site.folder)},
            )

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_text(self, part):
        def look():
            assert part in self.text() or self.process.poll() is None, self.text()
            return part in self.text()

        wait_until(look, f"{part!r} in {self.text()}", LOAD_S)

    def wait_commands(self, least):
        def look():
            assert self.process.poll() is None, self.text()
            return len(self.commands()) >= least

        wait_until(look, f"{least} commands; {self.text()}", LOAD_S)

    def commands(self):
        return sim_arm.commands(self.sent)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LOAD_S)


@pytest.fixture
def served(site):
    site.endpoint = free_endpoint()
    site.write(
        "wave.yaml",
        {
            "cluster_uuid": "local",
            "experiment_tag": "default",
            "models": [
                {
                    "model_id": "wave",
                    "model_version": "v1",
                    "application_tag": "default",
                    "endpoint": site.endpoint,
                    "accept_unknown": True,
                    "engine": ENGINE,
                }
            ],
        },
    )
    server = site.start("server", "serve", site.folder / "wave.yaml")
    server.wait_line("serve: ready")
    return server


@pytest.fixture
def drive(site, served):
    with contextlib.ExitStack() as stack:

        def begin(*options):
            client = Client(site, *options)
            stack.callback(client.process.wait)
            stack.callback(client.process.kill)
            return client

        yield begin


def test_a_robot_plays_the_policy_until_it_is_time(drive):
    client = drive("--fps=30", "--duration=6")
    assert client.process.wait(LOAD_S) == 0, client.text()
    moved = client.commands()
    assert np.ptp(moved[:, 1:], axis=0).max() > 0
    steps_s = np.diff(moved[:, 0])
    assert np.median(steps_s) == pytest.approx(1 / 30, abs=0.015)


def test_a_robot_that_raises_is_shown_with_its_traceback(drive):
    client = drive("--robot.fault=raise")
    client.wait_text("ConnectionError: the motor bus fell off")
    assert "get_observation" in client.text()  # the person's own line
    assert client.text().count("Traceback") < 5  # once, not thirty times a second
    client.stop()


def test_a_robot_that_blocks_holds_and_goes_on(drive):
    client = drive("--robot.fault=block", "--robot.fault_after=40")
    client.wait_commands(20)
    start = time.monotonic()
    while time.monotonic() - start < 11:
        assert client.process.poll() is None, client.text()
        time.sleep(0.1)
    before = len(client.commands())
    client.wait_commands(before + 30)
    gaps = np.diff(client.commands()[:, 0])
    assert gaps.max() > 9  # it was the robot that stood
    client.stop()


def test_a_server_that_wants_other_pictures_is_refused(drive, site):
    client = drive("--robot.width=128")
    assert client.process.wait(LOAD_S) == 1
    assert "expected_cameras.front: this robot has " in client.text()


def test_a_command_that_makes_no_sense_is_refused(drive):
    client = drive("--aggregate_fn_name=best")
    assert client.process.wait(LOAD_S) == 1
    assert "aggregate_fn_name: must be weighted_average" in client.text()
    assert "Traceback" not in client.text()


def config_of(**more):
    robot = sim_arm.SimArmConfig(id="arm-1")
    return RobotClientConfig(**{"robot": robot, "policy_type": "act"} | more)


def test_options_are_a_robots_settings():
    settings = robot_settings(config_of(server_address="gpu:8080", buffer_time_s=0.3))
    assert settings["endpoint"] == "tcp/gpu:8080"
    assert settings["model_id"] == "act"
    assert settings["client_uuid"] == "arm-1"
    assert settings["observe"] == "time"
    assert "chunk_size_threshold" not in settings
    assert (
        robot_settings(config_of(endpoint="tls/gpu:7447"))["endpoint"] == "tls/gpu:7447"
    )
    assert "dataset_repo_id" not in settings
    recorded = robot_settings(config_of(dataset_repo_id="me/cookies"))
    assert recorded["dataset_repo_id"] == "me/cookies"


def test_a_client_without_a_policy_is_refused():
    with pytest.raises(ValueError, match="which policy?"):
        robot_settings(config_of(policy_type=""))


def arm(tmp_path, fault=""):
    config = sim_arm.SimArmConfig(calibration_dir=tmp_path, fault=fault, fault_after=0)
    return LeRobotRobot(sim_arm.SimArm(config))


def test_a_robot_is_read_and_written_by_name(tmp_path):
    robot = arm(tmp_path)
    assert robot.joints == JOINTS
    assert robot.cameras == {"front": (64, 96), "wrist": (64, 96)}
    robot.write(np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(robot.read(), np.arange(6))
    assert robot.frame("wrist").shape == (64, 96, 3)


@pytest.mark.parametrize(
    "fault, message",
    [
        ("raise", "the motor bus fell off"),
        ("shape", "front: got 10 x 10 x 3 of uint8, it has 64 x 96 x 3"),
        ("miss", "left out joint_2.pos"),
    ],
)
def test_what_a_robot_gives_is_looked_at(fault, message, tmp_path):
    robot = arm(tmp_path, fault)
    with pytest.raises((ValueError, ConnectionError), match=message):
        robot.read()
        robot.frame("front")


def test_a_frame_that_does_not_come_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("tendon.lerobot.robot.FRAME_LIMIT_S", 0.01)
    with pytest.raises(TimeoutError, match="no observation"):
        arm(tmp_path).frame("front")


def test_processors_stand_where_lerobots_loop_has_them(tmp_path):
    arm = sim_arm.SimArm(sim_arm.SimArmConfig(calibration_dir=tmp_path))
    given = []

    def twice(pair):
        action, seen = pair
        given.append(seen["front"].shape)
        return {name: 2 * value for name, value in action.items()}

    robot = LeRobotRobot(arm, twice, lambda seen: seen | {JOINTS[0]: 42.0})
    assert robot.read().tolist() == [42, 0, 0, 0, 0, 0]
    robot.write(np.ones(6, np.float32))
    assert arm.where.tolist() == [2] * 6
    assert given == [(64, 96, 3)]  # what it was when it last looked


class Hand(sim_arm.SimArm):
    """Reads a force that it cannot be sent, and is sent a grip that it cannot read."""

    @property
    def observation_features(self):
        features = dict(super().observation_features)
        del features[JOINTS[-1]]
        return features | {"force": float}

    @property
    def action_features(self):
        return dict.fromkeys(JOINTS, float)

    def get_observation(self):
        seen = super().get_observation()
        del seen[JOINTS[-1]]
        return seen | {"force": 7.5}


def test_a_robot_that_reads_other_things_than_it_is_sent_tells_them(tmp_path):
    config = sim_arm.SimArmConfig(calibration_dir=tmp_path)
    robot = LeRobotRobot(Hand(config))
    assert robot.joints == JOINTS
    assert robot.states == [*JOINTS[:-1], "force"]
    assert robot.read().tolist() == [0] * 6
    robot.write(np.arange(6, dtype=np.float32))
    assert robot.read().tolist() == [0, 1, 2, 3, 4, 5]  # the last as it was sent
    assert robot.observe_state().tolist() == [0, 1, 2, 3, 4, 7.5]


def test_a_robot_that_reads_nothing_is_refused(tmp_path):
    class Blind(sim_arm.SimArm):
        observation_features = {"front": (64, 96, 3)}

    config = sim_arm.SimArmConfig(calibration_dir=tmp_path)
    with pytest.raises(ValueError, match="it reads no numbers"):
        LeRobotRobot(Blind(config))
