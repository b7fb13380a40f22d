# SPDX-License-Identifier: Apache-2.0
"""What `tendon robot` recorded, as LeRobot reads it."""

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from scene import FPS, JOINTS
from test_record import LARGER, order, wait_frames


def record(site, folder):
    """Two episodes of a run."""
    site.serve()
    robot = site.robot(args=("--record", folder), robot=LARGER)
    watch = site.watch()
    wait_frames(watch)
    assert order(site, "next").returncode == 0
    wait_frames(watch)
    assert robot.stop() == 0


def test_lerobot_reads_every_frame_of_a_run(site):
    folder = site.folder / "cookies"
    record(site, folder)
    dataset = LeRobotDataset("me/cookies", root=folder)
    assert dataset.num_episodes == 2 and dataset.fps == FPS
    assert dataset.meta.robot_type == "synthetic"
    frames = [dataset[i] for i in range(len(dataset))]
    for frame in frames:
        assert frame["task"] == "wave to the camera"
        assert frame["observation.state"].shape == (len(JOINTS),)
        assert np.isfinite(frame["action"].numpy()).all()
        assert frame["observation.images.front"].shape == (3, 96, 128)
    assert {int(frame["episode_index"]) for frame in frames} == {0, 1}


def test_what_was_really_done_is_there(site):
    folder = site.folder / "cookies"
    record(site, folder)
    dataset = LeRobotDataset("me/cookies", root=folder)
    frames = [dataset[i] for i in range(len(dataset))]
    played = [frame for frame in frames if not frame["tendon.held"]]
    assert not frames[0]["tendon.held"]  # an episode starts with an action
    assert all(frame["tendon.age_s"] > 0 for frame in played)
    assert all(frame["tendon.chunk"] > 0 for frame in played)
    steps = [(int(f["tendon.chunk"]), int(f["tendon.step"])) for f in played]
    assert len(set(steps)) == len(steps)
