# SPDX-License-Identifier: Apache-2.0
"""Inferential's own schedulers, given the arrivals and the clock of a trace.

inferential_sched.py rate STRATEGY TRACE: a block is the trace; its numbers are
decisions a second, and the p50 and p99 of one in microseconds.
inferential_sched.py misses STRATEGY TRACE: its numbers are the share of asks
that were missed and of the time that buffers were dry, in percent.
inferential_sched.py saturated STRATEGY CLIENTS RUNS: its numbers are the urgent
one's share in percent, its median wait and the longest of the others in ms."""

import collections
import functools
import gc
import importlib
import pathlib
import sys
import time
import types

from blocks import hold_signals, quantile, run_blocks
from inferential.config.schema import SchedulingConfig
from inferential.scheduler import InferenceRequest, create_scheduler

STEP_NS = 1e9 / 30
TICK_NS = 100_000_000  # as its server calls tick()
NS = 1e-9

now = [0.0]  # the trace's time in seconds, which is all that the schedulers see


def set_clock():
    clock = types.SimpleNamespace(monotonic=functools.partial(now.__getitem__, 0))
    names = "base", "batch_optimized", "deadline_aware"
    for name in (*names, "model_deadline", "tiered_deadline"):
        importlib.import_module(f"inferential.scheduler.{name}").time = clock


def make_scheduler(strategy):
    config = SchedulingConfig(strategy=strategy)
    config.priority_tiered.num_tiers = 4
    config.batch_optimized.max_batch_size = 1
    return create_scheduler(config)


def make_request(at_ns, client, model, **known):
    return InferenceRequest(
        client_id=f"robot-{client}",
        model_id=f"model-{model}",
        identity=b"",
        envelope=b"",
        payload=b"",
        received_at=at_ns * NS,
        time_until_next=0.05,  # its server asks just after an arrival
        latency_budget_ms=50.0,
        **known,
    )


def read_numbers(trace):
    with pathlib.Path(trace).open() as lines:
        return [[float(word) for word in line.split()] for line in lines]


def read_arrival(numbers):
    at_ns, client, model, priority, urgency, steps = numbers
    return make_request(
        at_ns,
        int(client),
        int(model),
        priority=int(priority),
        urgency=urgency,
        steps_remaining=int(steps) if steps >= 0 else None,
    )


class Rate:
    """The first of the trace wait, then each more is a decision; of those the
    first do not count."""

    def __init__(self, strategy, trace):
        (self.waiting, self.warm), *rows = read_numbers(trace)
        self.strategy, self.rows = strategy, rows

    def start(self):
        """A scheduler with those that wait, and the arrivals to come."""
        arrivals = [read_arrival(row) for row in self.rows]
        scheduler = make_scheduler(self.strategy)
        waiting, counted = int(self.waiting), int(self.waiting + self.warm)
        for number, request in enumerate(arrivals[:counted]):
            now[0] = request.received_at
            scheduler.submit(request)
            if number >= waiting:
                scheduler.next_batch()
        return scheduler, arrivals[counted:]

    def whole(self):
        scheduler, arrivals = self.start()
        submit, next_batch = scheduler.submit, scheduler.next_batch
        begin = time.thread_time_ns()
        for request in arrivals:
            now[0] = request.received_at
            submit(request)
            next_batch()
        return (time.thread_time_ns() - begin) / len(arrivals)

    def each(self):
        scheduler, arrivals = self.start()
        submit, next_batch = scheduler.submit, scheduler.next_batch
        clock = time.perf_counter_ns
        took = []
        for request in arrivals:
            begin = clock()
            now[0] = request.received_at
            submit(request)
            next_batch()
            took.append(clock() - begin)
        return sorted(took)

    def block(self):
        gc.disable()  # not during a block
        whole_ns, each_ns = self.whole(), self.each()
        gc.enable()
        p50_ns, p99_ns = quantile(each_ns, 0.5), quantile(each_ns, 0.99)
        return 1e9 / whole_ns, p50_ns / 1e3, p99_ns / 1e3


