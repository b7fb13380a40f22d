# SPDX-License-Identifier: Apache-2.0
"""Policies that the tests serve. Each answers with the state, 0.01 more each row."""

import os
import time

import numpy as np
from tendon import worker

ROWS = np.float32(0.01) * np.arange(worker.wanted["chunk"], dtype=np.float32)[:, None]


def infer(obs):
    channels = np.arange(len(worker.wanted["actions"])) % len(obs["state"])
    return obs["state"][channels][None, :] + ROWS


def infer_batch(observations):
    return np.stack([infer(obs) for obs in observations])


async def infer_async(obs):
    return {"actions": infer(obs)}


class Loaded:
    """Made once, at the start."""

    spec = {"chunk": worker.wanted["chunk"], "tolerance": 0.5, "rtc": True}

    def __call__(self, obs):
        return infer(obs).tolist()


class Halves:
    """Its prefix is the state, which is all that decoding needs."""

    spec = {"prefix": True, "rtc": True}

    def __init__(self):
        self.kept = 0

    def __call__(self, obs):
        return self.finish(obs, obs["state"], obs["task"])

    def prefix(self, observations):
        self.kept += len(observations)
        return [(obs["state"].copy(), obs["task"]) for obs in observations]

    def decode(self, pairs):
        return [self.finish(obs, *prefix) for obs, prefix in pairs]

    def finish(self, obs, state, task):
        if task == "die decoding":
            os._exit(7)
        delay = obs["rtc"]["delay_steps"] if obs["rtc"] else 0
        return {"actions": infer({"state": state}), "delay": delay}

    def prefix_bytes(self, prefix):
        """How many there are, so that a test sees which were dropped."""
        return self.kept

    def drop(self, prefix):
        self.kept -= 1


class HalfHalves:
    spec = {"prefix": True}

    def __call__(self, obs):
        return infer(obs)

    def prefix(self, observations):
        return observations


def infer_more(obs):
    """Names more than actions, and sometimes more than there is room for."""
    answer = {"actions": infer(obs), "value": 0.5, "none": None}
    if obs["task"] == "too much":
        return answer | {"attention": np.zeros(200000)}
    attention = obs["state"].astype(np.float64)[None]
    words = {"text": "waving", "plan": "left, then right"}
    return answer | words | {"attention": attention}


leaked = []


def infer_or_not(obs):
    """Does what the task says."""
    task = obs["task"]
    if task == "raise":
        raise ValueError("the gripper is made of ch\u00e4se")
    if task == "grow":
        return np.ones(1 << 33, np.uint8)
    while task == "leak":
        leaked.append(np.empty(1 << 24, np.uint8))
    if task == "die":
        os._exit(7)
    if task == "hang":
        time.sleep(3600)
    if task == "misfit":
        return np.zeros((3, 1))
    if task == "write":
        obs["state"][0] = 1
    return infer(obs)


def infer_nothing(obs):
    return np.zeros((1, 1))


def infer_all(obs):
    """Shows that everything arrived: one number of each thing in the first rows."""
    answer = infer(obs).copy()
    rtc = obs["rtc"]
    answer[:, 0] = 0
    seen = [obs["front"][0, 0, 0], obs["front"].mean(), obs["cursor"], obs["seq"]]
    seen += [np.sum(obs.get("force", 0)), len(obs["metadata"].get("tool", ""))]
    seen += [rtc["delay_steps"], rtc["prefix"].sum()] if rtc else []
    answer[: len(seen), 0] = seen
    return answer
