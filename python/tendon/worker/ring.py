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


class Ring:
    def __init__(self, numbers):
        self.file, self.bell, self.answer = map(int, numbers.split(","))
        self.offer = self._map(0, layout.PAGE, mmap.PROT_READ)
        self.hello = self._map(layout.PAGE, layout.PAGE)
        self.phase = memoryview(self.offer).cast("I")
        self.words = memoryview(self.hello).cast("I")
        self.longs = memoryview(self.hello).cast("Q")
        magic, version, *_ = layout.OFFER.unpack_from(self.offer)
        if (magic, version) != (layout.MAGIC, layout.VERSION):
            raise RuntimeError(
                f"the server speaks version {version}, this worker {layout.VERSION}"
            )
        self.longs[0] = layout.MAGIC
        self.words[2] = layout.VERSION
        self.last = 0

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

    def _say(self, phase):
        self.words[layout.WORD_PHASE] = phase
        os.write(self.answer, b"\1\0\0\0\0\0\0\0")

    def cannot(self, why):
        at = layout.HELLO_ERROR
        why = layout.cut(why, layout.ERROR_BYTES)
        self.hello[at : at + len(why)] = why
        self._say(layout.CANNOT)

    def say(self, spec):
        """Says what the model is, and waits for the ring."""
        layout.write_spec(self.hello, layout.HELLO_SPEC, spec)
        self._say(layout.SAID)
        while self.phase[layout.WORD_PHASE] == layout.LOAD:
            os.read(self.bell, 8)
        if self.phase[layout.WORD_PHASE] != layout.RING:
            raise Closed
        self.spec = layout.read_spec(self.offer, layout.OFFER_SPEC)
        self.shape = (self.spec["chunk"], len(self.spec["actions"]))
        self._open()

    def _open(self):
        size = os.fstat(self.file).st_size
        fields = layout.OFFER.unpack_from(self.offer)[3:9]
        requests, self.request_bytes, results, self.result_bytes = fields[:4]
        actions, actions_bytes = fields[4:]
        asked = layout.SLOTS * self.request_bytes
        told = layout.SLOTS * self.result_bytes
        cells = self.shape[0] * self.shape[1]
        count = self.spec["max_batch"]
        _check(self.request_bytes >= layout.BATCH_BYTES, "ring")
        _check(requests + asked <= size and results + told <= size, "ring")
        _check(actions >= layout.RESULT_BYTES, "room for actions")
        _check(actions + count * actions_bytes <= self.result_bytes, "room for actions")
        _check(4 * cells <= actions_bytes, "room for actions")
        self.requests = self._map(requests, asked, mmap.PROT_READ)
        self.results = self._map(results, told)
        self.asked = memoryview(self.requests).cast("Q")
        self.told = memoryview(self.results).cast("Q")
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

    def ready(self, warm_ns):
        self.longs[layout.LONG_WARM] = warm_ns
        self._say(layout.READY)

    def next(self):
        """Waits for a batch, and how many it has; the oldest goes first."""
        while True:
            slots = range(layout.SLOTS)
            waiting = [(self.asked[i * self.request_bytes // 8], i) for i in slots]
            waiting = [each for each in waiting if each[0] > self.last]
            if waiting:
                break
            if self.phase[layout.WORD_PHASE] == layout.STOP:
                raise Closed
            os.read(self.bell, 8)
        self.last, self.slot = min(waiting)
        self.begin = self.slot * self.request_bytes
        count = int.from_bytes(
            self.requests[self.begin + 8 : self.begin + 12], "little"
        )
        _check(0 < count <= self.spec["max_batch"], "batch")
        self.longs[layout.LONG_RUNNING] = self.last
        self.beat(layout.ALL)
        return count

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
        _check(offset + size <= self.request_bytes, "text")
        offset += self.begin
        return self.requests[offset : offset + size].decode()

    def observation(self, member):
        """The arrays look into the ring, and are good until done()."""
        at = self.begin + layout.BATCH_ITEMS + member * layout.ITEM_BYTES
        seed, cursor, boot, episode, seq, base, delay, has_rtc, tensors, pairs = (
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
        if self.spec["states"]:
            obs["state"] = self._tensor(at + layout.ITEM_STATE)
        for i in range(tensors):
            named = at + layout.ITEM_TENSORS + i * layout.NAMED_BYTES
            obs[self._text(named)] = self._tensor(named + layout.NAMED_TENSOR)
        offsets = layout.IMAGES.unpack_from(self.requests, at + layout.ITEM_IMAGES)
        for (name, size), offset in zip(
            self.spec["cameras"].items(), offsets, strict=False
        ):
            shape = (*size, 3)
            obs[name] = self._array("|u1", shape, offset, size[0] * size[1] * 3)
        return obs

    def _metadata(self, at, count):
        places = (at + i * layout.PAIR_BYTES for i in range(count))
        return {
            self._text(place): self._text(place + layout.PAIR_TEXT) for place in places
        }

    def put_actions(self, member, array):
        self.actions[self.slot][member][: len(array)] = array
        self._put(member, layout.OK, len(array), "")

    def put_error(self, member, status, why):
        self._put(member, status, 0, why)

    def _put(self, member, status, rows, why):
        at = self.slot * self.result_bytes + layout.RESULT_ANSWERS
        layout.ANSWER.pack_into(
            self.results,
            at + member * layout.ANSWER_BYTES,
            status,
            rows,
            layout.cut(why, layout.ERROR_BYTES),
        )

    def done(self, count, service_ns):
        at = self.slot * self.result_bytes
        layout.RESULT.pack_into(self.results, at + 8, service_ns, count, 0)
        self.told[at // 8] = self.last
        self.longs[layout.LONG_RUNNING] = 0
        os.write(self.answer, b"\1\0\0\0\0\0\0\0")
