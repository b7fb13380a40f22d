# SPDX-License-Identifier: Apache-2.0
"""What stands where in the shared memory: include/tendon/worker.h says so."""

import struct

VERSION = 2
MAGIC = 0x72656B726F776474
ENVIRONMENT = "TENDON_WORKER"
PAGE = 65536
SLOTS = 2
MAX_BATCH = 64
ALL = 0xFFFFFFFF

ALIGN = 64
DROPS = 2048
SEGMENTS = 32
SEGMENT_SHIFT = 56
MAX_VALUES = 32
MAX_NAME = 64
MAX_TEXT = 8192

LOAD, RING, STOP = range(3)  # offer.phase
LOADING, DESCRIBED, READY, FAILED = range(4)  # hello.phase
WHOLE, PREFIX, DECODE = range(3)  # batch.operation

OK, NOMEM, NOTFOUND, FORMAT, MISMATCH, INTERNAL = 0, 2, 8, 12, 15, 18  # td_err

DTYPES = ("<f4", "<f8", "<f2", "<u2", "|u1", "|i1", "<i2", "<i4", "<i8", "|b1")
TEXT_DTYPE = 256
KINDS = ("linear", "angle", "quaternion", "hold")

OFFER = struct.Struct("<QII8Qq72s72s72s4104s")
HELLO_ERROR = 56
HELLO_SPEC = 560
OFFER_SPEC = 4408
OFFER_SEGMENTS = 56824
SEGMENT = struct.Struct("<QQ112s")

# As 4-byte words of the offer and the hello, and 8-byte ones of both.
WORD_PHASE, WORD_MEMBER = 3, 10
LONG_WARM, LONG_BEAT, LONG_RUNNING, LONG_LET_GO = 2, 3, 4, 6
LONG_EXPECTED, LONG_DROPPED, LONG_DROPS, LONG_CHANGED = 5052, 5053, 5054, 7102
LONG_SEGMENTS = 4571

SPEC = struct.Struct("<6If3I")
CAMERA = struct.Struct("<64sII")
CHANNEL = struct.Struct("<64sI")
SPEC_CAMERAS, SPEC_STATES, SPEC_ACTIONS = 40, 1192, 18600
SPEC_BYTES = 36008

BATCH = struct.Struct("<QII")
BATCH_ITEMS = 16
BATCH_BYTES = 252432
ITEM_BYTES = 3944
ITEM = struct.Struct("<7Q4I")
TEXT = struct.Struct("<QII")
TENSOR = struct.Struct("<2I8I2Qq")
IMAGES = struct.Struct("<16Q")
ITEM_CLIENT, ITEM_TASK, ITEM_STATE, ITEM_RTC, ITEM_IMAGES = 72, 88, 104, 168, 232
ITEM_TENSORS, NAMED_BYTES, NAMED_TENSOR = 360, 80, 16
ITEM_METADATA, PAIR_BYTES, PAIR_TEXT = 2920, 32, 16

RESULT_BYTES = 246808
RESULT = struct.Struct("<qII")  # after the generation
RESULT_ANSWERS, ANSWER_BYTES = 24, 3856
ANSWER = struct.Struct("<IIQII504s")
ANSWER_VALUES = 528
VALUE = struct.Struct("<64sII8I")
ERROR_BYTES = 504


def text(field):
    """A NUL-padded field."""
    return field.split(b"\0", 1)[0].decode()


def cut(words, size):
    """Text as bytes for a field, whole characters only."""
    if not words:
        return b""
    return words.encode(errors="replace")[:size].decode(errors="ignore").encode()


def round_up(size):
    return -(-size // ALIGN) * ALIGN


def read_spec(memory, at):
    cameras, states, actions, chunk, batch, rtc, tolerance, values, prefix, expects = (
        SPEC.unpack_from(memory, at)
    )

    def channels(count, offset):
        found = (
            CHANNEL.unpack_from(memory, at + offset + i * CHANNEL.size)
            for i in range(count)
        )
        return {text(name): KINDS[kind] for name, kind in found}

    pictures = (
        CAMERA.unpack_from(memory, at + SPEC_CAMERAS + i * CAMERA.size)
        for i in range(cameras)
    )
    return {
        "cameras": {text(name): (height, width) for name, height, width in pictures},
        "states": channels(states, SPEC_STATES),
        "actions": channels(actions, SPEC_ACTIONS),
        "chunk": chunk,
        "max_batch": batch,
        "rtc": bool(rtc),
        "tolerance": tolerance,
        "results_kb": values >> 10,
        "prefix": bool(prefix),
        "expects": bool(expects),
    }


def write_spec(memory, at, spec):
    """What is not in `spec` stays unsaid. Channels may be a list of names."""
    cameras = spec.get("cameras", {})
    for i, (name, (height, width)) in enumerate(cameras.items()):
        CAMERA.pack_into(
            memory, at + SPEC_CAMERAS + i * CAMERA.size, name.encode(), height, width
        )
    counts = []
    for key, offset in (("states", SPEC_STATES), ("actions", SPEC_ACTIONS)):
        channels = spec.get(key, {})
        if not isinstance(channels, dict):
            channels = dict.fromkeys(channels, "linear")
        for i, (name, kind) in enumerate(channels.items()):
            CHANNEL.pack_into(
                memory,
                at + offset + i * CHANNEL.size,
                name.encode(),
                KINDS.index(kind),
            )
        counts.append(len(channels))
    SPEC.pack_into(
        memory,
        at,
        len(cameras),
        *counts,
        spec.get("chunk", 0),
        spec.get("max_batch", 0),
        bool(spec.get("rtc", False)),
        spec.get("tolerance", 0.0),
        spec.get("results_kb", 0) << 10,
        bool(spec.get("prefix", False)),
        bool(spec.get("expects", False)),
    )
