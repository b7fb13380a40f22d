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


def infer_or_not(obs):
    """Does what the task says."""
    task = obs["task"]
    if task == "raise":
        raise ValueError("the gripper is made of ch\u00e4se")
    if task == "grow":
        return np.ones(1 << 33, np.uint8)
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
