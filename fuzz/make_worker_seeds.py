# SPDX-License-Identifier: Apache-2.0
"""Writes fuzz/seeds/worker/: what a worker writes, good and bad."""

import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))

from tendon.worker import layout

SPEC = {
    "cameras": {"front": (48, 64)},
    "states": ["x"],
    "actions": {"a": "linear", "b": "hold"},
    "chunk": 3,
    "max_batch": 3,
}


def hello(spec=SPEC, version=layout.VERSION, phase=layout.SAID):
    made = bytearray(layout.HELLO_SPEC + layout.SPEC_BYTES)
    struct.pack_into("<QII", made, 0, layout.MAGIC, version, phase)
    layout.write_spec(made, layout.HELLO_SPEC, spec)
    return b"h" + bytes(made).rstrip(b"\0")


ACTIONS = layout.round_up(layout.RESULT_BYTES)
VALUES = ACTIONS + 3 * 64
ROOM = 256  # a member's, as fuzz/worker.c has it


def result(count=3, status=0, rows=3, value=0.5, error=b"", values=(), more=0):
    made = bytearray(VALUES + 3 * ROOM)
    layout.RESULT.pack_into(made, 8, 1000, count, 0)
    for i in range(3):
        at = layout.RESULT_ANSWERS + i * layout.ANSWER_BYTES
        layout.ANSWER.pack_into(
            made, at, status, rows, 4096, len(values) + more, 0, error
        )
        for k, (name, dtype, *shape) in enumerate(values):
            place = at + layout.ANSWER_VALUES + k * layout.VALUE.size
            sides = [*shape, *[0] * (8 - len(shape))]
            layout.VALUE.pack_into(made, place, name, dtype, len(shape), *sides)
        struct.pack_into("<6f", made, ACTIONS + 64 * i, *[value] * 6)
        made[VALUES + ROOM * i : VALUES + ROOM * (i + 1)] = b"left" * (ROOM // 4)
    return bytes(made).rstrip(b"\0")


SEEDS = {
    "hello": hello(),
    "hello_cut_short": hello()[:300],
    "hello_newer": hello(version=layout.VERSION + 1),
    "hello_halves": hello(SPEC | {"prefix": True, "results_kb": 4}),
    "hello_huge": hello(
        SPEC | {"cameras": {str(i): (8192, 8192) for i in range(16)}, "max_batch": 64}
    ),
    "hello_noise": b"h" + hello()[1:17] + bytes(range(256)) * 150,
    "result": result(),
    "result_count": result(count=0xFFFFFFFF),
    "result_status": result(status=0xFFFFFFFF),
    "result_rows": result(rows=0xFFFFFFFF),
    "result_not_finite": result(value=float("nan")),
    "result_error": result(status=1, error=b"\xff" * 504),
    "result_values": result(
        values=[(b"force", 0, 2, 3), (b"", layout.TEXT_DTYPE, 64), (b"grip", 4, 8)]
    ),
    "result_value_too_large": result(values=[(b"force", 1, 33)]),
    "result_value_overflow": result(values=[(b"force", 1, *[0xFFFFFFFF] * 8)]),
    "result_value_of_nothing": result(values=[(b"force", 3, 0)]),
    "result_value_twice": result(values=[(b"a", 4, 1), (b"a", 4, 1)]),
    "result_value_nameless": result(values=[(b"\xff" * 64, 4, 1)]),
    "result_value_dtype": result(values=[(b"a", 10, 1)]),
    "result_values_too_many": result(more=0xFFFFFFFF),
    "result_noise": result()[:20] + bytes(range(255, -1, -1)) * 130,
}

if __name__ == "__main__":
    folder = HERE / "seeds" / "worker"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
    print(f"worker: {len(SEEDS)} seeds")
