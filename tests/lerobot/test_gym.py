# SPDX-License-Identifier: Apache-2.0
"""Environments in the robot's place."""

import gymnasium
import numpy as np
import pytest
import tendon
from gymnasium import spaces
from tendon.gym import GymRobot, play
from tendon_process import free_endpoint

FPS = 50
STEPS = 60
QUIET = {"priority": 0, "wake_us": -1, "lock_memory": False}


class Reach(gymnasium.Env):
    """A point that goes where it is sent; done when it has moved far enough, which
    only a policy makes it do."""

    def __init__(self, far=0.05, nested=True):
        frame = spaces.Box(0, 255, (48, 64, 3), np.uint8)
        agent = spaces.Box(-10, 10, (2,), np.float32)
        self.nested = nested
        self.observation_space = (
            spaces.Dict({"pixels": spaces.Dict({"top": frame}), "agent_pos": agent})
            if nested
            else agent
        )
        self.action_space = spaces.Box(-10, 10, (2,), np.float32)
        self.far = far
        self.seeds = []

    def _see(self):
        if not self.nested:
            return self.where
        frame = np.full((48, 64, 3), 7, np.uint8)
        return {"pixels": {"top": frame}, "agent_pos": self.where}

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.where, self.count = np.zeros(2, np.float32), 0
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.where, self.count = action, self.count + 1
        done = bool(np.abs(action).max() > self.far)
        late = self.count >= STEPS
        return self._see(), 1.0, done, late, {"is_success": done}


def settings(site, **more):
    return {
        "cluster_uuid": "local",
        "experiment_tag": "default",
        "model_id": "wave",
        "model_version": "v1",
        "application_tag": "default",
        "client_uuid": "sim-1",
        "endpoint": site.endpoint,
        "fps": FPS,
        "boot_file": f"{site.folder}/sim.boot",
        "realtime": QUIET,
    } | more


@pytest.fixture
def served(site):
    def begin(cameras, **engine):
        site.endpoint = free_endpoint()
        engine = {"actions": ["x", "y"]} | engine
        engine |= {
            "kind": "synthetic",
            "cameras": cameras,
            "latency": {"kind": "fixed", "ms": 2},
        }
        route = ("model_id", "model_version", "application_tag", "endpoint", "fps")
        server = {name: settings(site)[name] for name in route}
        manifest = {
            "cluster_uuid": "local",
            "experiment_tag": "default",
            "models": [server | {"accept_unknown": True, "engine": engine}],
        }
        path = site.write("wave.yaml", manifest)
        site.start("server", "serve", path).wait_line("serve: ready")

    return begin


def test_episodes_are_played_and_judged(served, site):
    served({"top": {"height": 48, "width": 64}})
    env = Reach()
    played = list(play(env, 3, 10, ["x", "y"], **settings(site)))
    assert [episode.number for episode in played] == [0, 1, 2]
    assert all(episode.success for episode in played)
    assert all(0 < each.steps == each.reward <= STEPS for each in played)
    assert env.seeds[-3:] == [10, 11, 12]


def test_an_episode_that_fails_is_reported_as_failed(served, site):
    served({})
    env = Reach(far=1e9, nested=False)
    (episode,) = play(env, 1, None, ["x", "y"], **settings(site))
    assert not episode.success
    assert episode.steps == STEPS


def test_a_server_that_does_not_fit_ends_it(served, site):
    served({}, actions=["x", "z"])
    with pytest.raises(tendon.Mismatch, match="action_names"):
        list(play(Reach(nested=False), 1, None, ["x", "y"], **settings(site)))


def test_what_is_where_is_found():
    robot = GymRobot(Reach())
    assert robot.joints == ["joint_0", "joint_1"]
    assert robot.cameras == {"top": (48, 64)}
    assert robot.state_paths == ["agent_pos"]
    assert robot.camera_paths == {"top": "pixels/top"}


def test_one_of_several_is_a_number():
    env = gymnasium.make("CartPole-v1")
    robot = GymRobot.__new__(GymRobot)
    robot.env = env
    assert [robot.act(np.array([x], np.float32)) for x in (-3, 0.4, 0.6, 9)] == [
        0,
        0,
        1,
        1,
    ]


def test_a_state_of_another_size_is_sent_and_the_joints_are_where_they_were_sent():
    env = gymnasium.make("CartPole-v1")
    robot = GymRobot(env)
    assert robot.states == ["state_0", "state_1", "state_2", "state_3"]
    assert robot.see(robot.begin(1)).tolist() == [0]
    assert robot.observe_state().shape == (4,) and robot.observe_state().any()
    observation, *_ = env.step(robot.act(np.array([0.75], np.float32)))
    assert robot.see(observation).tolist() == [0.75]
    assert robot.see(robot.begin(1)).tolist() == [0]


def test_a_state_of_the_actions_size_may_have_other_names():
    robot = GymRobot(Reach(), states=["left", "up"])
    assert (robot.joints, robot.states) == (["joint_0", "joint_1"], ["left", "up"])
    assert (
        robot.see(robot.begin(None)).tolist()
        == robot.observe_state().tolist()
        == [0, 0]
    )


def test_a_real_environment_is_played(served, site):
    """Gymnasium's own, whose state and action have nothing in common."""
    served({}, actions=["push"], states=["x", "v", "angle", "turn"])
    env = gymnasium.make("CartPole-v1", max_episode_steps=STEPS)
    states = ["x", "v", "angle", "turn"]
    played = list(play(env, 2, 7, ["push"], states=states, **settings(site)))
    assert [each.number for each in played] == [0, 1]
    assert all(0 < each.steps == each.reward <= STEPS for each in played)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"states": ["x"]}, "4 numbers for 1 states"),
        ({"state": []}, "no state: 0 numbers"),
    ],
)
def test_a_state_that_is_not_there_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GymRobot(gymnasium.make("CartPole-v1"), **options)


def test_joints_of_another_number_are_refused():
    with pytest.raises(ValueError, match="takes 2 numbers, joints are 3"):
        GymRobot(Reach(), ["x", "y", "z"])
