# SPDX-License-Identifier: Apache-2.0
"""Writes fuzz/seeds/journal/: small journals, whole and not."""

import json
import pathlib
import struct

SEEDS = pathlib.Path(__file__).parent / "seeds/journal"
ROWS, VIDEO, PIXELS = range(3)
HEAD, TASK, ROW, END = range(1, 5)

SCHEMA = {
    "fps": 30,
    "robot_type": "arm",
    "codec": "h264",
    "state": ["a.pos"],
    "action": ["a.pos"],
    "cameras": [{"name": "front", "height": 2, "width": 2}],
}


def record(file, body):
    return struct.pack("<BH", file, len(body)) + body


def row(kind, body):
    return record(ROWS, struct.pack("<I", kind) + body)


def head(version=1, schema=SCHEMA):
    return row(HEAD, json.dumps({"version": version, "schema": schema}).encode())


def frame(index):
    yield row(ROW, struct.pack("<qqqf4B2f", 0, 1, index, 0.5, 0, 1, 0, 0, 1.0, 2.0))
    yield record(VIDEO, struct.pack("<qII", index, 1, 0) + b"packet")
    yield record(PIXELS, bytes(range(12)))


def whole(frames):
    video = record(VIDEO, struct.pack("<qII", -1, 0, 0) + b"head")
    parts = [head(), video, row(TASK, b"pick it up")]
    parts += [part for index in range(frames) for part in frame(index)]
    return b"".join(parts)


def main():
    SEEDS.mkdir(parents=True, exist_ok=True)
    no_cameras = SCHEMA | {"cameras": []}
    seeds = {
        "whole": whole(3) + row(END, struct.pack("<I", 7)),
        "unfinished": whole(2),
        "no-frame": whole(0),
        "no-task": head() + b"".join(frame(0)),
        "no-camera": head(schema=no_cameras) + row(TASK, b"x") + next(frame(0)),
        "newer": head(version=2),
        "gap": whole(1) + b"".join(frame(2)),
        "bad-schema": head(schema=SCHEMA | {"fps": 0}),
    }
    for name, data in seeds.items():
        (SEEDS / name).write_bytes(data)


if __name__ == "__main__":
    main()
