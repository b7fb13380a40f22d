# SPDX-License-Identifier: Apache-2.0
"""A dataset whose tables have pictures, as a robot: they travel as they are stored
where that is as JPEG."""

import io

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from outside_server import Server
from scene import CAMERAS, FPS, JOINTS, ROUTE, STATUS
from tendon_process import wait_until
from test_images import policy

FRAMES = 20
FRONT = "observation.images.front"
NUMBERS = {"dtype": "float32", "shape": (len(JOINTS),), "names": list(JOINTS)}
SHAPE = (CAMERAS["front"]["height"], CAMERAS["front"]["width"], 3)


def record(folder):
    """One episode of LeRobot's, with its pictures as PNG."""
    picture = {
        "dtype": "image",
        "shape": SHAPE,
        "names": ["height", "width", "channels"],
    }
    dataset = LeRobotDataset.create(
        "test/set",
        fps=FPS,
        features={"observation.state": NUMBERS, "action": NUMBERS, FRONT: picture},
        root=folder,
        use_videos=False,
    )
    zeros = np.zeros(len(JOINTS), np.float32)
    for i in range(FRAMES):
        values = {FRONT: np.full(SHAPE, 10 * i, np.uint8), "task": "wave"}
        dataset.add_frame({"observation.state": zeros, "action": zeros} | values)
    dataset.save_episode()
    dataset.finalize()


def as_jpeg(png):
    file = io.BytesIO()
    PIL.Image.open(io.BytesIO(png)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def compress(folder):
    """Makes JPEGs of its pictures; gives them."""
    (path,) = folder.glob("data/*/*.parquet")
    table = pq.read_table(path)
    at = table.schema.get_field_index(FRONT)
    cells = table.column(FRONT).to_pylist()
    stored = [as_jpeg(cell["bytes"]) for cell in cells]
    made = [cell | {"bytes": jpeg} for cell, jpeg in zip(cells, stored, strict=True)]
    column = pa.array(made, table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), column), path)
    return stored


def test_a_stored_jpeg_is_sent_as_it_is(site):
    folder = site.folder / "set"
    record(folder)
    stored = compress(folder)
    site.router()
    server = site.keep(Server(site.endpoint, ROUTE, STATUS, policy))
    site.robot(robot={"kind": "replay", "dataset": str(folder)})
    seen = wait_until(lambda: server.observations.get("robot-1"), "an observation")
    assert seen["images"]["front"] in stored