class Robot:
    def __init__(self, chunk_ns, dry_ns):
        self.chunk_ns, self.dry_ns = chunk_ns, dry_ns
        self.was_dry_ns, self.missed = 0, 0
        self.asked = collections.deque()  # what is not answered: when, and due

    def ask(self, at_ns):
        """Returns the steps that are left."""
        self.asked.append((at_ns, max(at_ns, self.dry_ns)))
        return max(0, int((self.dry_ns - at_ns) / STEP_NS))

    def covered(self, at_ns, asked_ns):
        """An answer came to what was asked then."""
        until_ns = asked_ns + self.chunk_ns
        if until_ns <= at_ns:
            return  # nothing of it is left
        self.was_dry_ns += max(0, at_ns - self.dry_ns)
        self.dry_ns = max(self.dry_ns, until_ns)
        while self.asked and self.asked[0][0] <= asked_ns:
            _, due_ns = self.asked.popleft()
            self.missed += due_ns < at_ns

    def end(self, at_ns):
        self.was_dry_ns += max(0, at_ns - self.dry_ns)
        self.missed += sum(due_ns < at_ns for _, due_ns in self.asked)


class Misses:
    """Robots whose buffers run dry, and a device that runs one at a time."""

    def __init__(self, strategy, trace):
        (robots, self.end_ns), *rows = read_numbers(trace)
        self.robots = [Robot(*row) for row in rows[: int(robots)]]
        self.arrivals = rows[int(robots) :]
        self.scheduler = make_scheduler(strategy)
        self.asked = {}  # what a request is an ask of: time, robot, service time
        self.tick_ns = TICK_NS

    def set_now(self, at_ns):
        while self.tick_ns <= at_ns:
            now[0] = self.tick_ns * NS
            self.scheduler.tick()
            self.tick_ns += TICK_NS
        now[0] = at_ns * NS

    def arrive(self, at_ns, number, service_ns):
        self.set_now(at_ns)
        robot = self.robots[int(number)]
        request = make_request(
            at_ns,
            int(number),
            0,
            priority=1,
            urgency=0.0,
            steps_remaining=robot.ask(at_ns),
        )
        self.asked[id(request)] = request, at_ns, robot, service_ns
        self.scheduler.submit(request)

    def block(self):
        at_ns, coming, running = 0, 0, None
        while at_ns < self.end_ns:
            while coming < len(self.arrivals) and self.arrivals[coming][0] <= at_ns:
                self.arrive(*self.arrivals[coming])
                coming += 1
            self.set_now(at_ns)
            if running:
                _, asked_ns, robot, _ = running
                robot.covered(at_ns, asked_ns)
            batch = self.scheduler.next_batch()
            running = self.asked.pop(id(batch[0])) if batch else None
            if running:
                at_ns += running[3]
            elif coming < len(self.arrivals):
                at_ns = self.arrivals[coming][0]
            else:
                break
        for robot in self.robots:
            robot.end(self.end_ns)
        missed = sum(robot.missed for robot in self.robots)
        dry_ns = sum(robot.was_dry_ns for robot in self.robots)
        time_ns = self.end_ns * len(self.robots)
        return 100 * missed / len(self.arrivals), 100 * dry_ns / time_ns


class Saturated:
    """Clients that ask anew a moment after each answer, the first of them urgent,
    and a device that is never idle."""

    RUN_NS, THINK_NS = 10_000_000, 1_000_000

    def __init__(self, strategy, clients, runs):
        self.strategy, self.runs = strategy, int(runs)
        self.asks_ns = [0] * int(clients)

    def ask_all(self, scheduler, until_ns):
        for number, at_ns in enumerate(self.asks_ns):
            if at_ns is None or at_ns > until_ns:
                continue
            now[0] = at_ns * NS
            urgency = 0.0 if number else 1.0
            scheduler.submit(
                make_request(
                    at_ns,
                    number,
                    0,
                    priority=1,
                    urgency=urgency,
                    steps_remaining=None,
                )
            )
            self.asks_ns[number] = None

    def block(self):
        scheduler = make_scheduler(self.strategy)
        waits_ns, longest_ns = [], 0
        for run in range(self.runs):
            at_ns = run * self.RUN_NS
            self.ask_all(scheduler, at_ns)
            now[0] = at_ns * NS
            batch = scheduler.next_batch()
            if not batch:
                continue
            number = int(batch[0].client_id.removeprefix("robot-"))
            wait_ns = at_ns - batch[0].received_at / NS
            if number == 0:
                waits_ns.append(wait_ns)
            else:
                longest_ns = max(longest_ns, wait_ns)
            self.asks_ns[number] = at_ns + self.RUN_NS + self.THINK_NS
        share = 100 * len(waits_ns) / self.runs
        return share, quantile(sorted(waits_ns), 0.5) / 1e6, longest_ns / 1e6


if __name__ == "__main__":
    kind, strategy, *given = sys.argv[1:]
    hold_signals()
    set_clock()
    kinds = {"rate": Rate, "misses": Misses, "saturated": Saturated}
    run_blocks(kinds[kind](strategy, *given).block)
