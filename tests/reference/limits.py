# SPDX-License-Identifier: Apache-2.0
"""Whether commands keep a robot's limits, seen from outside (docs/gate.md).

Position limits hold exactly, the float32 commands keep V + 2u and A + 4u.
"""

import math

import numpy as np

EPSILON = float(np.finfo(np.float32).eps)


def rotation_between(start, to):
    """Rotation vectors of to · start⁻¹, the shorter way round."""
    start = start / np.linalg.norm(start, axis=1, keepdims=True)
    to = to / np.linalg.norm(to, axis=1, keepdims=True)
    v, w = -start[:, :3], start[:, 3:]
    x, c = to[:, :3], to[:, 3:]
    turn = c * v + w * x + np.cross(x, v)
    cosine = c * w - (x * v).sum(1, keepdims=True)
    turn = np.where(cosine < 0, -turn, turn)
    sine = np.linalg.norm(turn, axis=1, keepdims=True)
    angle = 2 * np.arctan2(sine, np.abs(cosine))
    return turn * np.divide(angle, sine, out=np.full_like(sine, 2), where=sine > 0)


def same_angle(limits, place, last):
    """The turn on which an angle is found again, by the last command."""
    off = place - last
    if abs(off) <= math.pi:
        return place
    same = last + math.remainder(off, 2 * math.pi)
    if math.isinf(limits["min"]) and math.isinf(limits["max"]):
        return same
    inside = limits["min"] <= same <= limits["max"]
    return same if inside and abs(same - last) <= math.pi / 2 else place


def found_again(channels, place, last):
    """Where commands start over after a driver was away."""
    return [
        same_angle(limits, float(at), float(was)) if limits["kind"] == "angle" else at
        for limits, at, was in zip(channels, place, last, strict=True)
    ]


def outside(limits, at):
    """One that was found outside may stay there or come in."""
    low = np.minimum(limits["min"], at[:-1])
    high = np.maximum(limits["max"], at[:-1])
    return not ((at[1:] >= low) & (at[1:] <= high)).all()


def too_fast(limits, steps, u):
    """Steps of one channel or of a rotation, the first two before any command."""
    changes = np.linalg.norm(np.diff(steps, axis=0), axis=1)
    lengths = np.linalg.norm(steps[1:], axis=1)
    if (lengths > limits["max_step"] + 2 * u).any():
        return "step"
    if (changes > limits["max_accel_step"] + 4 * u).any():
        return "acceleration"
    return None


def broken_channel(limits, at):
    if outside(limits, at):
        return "position"
    size = np.abs(at)
    u = EPSILON * np.maximum(np.maximum(size[2:], size[1:-1]), size[:-2])
    return too_fast(limits, np.diff(at)[:, None], u)


def broken_rotation(limits, at):
    return too_fast(limits, rotation_between(at[:-1], at[1:]), 2 * EPSILON)


def broken(channels, place, rows):
    """Names a limit that commands from rest at `place` break, or None."""
    at = np.concatenate([[place, place], rows]).astype(float)
    if not np.isfinite(at).all():
        return "a command is not finite"
    index = 0
    while index < len(channels):
        limits = channels[index]
        if limits["kind"] == "quaternion":
            which = broken_rotation(limits, at[:, index : index + 4])
        else:
            which = broken_channel(limits, at[:, index])
        if which:
            return f"channel {index} breaks its limit of {which}"
        index += 4 if limits["kind"] == "quaternion" else 1
    return None
