# SPDX-License-Identifier: Apache-2.0
"""Does what a log of merge_log says once more, and compares.

What the robot saw (answers as bytes, times, when it asked) is taken from the
log; what became of it must come out the same.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

import limits
import merge
import msgpack
import numpy as np

FIELDS = 8
TOLERANCE = 1e-6
EVENTS = "start attach place tick sent unsent answer reset outcome stray total".split()


@dataclass
class Log:
    head: dict
    events: list
    messages: bytes
    wanted: np.ndarray
    commands: np.ndarray


def read_logs(stream):
    while line := stream.readline():
        head = json.loads(line)
        parts = [stream.read(size) for size in head["sizes"]]
        rows = [np.frombuffer(part, np.float32) for part in parts[2:]]
        rows = [part.reshape(-1, len(head["channels"])) for part in rows]
        events = np.frombuffer(parts[0], np.int64).reshape(-1, FIELDS).tolist()
        yield Log(head, events, parts[1], *rows)


@dataclass
class Totals:
    """What was compared, over all seeds."""

    seeds: int = 0
    answers: int = 0
    commands: int = 0
    error: dict = field(default_factory=lambda: {"angle": 0.0, "quaternion": 0.0})
    counts: Counter = field(default_factory=Counter)

    def add(self, other):
        self.seeds += other.seeds
        self.answers += other.answers
        self.commands += other.commands
        self.counts += other.counts
        for kind, error in other.error.items():
            self.error[kind] = max(self.error[kind], error)


def settings_of(head):
    return merge.Settings(
        kinds=[channel["kind"] for channel in head["channels"]],
        **{
            name: head[name]
            for name in (
                "aggregate",
                "trim",
                "actions_per_chunk",
                "period_ns",
                "ticks_per_step",
                "max_action_age_ns",
            )
        },
    )


def actions_of(tensor, channels):
    """The rows, None if they are not of this robot's shape, and if finite."""
    values = np.frombuffer(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
    fits = tensor["dtype"] == "<f4" and values.shape[1] == channels
    return values if fits else None, bool(np.isfinite(values).all())


def decode(data, channels):
    """None if it cannot be decoded."""
    try:
        message = msgpack.unpackb(data)
    except ValueError:
        return None
    actions, finite = None, True
    if "actions" in message:
        actions, finite = actions_of(message["actions"], channels)
    return merge.Answer(
        seq=message["response_to_seq_id"],
        server=message.get("server_id", ""),
        boot=message.get("boot", 0),
        route=message.get("route", 0),
        episode=message.get("episode", 0),
        error="error" in message,
        finite=finite,
        actions=actions,
        superseded=message.get("superseded", ()),
    )


class Replay:
    """One log. Every `on_…` takes the numbers of its event."""

    def __init__(self, log):
        self.log = log
        self.head = log.head
        self.settings = settings_of(log.head)
        self.channels = merge.Channels(self.settings.kinds)
        self.robot = None
        self.tick = 0
        self.steps = Counter()  # executed of each chunk
        self.chunks = {}  # by what its first channel says
        self.totals = Totals(seeds=1)

    def fail(self, what):
        raise AssertionError(f"seed {self.head['seed']}, tick {self.tick}: {what}")

    def same(self, ours, theirs, what):
        if ours != theirs:
            self.fail(f"{what}: {theirs}, the reference says {ours}")

    def run(self):
        by_number = [getattr(self, f"on_{name}") for name in EVENTS]
        for number, *values in self.log.events:
            by_number[number](*values)
        self.end_core()
        return self.totals

    def on_start(self, boot, route, episode, *_):
        self.end_core()
        self.robot = merge.Robot(self.settings, boot, route, episode)
        self.own = (boot, route, episode)
        self.first_tick = self.tick
        self.what = []  # what each tick of this core did
        self.places = []
        self.counted = {}
        self.sent = 0

    def on_attach(self, server, *_):
        self.robot.server = self.head["servers"][server]

    def on_place(self, offset, *_):
        row = np.frombuffer(self.log.messages, np.float32, self.channels.count, offset)
        self.places.append((self.tick, row))

    def on_tick(self, _now_ns, cursor, commands, fresh, reason, *_):
        before = self.robot.cursor
        reason = self.head["reasons"][reason]
        commanded = self.log.commands[self.tick - 1]
        what = self.robot.tick(commanded, failsafe=reason in ("limits", "driver"))
        theirs = "plays" if fresh else "holds" if commands else "nothing"
        self.same(what, theirs, "the tick")
        self.same(self.robot.cursor, cursor, "cursor")
        self.what.append(what)
        if cursor > before:
            self.on_step(self.log.wanted[self.tick, 0])
        self.tick += 1

    def on_step(self, stamp):
        """A step begins: whose is the row? The first channel is a hold one."""
        if self.chunks.get(stamp) != self.own:
            self.fail(f"chunk {stamp} is foreign")
        self.steps[stamp] += 1

    def on_sent(self, seq, episode, cursor, captured_ns, put_ns, goes, *_):
        ours = self.robot.send(seq, episode, cursor, captured_ns, put_ns)
        self.same(ours, bool(goes), "whether it is sent")
        self.sent += 1

    def on_unsent(self, seq, *_):
        self.robot.end(seq, "unsent")

    def on_reset(self, *_):
        self.robot.reset()
        boot, route, episode = self.own
        self.own = (boot, route, episode + 1)

    def on_answer(self, now_ns, offset, size, outcome, stray, *_):
        data = self.log.messages[offset : offset + size]
        answer = decode(data, self.channels.count)
        if answer is None:
            ours = self.robot.count("malformed")
        else:
            ours = self.robot.answer(answer, now_ns)
            self.note_chunk(answer)
        names = self.head["strays"] if stray >= 0 else self.head["outcomes"]
        self.same(ours, names[max(outcome, stray)], "the answer")
        self.totals.answers += 1

    def note_chunk(self, answer):
        if answer.actions is not None:
            ident = (answer.boot, answer.route, answer.episode)
            self.chunks[answer.actions[0, 0]] = ident

    def on_outcome(self, which, count, *_):
        self.counted[self.head["outcomes"][which]] = count

    def on_stray(self, which, count, *_):
        name = self.head["strays"][which]
        self.same(self.robot.counts.get(name, 0), count, name)
        self.totals.counts[name] += count

    def on_total(self, sent, *_):
        self.same(self.sent, sent, "sent")

    def end_core(self):
        if self.robot is None:
            return
        self.check_counts()
        self.check_commands()
        if self.head["limits"]:
            self.check_limits()

    def check_counts(self):
        """Each one sent has exactly one outcome."""
        self.same(self.sent, sum(self.counted.values()), "sent = all outcomes")
        self.robot.counts["pending"] = len(self.robot.sent)
        for name, count in self.counted.items():
            self.same(self.robot.counts.get(name, 0), count, name)
        self.totals.counts.update(self.counted)

    def check_commands(self):
        what = np.array(self.what)
        rows = np.arange(self.first_tick, self.tick)[what != "nothing"]
        if len(rows) == 0:
            return
        expected = self.robot.played.rows(self.channels)
        plays = (what == "plays")[what != "nothing"]
        self.compare(expected[plays], self.log.wanted[rows[plays]], "wanted")
        if not self.head["limits"]:
            self.compare(self.gated(expected), self.log.commands[rows], "command")
        self.totals.commands += len(rows)

    def gated(self, rows):
        """Without limits the gate only keeps an orientation where a row has none."""
        rows = rows.copy()
        for at in self.channels.quaternion:
            known = np.abs(rows[:, at]).sum(1) > 0
            last = np.maximum.accumulate(np.where(known, np.arange(len(rows)), -1))
            start = self.places[0][1][at]
            rows[:, at] = np.where(last[:, None] >= 0, rows[last][:, at], start)
        return rows

    def compare(self, expected, actual, what):
        exact = np.concatenate([self.channels.linear, self.channels.hold])
        bits = [rows[:, exact].view(np.uint32) for rows in (expected, actual)]
        if (bits[0] != bits[1]).any():
            self.fail(f"{what}: another value")
        angle = self.channels.angle
        self.within("angle", expected[:, angle], actual[:, angle], what)
        for at in self.channels.quaternion:
            q, r = expected[:, at], actual[:, at]
            if what == "command":  # the gate chooses the sign
                q = np.where((q * r).sum(1, keepdims=True) < 0, -q, q)
            self.within("quaternion", q, r, what)

    def within(self, kind, expected, actual, what):
        error = np.abs(expected.astype(float) - actual)
        most = error.max(initial=0)
        if not most <= TOLERANCE:
            self.fail(f"{what}: {kind} is off by {most}")
        self.totals.error[kind] = max(self.totals.error[kind], float(most))

    def check_limits(self):
        commands = np.array([what != "nothing" for what in self.what])
        ends = [tick for tick, _ in self.places] + [self.tick]
        last = None
        for (tick, place), end in zip(self.places, ends[1:], strict=True):
            here = commands[tick - self.first_tick : end - self.first_tick]
            rows = self.log.commands[tick:end][here]
            if last is not None:
                place = limits.found_again(self.head["channels"], place, last)
            broken = limits.broken(self.head["channels"], place, rows)
            if broken:
                self.fail(broken)
            last = rows[-1] if len(rows) else place
