# SPDX-License-Identifier: Apache-2.0
"""docs/merge.md once more, in numpy: which rows a robot plays, and their values.

Written from that page alone. Computes in float64 and rounds once to float32.
"""

import math
from dataclasses import dataclass, field

import numpy as np

REMEMBERED = 256
SHARES = {"weighted_average": 0.7, "average": 0.5, "conservative": 0.3}

remainder = np.frompyfunc(math.remainder, 2, 1)


class Channels:
    """Where the channels of each kind stand; a quaternion is four in a row."""

    def __init__(self, kinds):
        at = {kind: [] for kind in ("linear", "angle", "hold", "quaternion")}
        for index, kind in enumerate(kinds):
            at[kind].append(index)
        self.linear = np.array(at["linear"], int)
        self.angle = np.array(at["angle"], int)
        self.hold = np.array(at["hold"], int)
        self.quaternion = np.array(at["quaternion"], int).reshape(-1, 4)
        self.count = len(kinds)


def length(quaternions):
    return np.sqrt((quaternions**2).sum(-1, keepdims=True))


def unit(quaternions):
    size = length(quaternions)
    return np.divide(quaternions, size, out=np.zeros_like(quaternions), where=size > 0)


def blend_linear(old, new, share):
    return (1 - share) * old + share * new


def blend_angle(old, new, share):
    turn = remainder(new - old, 2 * math.pi).astype(float)
    return new - (1 - share) * turn


def blend_quaternion(old, new, share):
    old = np.where(length(old) > 0, old, new)
    new = np.where(length(new) > 0, new, old)
    a, b = unit(old), unit(new)
    c = (a * b).sum(-1, keepdims=True)
    sign = np.where(c < 0, -1.0, 1.0)
    theta = np.arccos(np.minimum(np.abs(c), 1))
    sine = np.sin(theta)
    near = sine < 1e-6
    sine = np.where(near, 1, sine)
    p = np.where(near, 1 - share, np.sin((1 - share) * theta) / sine)
    q = np.where(near, share, np.sin(share * theta) / sine)
    return unit(sign * p * a + q * b)


def with_unit_quaternions(channels, rows):
    rows = rows.copy()
    at = channels.quaternion
    if at.size:
        rows[:, at] = unit(rows[:, at].astype(float))
    return rows


def blend(channels, old, new, share):
    """Rows × channels of float32; a share of `new` for each row. Hold is new."""
    rows = new.copy()
    share = np.asarray(share, float)[:, None]
    for at, by, each in (
        (channels.linear, blend_linear, share),
        (channels.angle, blend_angle, share),
        (channels.quaternion, blend_quaternion, share[:, None]),
    ):
        if at.size:
            rows[:, at] = by(old[:, at].astype(float), new[:, at].astype(float), each)
    return rows


@dataclass
class Settings:
    kinds: list
    aggregate: str = "weighted_average"
    trim: str = "steps"
    actions_per_chunk: int = 50
    period_ns: int = 33_333_333
    ticks_per_step: int = 1
    max_action_age_ns: float = math.inf


@dataclass
class Sent:
    cursor: int
    captured_ns: int
    put_ns: int


@dataclass
class Answer:
    """One from the wire. `actions` is None if they are not float32 rows × channels."""

    seq: int
    server: str
    boot: int
    route: int
    episode: int
    error: bool = False
    finite: bool = True
    actions: np.ndarray | None = None
    superseded: tuple = ()


@dataclass
class Timeline:
    first: int
    rows: np.ndarray

    @property
    def end(self):
        return self.first + len(self.rows)


EMPTY = Timeline(0, np.zeros((0, 0), np.float32))


@dataclass
class Played:
    """What the ticks command: each blends `start` and `to`; share 1 is `to` itself."""

    start: list = field(default_factory=list)
    to: list = field(default_factory=list)
    share: list = field(default_factory=list)

    def add(self, start, to, share):
        self.start.append(start)
        self.to.append(to)
        self.share.append(share)

    def again(self):
        self.add(self.start[-1], self.to[-1], self.share[-1])

    def rows(self, channels):
        start, to = np.array(self.start), np.array(self.to)
        share = np.array(self.share, float)
        between = share < 1
        rows = to.copy()
        if between.any():
            rows[between] = blend(channels, start[between], to[between], share[between])
        return rows


