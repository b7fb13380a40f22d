# SPDX-License-Identifier: Apache-2.0
"""A session of LeRobot's shown to a checkpoint of LeRobot's, in C: `tendon dataset
replay` finds the errors that LeRobot itself finds."""

import json

import numpy as np
import pytest
import tiny
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from tendon_process import run

FPS = 10
FRAMES = 12
TASK = "pick the red cube"


def frame(number):
    """Of `tiny.observation`, as LeRobot records it."""
    seen = tiny.observation(number, TASK)
    images = {f"observation.images.{name}": seen[name] for name in tiny.CAMERAS}
    action = np.random.default_rng(100 + number).normal(size=len(tiny.JOINTS))
    return images | {
        "observation.state": seen["state"],
        "action": action.astype(np.float32),
        "task": TASK,
    }


@pytest.fixture
def session(tmp_path):
    """One episode, its pictures without loss."""
    numbers = {"dtype": "float32", "shape": (len(tiny.JOINTS),), "names": tiny.JOINTS}
    names = ["height", "width", "channels"]
    images = {
        f"observation.images.{name}": {
            "dtype": "image",
            "shape": (*size, 3),
            "names": names,
        }
        for name, size in tiny.CAMERAS.items()
    }
    dataset = LeRobotDataset.create(
        "test/shown",
        fps=FPS,
        features={"observation.state": numbers, "action": numbers} | images,
        root=tmp_path / "set",
        use_videos=False,
    )
    for number in range(FRAMES):
        dataset.add_frame(frame(number))
    dataset.save_episode()
    dataset.finalize()
    return tmp_path / "set"


def test_errors_are_those_of_lerobot(session, checkpoint):
    folder = checkpoint("act")
    done = run("dataset", "replay", session, "--policy", folder, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["frames"] == report["asked"] == FRAMES
    policy = tiny.Policy({"pretrained_path": str(folder)})
    chunks = np.stack(
        [policy([tiny.observation(i, TASK)])[0].numpy() for i in range(FRAMES)]
    )
    assert report["chunk"] == chunks.shape[1]
    recorded = np.stack([frame(i)["action"] for i in range(FRAMES)])
    first = np.abs(chunks[:, 0] - recorded)
    every = [
        np.abs(chunks[i, : FRAMES - i] - recorded[i : i + chunks.shape[1]])
        for i in range(FRAMES)
    ]
    for i, channel in enumerate(report["channels"]):
        for name, of in (("first", first), ("all", np.vstack(every))):
            assert channel[name]["count"] == len(of)
            assert channel[name]["mean"] == pytest.approx(of[:, i].mean(), abs=1e-4)
            assert channel[name]["max"] == pytest.approx(of[:, i].max(), abs=1e-4)
