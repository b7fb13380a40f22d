# SPDX-License-Identifier: Apache-2.0
import argparse
import gc
import os
import sys
import time
import traceback

import numpy as np

from tendon import worker as shared

from . import layout
from .answers import Misfit, split, to_chunk, to_values
from .policy import Policy, load
from .ring import Closed, Ring

MOST_TRACES = 100


class Lost(LookupError):
    """A prefix that is not there any more."""


class Worker:
    def __init__(self, ring, policy):
        self.ring, self.policy = ring, policy
        self.prefixes = {}  # by number
        self.traced = set()
        self.operations = {
            layout.WHOLE: (ring.observation, self.run, self.put_answer),
            layout.PREFIX: (ring.observation, policy.prefix, self.put_prefix),
            layout.DECODE: (self.paired, policy.decode, self.put_answer),
        }

    def serve(self):
        while True:
            self.answer(*self.ring.next(self.drop, self.expect))

    def answer(self, count, operation):
        read, run, put = self.operations[operation]
        inputs, outcomes = [], {}
        for member in range(count):
            try:
                inputs.append((member, read(member)))
            except Exception as error:
                outcomes[member] = error
        start = time.perf_counter_ns()
        answers = run([each for _, each in inputs]) if inputs else []
        took_ns = time.perf_counter_ns() - start
        outcomes |= zip((member for member, _ in inputs), answers, strict=True)
        for member, outcome in outcomes.items():
            self.put(member, outcome, put)
        self.ring.done(count, took_ns)

    def run(self, observations):
        return self.policy.run(observations, self.ring.beat)

    def paired(self, member):
        number = self.ring.prefix(member)
        if number not in self.prefixes:
            raise Lost("its prefix is not there any more")
        return self.ring.observation(member, inputs=False), self.prefixes[number]

    def put(self, member, outcome, put):
        try:
            put(member, good(outcome))
        except Exception as error:
            self.trace(error)
            self.ring.put_error(member, status_of(error), describe(error))

    def put_answer(self, member, answer):
        self.ring.put_answer(member, *self.check(answer))

    def put_prefix(self, member, prefix):
        self.ring.put_prefix(member, self.policy.prefix_bytes(prefix))
        self.prefixes[self.ring.prefix(member)] = prefix

    def drop(self, number):
        try:
            self.policy.drop(self.prefixes.pop(number))
        except Exception as error:
            self.trace(error)

    def expect(self):
        try:
            self.policy.expect()
        except Exception as error:
            self.trace(error)

    def check(self, answer):
        """An answer as the ring carries it."""
        actions, named = split(answer)
        chunk = to_chunk(actions, self.ring.shape)
        return chunk, to_values(named, self.ring.values_bytes)

    def trace(self, error):
        """Once for each that is new: a policy may fail thirty times a second."""
        text = describe(error)
        if text in self.traced or len(self.traced) >= MOST_TRACES:
            return
        self.traced.add(text)
        traceback.print_exception(error)

    def warm(self):
        """Zeros twice, so that the first robot finds it fast. Nanoseconds of one."""
        most = self.ring.spec["max_batch"]
        took_ns = 0
        for count in {1, most if self.policy.batched else 1}:
            took_ns = max(took_ns, self.try_out(self.policy.run, count))
        for count in {1, most} if self.policy.splits else ():
            self.try_out(self.run_halves, count)
        return took_ns

    def try_out(self, run, count):
        took_ns = 0
        for _ in range(2):
            start = time.perf_counter_ns()
            answers = run([zeros(self.ring.spec) for _ in range(count)])
            took_ns = time.perf_counter_ns() - start
            for answer in answers:
                self.check(good(answer))
        return took_ns

    def run_halves(self, observations):
        prefixes = [good(each) for each in self.policy.prefix(observations)]
        answers = self.policy.decode([(bare(), prefix) for prefix in prefixes])
        for prefix in prefixes:
            self.policy.prefix_bytes(prefix)
            self.policy.drop(prefix)
        return answers


def bare():
    """All but what a model sees."""
    numbers = dict.fromkeys(("seed", "cursor", "boot", "episode", "seq"), 0)
    return {"client": "warm-up", "task": "", "metadata": {}, "rtc": None} | numbers


def zeros(spec):
    obs = bare()
    if spec["states"]:
        obs["state"] = np.zeros(len(spec["states"]), np.float32)
    for name, size in spec["cameras"].items():
        obs[name] = np.zeros((*size, 3), np.uint8)
    return obs


def good(outcome):
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def describe(error):
    return f"{type(error).__name__}: {error}"


def status_of(error):
    if isinstance(error, MemoryError):
        return layout.NOMEM
    if isinstance(error, Lost):
        return layout.NOTFOUND
    return layout.MISMATCH if isinstance(error, Misfit) else layout.INTERNAL


def start(ring, options):
    shared.wanted.update(ring.wanted())
    shared._ring = ring
    policy = Policy(load(options.target), options.batched)
    ring.describe(policy.spec)
    shared.wanted.update(ring.spec)
    worker = Worker(ring, policy)
    warm_ns = worker.warm()
    gc.collect()
    gc.freeze()  # the model stays: no use in looking through it again and again
    ring.ready(warm_ns)
    return worker


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tendon.worker", description="Serves a callable as a model."
    )
    parser.add_argument("target", help="module:callable or path/to/file.py:callable")
    parser.add_argument(
        "--batched", action="store_true", help="it takes a list of observations"
    )
    options = parser.parse_args()
    if layout.ENVIRONMENT not in os.environ:
        sys.exit("a worker is started by `tendon serve`: see docs/worker.md")
    ring = Ring(os.environ[layout.ENVIRONMENT])
    try:
        worker = start(ring, options)
    except Closed:
        sys.exit(1)
    except BaseException as error:
        traceback.print_exc()
        ring.fail(describe(error))
        sys.exit(1)
    try:
        worker.serve()
    except Closed:
        pass


if __name__ == "__main__":
    main()
