# SPDX-License-Identifier: Apache-2.0
"""The worker's side of the memory that it shares with its server."""

import mmap
import os

import numpy as np

from . import layout


class Closed(Exception):
    """The server has no more for us."""


def _check(holds, what):
    if not holds:
        raise ValueError(f"the server's {what} is out of bounds")


def _map_file(path, inode):
    """A file of shared memory, to be read; None where it cannot be had."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if status.st_ino != inode:
            return None
        return mmap.mmap(file, status.st_size, mmap.MAP_SHARED, mmap.PROT_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)


class Ring:
    def __init__(self, numbers):
        self.file, self.bell, self.answer = map(int, numbers.split(","))
        self.offer = self._map(0, layout.PAGE, mmap.PROT_READ)
        self.hello = self._map(layout.PAGE, layout.PAGE)
        self.phase = memoryview(self.offer).cast("I")
        self.offered = memoryview(self.offer).cast("Q")
        self.words = memoryview(self.hello).cast("I")
        self.longs = memoryview(self.hello).cast("Q")
        magic, version, *_ = layout.OFFER.unpack_from(self.offer)
        if (magic, version) != (layout.MAGIC, layout.VERSION):
            raise RuntimeError(
                f"the server speaks version {version}, this worker {layout.VERSION}"
            )
        self.longs[0] = layout.MAGIC
        self.words[2] = layout.VERSION
        self.last = self.expected = 0
        self.frames = {}  # by their place in the ring, which has few
        self.changed = 0  # of the segments, as it was last seen
        self.segments = {}  # by index; None where it could not be mapped

    def _map(self, offset, size, prot=mmap.PROT_READ | mmap.PROT_WRITE):
        return mmap.mmap(self.file, size, mmap.MAP_SHARED, prot, offset=offset)

    def wanted(self):
        (_, _, _, *_, period, model, version, device, path) = layout.OFFER.unpack_from(
            self.offer
        )
        return {
            "model_id": layout.text(model),
            "model_version": layout.text(version),
            "device": layout.text(device),
            "pretrained_path": layout.text(path),
            "step_period_us": period,
        } | layout.read_spec(self.offer, layout.OFFER_SPEC)

    def _set_phase(self, phase):
        self.words[layout.WORD_PHASE] = phase
        os.write(self.answer, b"\1\0\0\0\0\0\0\0")

    def fail(self, why):
        at = layout.HELLO_ERROR
        why = layout.cut(why, layout.ERROR_BYTES)
        self.hello[at : at + len(why)] = why
        self._set_phase(layout.FAILED)

    def describe(self, spec):
        """Says what the model is, and waits for the ring."""
        layout.write_spec(self.hello, layout.HELLO_SPEC, spec)
        self._set_phase(layout.DESCRIBED)
        while self.phase[layout.WORD_PHASE] == layout.LOAD:
            os.read(self.bell, 8)
        if self.phase[layout.WORD_PHASE] != layout.RING:
            raise Closed
        self.spec = layout.read_spec(self.offer, layout.OFFER_SPEC)
        self.shape = (self.spec["chunk"], len(self.spec["actions"]))
        self._open()

    def _open(self):
        size = os.fstat(self.file).st_size
        fields = layout.OFFER.unpack_from(self.offer)[3:11]
        requests, self.request_bytes, results, self.result_bytes = fields[:4]
        actions, actions_bytes, self.values, self.values_bytes = fields[4:]
        asked = layout.SLOTS * self.request_bytes
        results_bytes = layout.SLOTS * self.result_bytes
        cells = self.shape[0] * self.shape[1]
        count = self.spec["max_batch"]
        _check(self.request_bytes >= layout.BATCH_BYTES, "ring")
        _check(requests + asked <= size and results + results_bytes <= size, "ring")
        self._check_places(actions, actions_bytes, "room for actions")
        _check(4 * cells <= actions_bytes, "room for actions")
        self._check_places(self.values, self.values_bytes, "room for results")
        self.requests = self._map(requests, asked, mmap.PROT_READ)
        self.results = self._map(results, results_bytes)
        self.asked = memoryview(self.requests).cast("Q")
        self.result_words = memoryview(self.results).cast("Q")
        self.actions = [
            [
                np.frombuffer(
                    self.results,
                    "<f4",
                    cells,
                    slot * self.result_bytes + actions + member * actions_bytes,
                ).reshape(self.shape)
                for member in range(count)
            ]
            for slot in range(layout.SLOTS)
        ]

    def _check_places(self, at, each, what):
        """One for each member, in a slot's results."""
        _check(at >= layout.RESULT_BYTES, what)
        _check(at + self.spec["max_batch"] * each <= self.result_bytes, what)

    def ready(self, warm_ns):
        self.longs[layout.LONG_WARM] = warm_ns
        self._set_phase(layout.READY)

    def next(self, drop=lambda prefix: None, expect=lambda: None):
        """Waits for a batch: how many it has, and what to do with them. The oldest
        goes first. `drop` gets the numbers of the prefixes that may go; `expect` is
        called when a batch is about to come."""
        while True:
            self._map_segments()
            slots = range(layout.SLOTS)
            waiting = [(self.asked[i * self.request_bytes // 8], i) for i in slots]
            waiting = [each for each in waiting if each[0] > self.last]
            self._let_go(drop)  # then: all that was dropped before it was set
            self._look_ahead(expect, bool(waiting))
            if waiting:
                break
            if self.phase[layout.WORD_PHASE] == layout.STOP:
                raise Closed
            os.read(self.bell, 8)
        self.last, self.slot = min(waiting)
        self.begin = self.slot * self.request_bytes
        _, count, operation = layout.BATCH.unpack_from(self.requests, self.begin)
        _check(0 < count <= self.spec["max_batch"], "batch")
        _check(operation <= layout.DECODE, "batch")
        self.longs[layout.LONG_RUNNING] = self.last
        self.beat(layout.ALL)
        return count, operation

    def _look_ahead(self, expect, has_come):
        """What has come by now is expected no more."""
        expected = self.offered[layout.LONG_EXPECTED]
        if expected != self.expected and not has_come:
            expect()
        self.expected = expected

    def _let_go(self, drop):
        done = self.longs[layout.LONG_LET_GO]
        dropped = self.offered[layout.LONG_DROPPED]
        if done == dropped or dropped - done > layout.DROPS:
            return
        for i in range(done, dropped):
            drop(self.offered[layout.LONG_DROPS + i % layout.DROPS])
        self.longs[layout.LONG_LET_GO] = dropped

    def _map_segments(self):
        """What cannot be mapped stays unsaid, and its frames are copied."""
        changed = self.offered[layout.LONG_CHANGED]
        if changed == self.changed:
            return
        self.changed = changed
        for i in range(layout.SEGMENTS):
            number, inode, path = layout.SEGMENT.unpack_from(
                self.offer, layout.OFFER_SEGMENTS + i * layout.SEGMENT.size
            )
            said = layout.LONG_SEGMENTS + i
            if number != self.longs[said]:
                self.segments[i] = _map_file(path.rstrip(b"\0"), inode)
                self.longs[said] = number if self.segments[i] else 0

    def beat(self, member):
        """This member begins, or all of them."""
        self.words[layout.WORD_MEMBER] = member
        self.move()

    def move(self):
        """Something has gone forward."""
        self.longs[layout.LONG_BEAT] += 1

    def _array(self, dtype, shape, offset, size):
        _check(offset + size <= self.request_bytes, "tensor")
        count = size // np.dtype(dtype).itemsize
        array = np.frombuffer(self.requests, dtype, count, self.begin + offset)
        return array.reshape(shape)

    def _tensor(self, at):
        dtype, rank, *shape, offset, size, _ = layout.TENSOR.unpack_from(
            self.requests, at
        )
        _check(rank <= 8 and dtype < len(layout.DTYPES), "tensor")
        return self._array(layout.DTYPES[dtype], shape[:rank], offset, size)

    def _text(self, at):
        offset, size, _ = layout.TEXT.unpack_from(self.requests, at)
        if not size:
            return ""
        _check(offset + size <= self.request_bytes, "text")
        offset += self.begin
        return self.requests[offset : offset + size].decode()

    def _item(self, member):
        return self.begin + layout.BATCH_ITEMS + member * layout.ITEM_BYTES

    def prefix(self, member):
        """The number of a member's prefix."""
        return layout.ITEM.unpack_from(self.requests, self._item(member))[5]

    def observation(self, member, inputs=True):
        """The arrays look into shared memory, and are good until done()."""
        at = self._item(member)
        seed, cursor, boot, episode, seq, _, base, delay, has_rtc, tensors, pairs = (
            layout.ITEM.unpack_from(self.requests, at)
        )
        _check(tensors <= 32 and pairs <= 32, "observation")
        obs = {
            "client": self._text(at + layout.ITEM_CLIENT),
            "task": self._text(at + layout.ITEM_TASK),
            "metadata": self._metadata(at + layout.ITEM_METADATA, pairs),
            "seed": seed,
            "cursor": cursor,
            "boot": boot,
            "episode": episode,
            "seq": seq,
            "rtc": None,
        }
        if has_rtc:
            obs["rtc"] = {
                "base_chunk": base,
                "delay_steps": delay,
                "prefix": self._tensor(at + layout.ITEM_RTC),
            }
        if inputs:
            self._add_inputs(obs, at, tensors)
        return obs

    def _add_inputs(self, obs, at, tensors):
        if self.spec["states"]:
            obs["state"] = self._tensor(at + layout.ITEM_STATE)
        for i in range(tensors):
            named = at + layout.ITEM_TENSORS + i * layout.NAMED_BYTES
            obs[self._text(named)] = self._tensor(named + layout.NAMED_TENSOR)
        offsets = layout.IMAGES.unpack_from(self.requests, at + layout.ITEM_IMAGES)
        for (name, size), offset in zip(
            self.spec["cameras"].items(), offsets, strict=False
        ):
            obs[name] = self._frame(size, offset)

    def _frame(self, size, offset):
        if offset >> layout.SEGMENT_SHIFT:
            return self._frame_in_segment(size, offset)
        place = self.begin + offset, size
        if place not in self.frames:
            shape = (*size, 3)
            self.frames[place] = self._array(
                "|u1", shape, offset, 3 * size[0] * size[1]
            )
        return self.frames[place].view()

    def _frame_in_segment(self, size, place):
        index = (place >> layout.SEGMENT_SHIFT) - 1
        offset = place & ((1 << layout.SEGMENT_SHIFT) - 1)
        count = 3 * size[0] * size[1]
        segment = self.segments.get(index) or b""
        _check(offset + count <= len(segment), "frame")
        return np.frombuffer(segment, "|u1", count, offset).reshape((*size, 3))

    def _metadata(self, at, count):
        places = (at + i * layout.PAIR_BYTES for i in range(count))
        return {
            self._text(place): self._text(place + layout.PAIR_TEXT) for place in places
        }

    def put_answer(self, member, actions, values):
        """Rows of actions, and the named results of answers.to_values()."""
        self.actions[self.slot][member][: len(actions)] = actions
        begin = self.slot * self.result_bytes
        place = begin + self.values + member * self.values_bytes
        end = place + self.values_bytes
        entry = self._answer(member) + layout.ANSWER_VALUES
        for name, dtype, array in values:
            _check(place + array.nbytes <= end, "room for results")
            shape = [*array.shape, *[0] * (8 - array.ndim)]
            layout.VALUE.pack_into(
                self.results, entry, name.encode(), dtype, array.ndim, *shape
            )
            if array.size:
                into = np.frombuffer(self.results, array.dtype, array.size, place)
                into[:] = array.reshape(-1)
            place += layout.round_up(array.nbytes)
            entry += layout.VALUE.size
        self._put(member, rows=len(actions), values=len(values))

    def put_prefix(self, member, size):
        self._put(member, prefix_bytes=size)

    def put_error(self, member, status, why):
        self._put(member, status, why=why)

    def _answer(self, member):
        at = self.slot * self.result_bytes + layout.RESULT_ANSWERS
        return at + member * layout.ANSWER_BYTES

    def _put(self, member, status=layout.OK, rows=0, prefix_bytes=0, values=0, why=""):
        layout.ANSWER.pack_into(
            self.results,
            self._answer(member),
            status,
            rows,
            prefix_bytes,
            values,
            0,
            layout.cut(why, layout.ERROR_BYTES),
        )

    def done(self, count, service_ns):
        at = self.slot * self.result_bytes
        layout.RESULT.pack_into(self.results, at + 8, service_ns, count, 0)
        self.result_words[at // 8] = self.last
        self.longs[layout.LONG_RUNNING] = 0
        os.write(self.answer, b"\1\0\0\0\0\0\0\0")