class Robot:
    """One from its start on; a restart is another one with a higher boot."""

    def __init__(self, settings, boot, route, episode):
        self.settings = settings
        self.channels = Channels(settings.kinds)
        self.server = None  # the one attached to
        self.boot = boot
        self.route = route
        self.episode = episode
        self.cursor = 0
        self.timeline = EMPTY
        self.sent = {}
        self.newest_merged = 0
        self.counts = {}
        self.row = None  # the one played last, or being played
        self.before = None  # the one before it
        self.tick_of_step = 0  # 0: between steps
        self.held = False  # in the tick before
        self.played = Played()

    def count(self, name, times=1):
        self.counts[name] = self.counts.get(name, 0) + times
        return name

    def end(self, seq, name):
        if self.sent.pop(seq, None):
            self.count(name)

    def send(self, seq, episode, cursor, captured_ns, put_ns):
        """Returns whether it goes: not if its episode is over."""
        for other in [s for s in self.sent if (s - seq) % REMEMBERED == 0]:
            self.end(other, "unanswered")
        if episode != self.episode:
            self.count("reset")
            return False
        self.sent[seq] = Sent(cursor, captured_ns, put_ns)
        return True

    def reset(self):
        self.episode += 1
        self.count("reset", len(self.sent))
        self.sent.clear()
        self.timeline = EMPTY

    def tick(self, commanded=None, failsafe=False):
        """Returns "plays", "holds", or before the first row "nothing".

        `commanded` is what the limits made of the tick before, and `failsafe`
        whether it acts for another reason than that there is no row.
        """
        begins = self.tick_of_step == 0
        if failsafe or (begins and not self.begin_step(commanded)):
            self.held = True
            if self.row is None:
                return "nothing"
            self.played.again()
            return "holds"
        self.held = False
        self.tick_of_step += 1
        share = self.tick_of_step / self.settings.ticks_per_step
        self.played.add(self.before, self.row, share)
        self.tick_of_step %= self.settings.ticks_per_step
        return "plays"

    def begin_step(self, commanded):
        if not self.timeline.first <= self.cursor < self.timeline.end:
            return False
        to = self.timeline.rows[self.cursor - self.timeline.first]
        self.before = commanded if self.held else self.row
        if self.row is None:
            self.before = to
        self.row = to
        self.cursor += 1
        return True

    def answer(self, answer, now_ns):
        """Takes an answer up, and returns the name under which it is counted."""
        stray = self.stray(answer)
        if stray:
            return self.count(stray)
        sent = self.sent.pop(answer.seq)
        name = self.count(self.outcome(answer, sent, now_ns))
        for seq in answer.superseded:
            self.end(seq, "superseded")
        return name

    def stray(self, answer):
        if not answer.finite:
            return "malformed"
        for name in ("server", "boot", "route", "episode"):
            if getattr(answer, name) != getattr(self, name):
                return "foreign_" + name
        return None if answer.seq in self.sent else "unknown_seq"

    def outcome(self, answer, sent, now_ns):
        if answer.error:
            return "refused"
        if answer.actions is None:
            return "misshapen"
        if answer.seq < self.newest_merged:
            return "overtaken"
        if now_ns - sent.captured_ns > self.settings.max_action_age_ns:
            return "too_old"
        rows = self.trimmed(answer.actions, sent, now_ns)
        if len(rows) == 0:
            return "expired"
        self.timeline = Timeline(self.cursor, self.joined(rows))
        self.newest_merged = answer.seq
        return "merged"

    def trimmed(self, actions, sent, now_ns):
        rows = actions[: self.settings.actions_per_chunk]
        if self.settings.trim == "steps":
            return rows[self.cursor - sent.cursor :]
        if self.newest_merged == 0:
            return rows
        past = (now_ns - sent.put_ns) // self.settings.period_ns
        return rows[max(past, 0) :]

    def joined(self, rows):
        new = with_unit_quaternions(self.channels, rows)
        old = self.timeline.rows[self.cursor - self.timeline.first :]
        overlap = min(len(old), len(new))
        aggregate = self.settings.aggregate
        if overlap == 0 or aggregate == "latest_only":
            return new
        if aggregate == "temporal":
            share = [(i + 1) / (overlap + 1) for i in range(overlap)]
        else:
            share = [SHARES[aggregate]] * overlap
        blended = blend(self.channels, old[:overlap], rows[:overlap], share)
        return np.concatenate([blended, new[overlap:]])
