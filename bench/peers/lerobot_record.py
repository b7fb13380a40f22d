# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own writer, at the pace of a robot.

lerobot_record.py FILE FRAMES HEIGHT WIDTH ROWS FPS MODE: two cameras see the frames
of FILE (raw RGB), `default` as lerobot-record writes them, `streaming` as its
streaming encoder does. A block's numbers are the processor's milliseconds that a row
took until its episode was saved, of this process and its children, and how many rows
were late."""

import logging
import os
import resource
import sys
import tempfile
import time

folder = tempfile.TemporaryDirectory(prefix="td-")  # goes with us
os.environ["HF_LEROBOT_HOME"] = folder.name
os.environ["HF_HUB_OFFLINE"] = "1"
logging.disable()

import numpy as np
from blocks import hold_signals, run_blocks
from lerobot.datasets.lerobot_dataset import LeRobotDataset

JOINTS = [f"j{i}.pos" for i in range(14)]
CAMERAS = ("cam0", "cam1")
THREADS_PER_CAMERA = 4  # lerobot-record's own


def features(height, width):
    vector = {"dtype": "float32", "shape": (len(JOINTS),), "names": JOINTS}
    picture = {
        "dtype": "video",
        "shape": (height, width, 3),
        "names": ["height", "width", "channels"],
    }
    pictures = {f"observation.images.{name}": dict(picture) for name in CAMERAS}
    return {"observation.state": vector, "action": dict(vector), **pictures}


def spent_s():
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(each) for each in who]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Writer:
    def __init__(self, path, frames, height, width, rows, fps, mode):
        shape = (int(frames), int(height), int(width), 3)
        self.frames = np.fromfile(path, np.uint8).reshape(shape)
        self.rows, self.fps = int(rows), int(fps)
        self.state = np.arange(len(JOINTS), dtype=np.float32)
        self.dataset = LeRobotDataset.create(
            "bench/record",
            self.fps,
            features(int(height), int(width)),
            image_writer_threads=THREADS_PER_CAMERA * len(CAMERAS),
            streaming_encoding=mode == "streaming",
        )

    def row(self, number):
        count = len(self.frames)
        row = {"observation.state": self.state, "action": self.state, "task": "wave"}
        for i, name in enumerate(CAMERAS):
            frame = self.frames[(number + i * (count // 2)) % count]
            row[f"observation.images.{name}"] = frame
        return row

    def block(self):
        began_s, late = spent_s(), 0
        due_s = time.monotonic()
        for number in range(self.rows):
            self.dataset.add_frame(self.row(number))
            due_s += 1 / self.fps
            late += time.monotonic() > due_s
            time.sleep(max(0.0, due_s - time.monotonic()))
        self.dataset.save_episode()
        return 1e3 * (spent_s() - began_s) / self.rows, late


hold_signals()
os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # its encoders talk
run_blocks(Writer(*sys.argv[1:]).block)
