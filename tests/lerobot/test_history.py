# SPDX-License-Identifier: Apache-2.0
"""A policy that looks back sees what LeRobot's own rollout shows it."""

import numpy as np
import pytest
import tiny
import torch
from lerobot.policies import factory
from lerobot.policies.utils import prepare_observation_for_inference
from lerobot.utils.constants import ACTION
from tendon.lerobot import history
from tendon.lerobot.history import History
from tiny import CAMERAS, ROWS, observation

STEPS = ROWS + 2  # of an episode: a second chunk, and one step more


@pytest.fixture(scope="module")
def policy(checkpoint):
    return tiny.Policy({"pretrained_path": str(checkpoint("diffusion"))})


@pytest.fixture(scope="module")
def rollout(checkpoint):
    """The chunks that LeRobot makes of an episode of these observations, by step."""
    folder = checkpoint("diffusion")
    policy = factory.get_policy_class("diffusion").from_pretrained(folder)
    before, after = factory.make_pre_post_processors(policy.config, str(folder))

    def play(episode):
        policy.reset()
        chunks = {}
        for step, obs in enumerate(episode):
            frames = {
                f"observation.images.{name}": obs[name].copy() for name in CAMERAS
            }
            arrays = {"observation.state": obs["state"].copy()} | frames
            batch = before(
                prepare_observation_for_inference(
                    arrays, torch.device("cpu"), obs["task"]
                )
            )
            had_none = not policy._queues[ACTION]
            torch.manual_seed(obs["seed"])
            first = policy.select_action(batch)
            if had_none:
                rows = [after(row) for row in (first, *policy._queues[ACTION])]
                chunks[step] = torch.cat(rows).numpy()
        return chunks

    return play


def shown(number, step, robot="arm", episode=0, boot=1):
    """One as the worker gives it, of a step of a robot's."""
    whose = {"client": robot, "boot": boot, "episode": episode, "cursor": step}
    return observation(number) | whose


def chunk(policy, obs):
    (rows,) = policy([obs])
    return rows.numpy()


def test_every_step_shown_is_lerobots_own_rollout(policy, rollout):
    episode = [observation(number) for number in range(STEPS)]
    expected = rollout(episode)
    assert list(expected) == [0, ROWS]
    for step in range(STEPS):
        rows = chunk(policy, shown(step, step))
        if step in expected:
            np.testing.assert_array_equal(rows, expected[step])
    alone = chunk(policy, observation(ROWS))
    assert not np.array_equal(alone, expected[ROWS])  # the past does matter


def test_robots_side_by_side_do_not_mix(policy):
    apart = {}
    for robot, first in (("a", 10), ("b", 20)):
        chunk(policy, shown(first, 0, f"{robot}-alone"))
        apart[robot] = chunk(policy, shown(first + 1, 1, f"{robot}-alone"))
    policy([shown(10, 0, "a"), shown(20, 0, "b")])
    both = policy([shown(11, 1, "a"), shown(21, 1, "b")])
    for rows, robot in zip(both, "ab", strict=True):
        np.testing.assert_allclose(rows.numpy(), apart[robot], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "what, before",
    [
        ("another episode", shown(30, 4, episode=0)),
        ("another start", shown(30, 4, episode=1, boot=0)),
        ("another robot", shown(30, 4, robot="leg", episode=1)),
        ("a step that is not the one before", shown(30, 2, episode=1)),
    ],
)
def test_nothing_else_is_the_past(policy, what, before):
    chunk(policy, before)
    rows = chunk(policy, shown(31, 5, episode=1))
    np.testing.assert_array_equal(rows, chunk(policy, observation(31)))


def test_what_runs_once_more_is_the_same(policy):
    chunk(policy, shown(40, 0, "again"))
    first = chunk(policy, shown(41, 1, "again"))
    np.testing.assert_array_equal(chunk(policy, shown(41, 1, "again")), first)


def seen(number):
    return {"observation.state": torch.tensor([[float(number)]])}


def test_the_next_step_stands_for_those_that_were_not_sent():
    past = History(4)
    for step in (0, 1, 3):
        joined = past.join(seen(step), [{"client": "arm", "cursor": step}])
    assert joined["observation.state"].flatten().tolist() == [0, 1, 3, 3]
    assert set(past.robots["arm"].steps) == {0, 1, 3}
    past.join(seen(5), [{"client": "arm", "cursor": 5}])
    assert set(past.robots["arm"].steps) == {3, 5}


def test_the_past_of_few_robots_is_kept(monkeypatch):
    monkeypatch.setattr(history, "MOST_ROBOTS", 2)
    past = History(2)
    for robot in ("a", "b", "a", "c"):
        past.join(seen(0), [{"client": robot}])
    assert list(past.robots) == ["a", "c"]
    past.join(seen(0), [{}])
    assert list(past.robots) == ["a", "c"]
