# SPDX-License-Identifier: Apache-2.0
"""What stands where in the shared memory: include/tendon/worker.h says so."""

import struct

VERSION = 1
MAGIC = 0x72656B726F776474
ENVIRONMENT = "TENDON_WORKER"
PAGE = 65536
SLOTS = 2
MAX_BATCH = 64
ALL = 0xFFFFFFFF

LOAD, RING, STOP = range(3)  # offer.phase
LOADING, SAID, READY, CANNOT = range(4)  # hello.phase

OK, NOMEM, FORMAT, MISMATCH, INTERNAL = 0, 2, 12, 15, 18  # td_err

DTYPES = ("<f4", "<f8", "<f2", "<u2", "|u1", "|i1", "<i2", "<i4", "<i8", "|b1")
KINDS = ("linear", "angle", "quaternion", "hold")

OFFER = struct.Struct("<QII6Qq72s72s72s4104s")
HELLO_ERROR = 48
HELLO_SPEC = 552
OFFER_SPEC = 4392

# As 4-byte words of the offer and the hello, and 8-byte ones of the hello.
WORD_PHASE, WORD_MEMBER = 3, 10
LONG_WARM, LONG_BEAT, LONG_RUNNING = 2, 3, 4

SPEC = struct.Struct("<6IfI")
CAMERA = struct.Struct("<64sII")
CHANNEL = struct.Struct("<64sI")
SPEC_CAMERAS, SPEC_STATES, SPEC_ACTIONS = 32, 1184, 18592
SPEC_BYTES = 36000

BATCH_ITEMS = 16
BATCH_BYTES = 251920
ITEM_BYTES = 3936
ITEM = struct.Struct("<6Q4I")
TEXT = struct.Struct("<QII")
TENSOR = struct.Struct("<2I8I2Qq")
IMAGES = struct.Struct("<16Q")
ITEM_CLIENT, ITEM_TASK, ITEM_STATE, ITEM_RTC, ITEM_IMAGES = 64, 80, 96, 160, 224
ITEM_TENSORS, NAMED_BYTES, NAMED_TENSOR = 352, 80, 16
ITEM_METADATA, PAIR_BYTES, PAIR_TEXT = 2912, 32, 16

RESULT_BYTES = 32792
RESULT = struct.Struct("<qII")  # after the generation
RESULT_ANSWERS, ANSWER_BYTES = 24, 512
ANSWER = struct.Struct("<II504s")
ERROR_BYTES = 504


def text(field):
    """A NUL-padded field."""
    return field.split(b"\0", 1)[0].decode()


def cut(words, size):
    """Text as bytes for a field, whole characters only."""
    return words.encode(errors="replace")[:size].decode(errors="ignore").encode()


def read_spec(memory, at):
    cameras, states, actions, chunk, batch, rtc, tolerance, _ = SPEC.unpack_from(
        memory, at
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
        0,
    )
