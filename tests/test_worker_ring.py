# SPDX-License-Identifier: Apache-2.0
"""The Python worker's side of the shared memory, against servers of all kinds."""

import mmap
import os
import pathlib
import struct
import sys

import numpy as np
import pytest
from tendon_process import ROOT

sys.path.insert(0, str(ROOT / "python"))
from tendon.worker import layout
from tendon.worker.ring import Closed, Ring

PAGE = layout.PAGE
SPEC = {
    "cameras": {"front": (4, 6)},
    "states": ["x", "y"],
    "actions": {"a": "linear", "b": "hold"},
    "chunk": 3,
    "max_batch": 2,
    "results_kb": 1,
}
# As a server would have them: what is where, in 64-bit words of the offer.
PLACES = {
    "requests": 2 * PAGE,
    "request_bytes": 8 * PAGE,
    "results": 18 * PAGE,
    "result_bytes": 4 * PAGE,
    "actions": 246848,
    "actions_bytes": 64,
    "values": 246976,
    "values_bytes": 1024,
}
FILE = 26 * PAGE
DATA = 4 * PAGE  # of a slot's requests, behind its items


class Server:
    """The other side, by hand."""

    def __init__(self, **changes):
        self.fd = os.memfd_create("test")
        os.ftruncate(self.fd, FILE)
        self.memory = mmap.mmap(self.fd, FILE)
        self.bell, self.answer = os.eventfd(1), os.eventfd(0)
        places = PLACES | changes
        layout.OFFER.pack_into(
            self.memory,
            0,
            layout.MAGIC,
            places.pop("version", layout.VERSION),
            places.pop("phase", layout.RING),
            *places.values(),
            33333,
            b"pi0",
            b"v1",
            b"cuda:0",
            b"/weights",
        )
        layout.write_spec(self.memory, layout.OFFER_SPEC, SPEC)

    def ring(self):
        return Ring(f"{self.fd},{self.bell},{self.answer}")

    def close(self):
        for fd in (self.fd, self.bell, self.answer):
            os.close(fd)

    def batch(self, slot=0, generation=1, count=1, operation=0, **item):
        """One that has its members' states, pictures and texts in the same place."""
        at = PLACES["requests"] + slot * PLACES["request_bytes"]
        struct.pack_into("<QII", self.memory, at, generation, count, operation)
        for member in range(count):
            place = at + layout.BATCH_ITEMS + member * layout.ITEM_BYTES
            self.item(place, **item)
        self.memory[at + DATA : at + DATA + 8] = np.float32([1, 2]).tobytes()
        self.memory[at + DATA + 64 : at + DATA + 136] = bytes(range(72))
        self.memory[at + DATA + 192 : at + DATA + 196] = b"wave"

    def item(
        self, at, state=DATA, state_bytes=8, image=DATA + 64, text=DATA + 192, dtype=0
    ):
        layout.ITEM.pack_into(self.memory, at, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0, 0)
        layout.TEXT.pack_into(self.memory, at + layout.ITEM_TASK, text, 4, 0)
        shape = [state_bytes // 4] + [0] * 7
        layout.TENSOR.pack_into(
            self.memory,
            at + layout.ITEM_STATE,
            dtype,
            1,
            *shape,
            state,
            state_bytes,
            -1,
        )
        layout.IMAGES.pack_into(self.memory, at + layout.ITEM_IMAGES, image, *[0] * 15)


@pytest.fixture
def serve():
    made = []

    def start(**changes):
        made.append(Server(**changes))
        return made[-1]

    yield start
    for server in made:
        server.close()


def test_what_is_wanted_is_read(serve):
    wanted = serve().ring().wanted()
    assert wanted["model_id"] == "pi0"
    assert wanted["device"] == "cuda:0"
    assert wanted["pretrained_path"] == "/weights"
    assert wanted["step_period_us"] == 33333
    assert wanted["cameras"] == SPEC["cameras"]
    assert wanted["actions"] == SPEC["actions"]


def test_an_observation_is_read_in_place(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(count=2)
    assert ring.next() == (2, layout.WHOLE)
    obs = ring.observation(1)
    assert obs["state"].tolist() == [1, 2]
    assert obs["front"].shape == (4, 6, 3)
    assert obs["front"][3, 5, 2] == 71
    assert obs["task"] == "wave"
    assert [obs[key] for key in ("seed", "cursor", "boot", "episode", "seq")] == [
        11,
        12,
        13,
        14,
        15,
    ]
    server.memory[PLACES["requests"] + DATA + 64] = 99
    assert obs["front"][0, 0, 0] == 99  # it is the same memory
    assert not obs["front"].flags.writeable


def test_answers_stand_where_the_server_reads(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(slot=1, generation=7, count=2)
    ring.next()
    ring.put_answer(0, np.float32([[1, 2], [3, 4]]), [])
    ring.put_error(1, layout.INTERNAL, "n\u00f6" * 400)
    ring.done(2, 1234)
    at = PLACES["results"] + PLACES["result_bytes"]
    assert struct.unpack_from("<QqI", server.memory, at) == (7, 1234, 2)
    first = layout.ANSWER.unpack_from(server.memory, at + 24)
    assert first[:2] == (layout.OK, 2)
    status, rows, _, _, _, error = layout.ANSWER.unpack_from(
        server.memory, at + 24 + layout.ANSWER_BYTES
    )
    assert (status, rows) == (layout.INTERNAL, 0)
    assert layout.text(error) == "n\u00f6" * 168  # 504 bytes, no character in two
    actions = struct.unpack_from("<4f", server.memory, at + PLACES["actions"])
    assert actions == (1, 2, 3, 4)


def test_the_oldest_goes_first_and_then_it_stops(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(slot=0, generation=3, count=2)
    server.batch(slot=1, generation=2, count=1)
    for count in (1, 2):
        assert ring.next() == (count, layout.WHOLE)
        ring.done(count, 0)
    struct.pack_into("<I", server.memory, 12, layout.STOP)
    with pytest.raises(Closed):
        ring.next()


def test_another_version_is_refused(serve):
    with pytest.raises(RuntimeError, match="version 3, this worker 2"):
        serve(version=3).ring()


@pytest.mark.parametrize(
    "change",
    [
        {"requests": 11 * PAGE},
        {"request_bytes": PAGE},
        {"request_bytes": 1 << 62},
        {"results": 20 * PAGE},
        {"result_bytes": 1 << 40},
        {"actions": 0},
        {"actions": 4 * PAGE},
        {"actions_bytes": 16},
        {"actions_bytes": 1 << 50},
        {"values": 0},
        {"values": 4 * PAGE},
        {"values_bytes": 1 << 50},
    ],
)
def test_a_ring_out_of_bounds_is_refused(serve, change):
    with pytest.raises(ValueError, match="out of bounds"):
        serve(**change).ring().describe({})


@pytest.mark.parametrize(
    "item",
    [
        {"state": 8 * PAGE},
        {"state_bytes": 1 << 33},
        {"image": 8 * PAGE - 71},
        {"text": (1 << 64) - 1},
        {"dtype": 10},
    ],
)
def test_an_offset_out_of_bounds_fails_its_member(serve, item):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(**item)
    ring.next()
    with pytest.raises(ValueError, match="out of bounds"):
        ring.observation(0)


@pytest.mark.parametrize("count", [0, 3, 1 << 31])
def test_a_batch_that_cannot_be_is_refused(serve, count):
    server = serve()
    ring = server.ring()
    ring.describe({})
    struct.pack_into("<QI", server.memory, PLACES["requests"], 1, count)
    with pytest.raises(ValueError, match="out of bounds"):
        ring.next()


def test_an_operation_that_is_none_is_refused(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(operation=3)
    with pytest.raises(ValueError, match="out of bounds"):
        ring.next()


def test_results_stand_where_the_server_reads(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(count=2)
    ring.next()
    values = [
        ("force", 1, np.float64([[1, 2]])),
        ("text", layout.TEXT_DTYPE, np.frombuffer(b"go left", "|u1")),
        ("none", 0, np.zeros((0, 3), np.float32)),
    ]
    ring.put_answer(1, np.float32([[1, 2]]), values)
    at = PLACES["results"]
    answer = at + layout.RESULT_ANSWERS + layout.ANSWER_BYTES
    assert layout.ANSWER.unpack_from(server.memory, answer)[3] == 3
    places = [answer + layout.ANSWER_VALUES + i * layout.VALUE.size for i in range(3)]
    found = [layout.VALUE.unpack_from(server.memory, place) for place in places]
    assert [layout.text(name) for name, *_ in found] == ["force", "text", "none"]
    assert found[0][1:5] == (1, 2, 1, 2)
    assert found[1][1:4] == (layout.TEXT_DTYPE, 1, 7)
    place = at + PLACES["values"] + PLACES["values_bytes"]
    assert struct.unpack_from("<2d", server.memory, place) == (1, 2)
    assert server.memory[place + 64 : place + 71] == b"go left"


def test_a_result_beyond_its_room_is_refused(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(count=2)
    ring.next()
    values = [("large", 4, np.zeros(1025, np.uint8))]
    with pytest.raises(ValueError, match="out of bounds"):
        ring.put_answer(0, np.float32([[1, 2]]), values)


def test_a_prefix_has_a_number_and_a_size(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(operation=layout.PREFIX)
    assert ring.next() == (1, layout.PREFIX)
    assert ring.prefix(0) == 16
    ring.put_prefix(0, 1 << 40)
    answer = PLACES["results"] + layout.RESULT_ANSWERS
    assert layout.ANSWER.unpack_from(server.memory, answer)[2] == 1 << 40


def test_to_be_decoded_an_observation_has_no_inputs(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    server.batch(operation=layout.DECODE)
    ring.next()
    obs = ring.observation(0, inputs=False)
    assert obs["task"] == "wave"
    assert "state" not in obs
    assert "front" not in obs


def test_drops_are_seen_once(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    longs = memoryview(server.memory).cast("Q")
    longs[layout.LONG_DROPS : layout.LONG_DROPS + 2] = memoryview(
        struct.pack("<2Q", 41, 42)
    ).cast("Q")
    longs[layout.LONG_DROPPED] = 2
    seen = []
    server.batch()
    ring.next(seen.append)
    assert seen == [41, 42]
    assert longs[PAGE // 8 + layout.LONG_LET_GO] == 2
    ring.done(1, 0)
    longs[layout.LONG_DROPPED] = 1 << 60  # more than there can be
    server.batch(generation=2)
    ring.next(seen.append)
    assert seen == [41, 42]
    longs.release()


def test_what_was_dropped_before_a_batch_is_gone_when_it_runs(serve):
    """A server that, while its worker lets 41 go, drops 42 and gives a batch."""
    server = serve()
    ring = server.ring()
    ring.describe({})
    seen = []

    def drop(prefix):
        struct.pack_into(
            "<Q", server.memory, 8 * (layout.LONG_DROPS + len(seen)), prefix
        )
        struct.pack_into("<Q", server.memory, 8 * layout.LONG_DROPPED, len(seen) + 1)

    def let_go(prefix):
        seen.append(prefix)
        if prefix == 41:
            drop(42)
            server.batch()
            os.eventfd_write(server.bell, 1)

    drop(41)
    ring.next(let_go)
    assert seen == [41, 42]


@pytest.fixture
def pool():
    """A file of shared memory, as a robot's transport makes them."""
    path = pathlib.Path(f"/dev/shm/tendon-test-{os.getpid()}")
    path.write_bytes(bytes(100) + bytes(range(72)))
    yield path
    path.unlink(missing_ok=True)


def offer_segment(server, index, number, path, inode):
    at = layout.OFFER_SEGMENTS + index * layout.SEGMENT.size
    layout.SEGMENT.pack_into(server.memory, at, number, inode, bytes(path))
    (changed,) = struct.unpack_from("<Q", server.memory, 8 * layout.LONG_CHANGED)
    struct.pack_into("<Q", server.memory, 8 * layout.LONG_CHANGED, changed + 1)


def mapped(server, index):
    at = PAGE + 8 * (layout.LONG_SEGMENTS + index)
    return struct.unpack_from("<Q", server.memory, at)[0]


def in_segment(index, offset):
    return (index + 1) << layout.SEGMENT_SHIFT | offset


def test_a_frame_is_read_in_its_segment(serve, pool):
    server = serve()
    ring = server.ring()
    ring.describe({})
    offer_segment(server, 3, 9, pool, pool.stat().st_ino)
    server.batch(image=in_segment(3, 100))
    ring.next()
    assert mapped(server, 3) == 9
    frame = ring.observation(0)["front"]
    assert frame.tobytes() == bytes(range(72))
    assert not frame.flags.writeable
    ring.done(1, 0)
    offer_segment(server, 3, 0, b"", 0)
    server.batch(generation=2)
    ring.next()
    assert mapped(server, 3) == 0
    assert frame[3, 5, 2] == 71  # whoever kept it still has it


def test_a_segment_that_cannot_be_mapped_is_not_offered(serve, pool, tmp_path):
    server = serve()
    ring = server.ring()
    ring.describe({})
    inode = pool.stat().st_ino
    link = tmp_path / "link"
    link.symlink_to(pool)
    empty = pool.with_suffix(".empty")
    empty.touch()
    offer_segment(server, 0, 1, b"/dev/shm/nothing-like-that", 1)
    offer_segment(server, 1, 2, pool, inode + 1)  # another file of that name
    offer_segment(server, 2, 3, link, inode)
    offer_segment(server, 3, 4, empty, empty.stat().st_ino)
    offer_segment(server, 4, 5, tmp_path, tmp_path.stat().st_ino)
    offer_segment(server, 5, 6, b"\xff\xfe", 1)
    server.batch()
    assert ring.next() == (1, layout.WHOLE)
    empty.unlink()
    assert [mapped(server, i) for i in range(6)] == [0] * 6


@pytest.mark.parametrize(
    "image",
    [in_segment(3, 101), in_segment(3, 1 << 50), in_segment(2, 0), in_segment(200, 0)],
)
def test_a_place_outside_its_segment_fails_its_member(serve, pool, image):
    server = serve()
    ring = server.ring()
    ring.describe({})
    offer_segment(server, 3, 9, pool, pool.stat().st_ino)
    server.batch(image=image)
    ring.next()
    with pytest.raises(ValueError, match="out of bounds"):
        ring.observation(0)


def test_what_is_expected_is_said_once_and_not_too_late(serve):
    server = serve()
    ring = server.ring()
    ring.describe({})
    longs = memoryview(server.memory).cast("Q")
    calls = []
    longs[layout.LONG_EXPECTED] = 1
    server.batch()
    ring.next(expect=lambda: calls.append("late"))
    ring.done(1, 0)
    longs[layout.LONG_EXPECTED] = 2
    struct.pack_into("<I", server.memory, 12, layout.STOP)
    for _ in range(2):
        with pytest.raises(Closed):
            ring.next(expect=lambda: calls.append("now"))
    assert calls == ["now"]
    longs.release()
