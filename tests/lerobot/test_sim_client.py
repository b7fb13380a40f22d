# SPDX-License-Identifier: Apache-2.0
"""LeRobot's environments, with its own configuration and processors, from a server."""

import json
import subprocess
import sys

import numpy as np
import pytest
import sim_env
from sim_env import ACTIONS, HEIGHT, STATES, STEPS, WIDTH
from tendon.lerobot.env import LeRobotEnv
from tendon.lerobot.sim_client import SimClientConfig, play_all
from tendon_process import free_endpoint

LOAD_S = 300
QUIET = "{realtime: {priority: 0, wake_us: -1, lock_memory: false}}"


@pytest.fixture
def served(site):
    """A policy that waves; as many states as the environment has, unless told."""

    def begin(states=STATES):
        site.endpoint = free_endpoint()
        engine = {
            "kind": "synthetic",
            "actions": [f"action_{i}" for i in range(ACTIONS)],
            "states": [f"state_{i}" for i in range(states)],
            "cameras": {"image": {"height": HEIGHT, "width": WIDTH}},
            "latency": {"kind": "fixed", "ms": 2},
        }
        server = {
            "model_id": "wave",
            "model_version": "v1",
            "application_tag": "default",
            "endpoint": site.endpoint,
            "fps": 50,
            "accept_unknown": True,
            "engine": engine,
        }
        group = {"cluster_uuid": "local", "experiment_tag": "default"}
        path = site.write("wave.yaml", group | {"models": [server]})
        site.start("server", "serve", path).wait_line("serve: ready")

    return begin


def play(site, *options):
    """As a person does."""
    args = [
        "--env.discover_packages_path=sim_env",
        "--env.type=sim_env",
        f"--server_address={site.endpoint.removeprefix('tcp/')}",
        "--policy_type=wave",
        f"--settings={QUIET[:-1]}, boot_file: {site.folder}/sim.boot}}",
        *options,
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "tendon.lerobot.sim_client", *args],
        capture_output=True,
        text=True,
        timeout=LOAD_S,
    )
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line[:1] == "{"]
    return ended, lines


def test_episodes_are_played_and_each_is_judged(served, site):
    served()
    ended, (*episodes, summary) = play(site, "--n_episodes=3")
    assert ended.returncode == 0, ended.stderr
    assert [each["number"] for each in episodes] == [0, 1, 2]
    assert all(each["task"] == "sim_env/0" and each["success"] for each in episodes)
    assert all(0 < each["steps"] == each["reward"] <= STEPS for each in episodes)
    assert summary == {"episodes": 3, "success": 1.0}


def test_episodes_that_fail_are_reported_as_failed(served, site):
    served()
    ended, (episode, summary) = play(site, "--n_episodes=1", "--env.far=1000")
    assert ended.returncode == 0, ended.stderr
    assert (episode["success"], episode["steps"]) == (False, STEPS)
    assert summary == {"episodes": 1, "success": 0.0}


def test_a_policy_that_wants_other_states_is_refused(served, site):
    served(states=STATES - 1)
    ended, lines = play(site)
    assert ended.returncode == 1
    assert "state_names" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert lines == []


def test_a_command_that_names_no_policy_is_refused(site):
    ended, lines = play(site, "--policy_type=")
    assert ended.returncode == 1
    assert "which policy?" in ended.stderr
    assert lines == []


def test_the_environments_own_words_are_the_task(monkeypatch):
    runs = []
    monkeypatch.setattr(
        "tendon.lerobot.sim_client.play",
        lambda *args, **settings: runs.append(settings) or [],
    )
    config = SimClientConfig(env=sim_env.SimEnvConfig(), policy_type="wave")
    for task in ("", "wave"):
        config.task = task
        assert list(play_all(config)) == []
    assert [settings["task"] for settings in runs] == ["reach far", "wave"]
    assert runs[0]["fps"] == 50


def test_lerobots_processors_stand_before_the_policy():
    config = sim_env.SimEnvConfig()
    env = LeRobotEnv(sim_env.Reach(far=1), config)
    assert env.cameras == {"image": "image"}
    seen, _ = env.reset(seed=1)
    assert seen["image"].dtype == np.uint8
    assert seen["image"].shape == (HEIGHT, WIDTH, 3)
    assert seen["image"][-1, -1].tolist() == [1, 128, 255]  # turned round
    seen, *_ = env.step(np.arange(ACTIONS, dtype=np.float32))
    assert seen["state"].tolist() == [0, 1, 2, 0, 0, 0, 6, 6]
    assert seen["state"].dtype == np.float32
