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
from .policy import Misfit, Policy, load, to_chunk
from .ring import Closed, Ring

MOST_TRACES = 100


class Worker:
    def __init__(self, ring, policy):
        self.ring, self.policy = ring, policy
        self.traced = set()

    def serve(self):
        while True:
            self.answer(self.ring.next())

    def answer(self, count):
        ring = self.ring
        observations, outcomes = [], {}
        for member in range(count):
            try:
                observations.append((member, ring.observation(member)))
            except Exception as error:
                outcomes[member] = error
        start = time.perf_counter_ns()
        answers = self.policy.run([obs for _, obs in observations], ring.beat)
        took_ns = time.perf_counter_ns() - start
        outcomes |= zip((member for member, _ in observations), answers, strict=True)
        for member, outcome in outcomes.items():
            self.put(member, outcome)
        ring.done(count, took_ns)

    def put(self, member, outcome):
        try:
            if isinstance(outcome, Exception):
                raise outcome
            self.ring.put_actions(member, to_chunk(outcome, self.ring.shape))
        except Exception as error:
            self.trace(error)
            self.ring.put_error(member, status_of(error), describe(error))

    def trace(self, error):
        """Once for each that is new: a policy may fail thirty times a second."""
        text = describe(error)
        if text in self.traced or len(self.traced) >= MOST_TRACES:
            return
        self.traced.add(text)
        traceback.print_exception(error)

    def warm(self):
        """Zeros twice, so that the first robot finds it fast. Nanoseconds of one."""
        spec = self.ring.spec
        took_ns = 0
        for count in {1, spec["max_batch"] if self.policy.batched else 1}:
            for _ in range(2):
                start = time.perf_counter_ns()
                answers = self.policy.run([zeros(spec) for _ in range(count)])
                last_ns = time.perf_counter_ns() - start
                for answer in answers:
                    if isinstance(answer, Exception):
                        raise answer
                    to_chunk(answer, self.ring.shape)
            took_ns = max(took_ns, last_ns)
        return took_ns


def zeros(spec):
    numbers = dict.fromkeys(("seed", "cursor", "boot", "episode", "seq"), 0)
    obs = {"client": "warm-up", "task": "", "metadata": {}, "rtc": None} | numbers
    if spec["states"]:
        obs["state"] = np.zeros(len(spec["states"]), np.float32)
    for name, size in spec["cameras"].items():
        obs[name] = np.zeros((*size, 3), np.uint8)
    return obs


def describe(error):
    return f"{type(error).__name__}: {error}"


def status_of(error):
    if isinstance(error, MemoryError):
        return layout.NOMEM
    return layout.MISMATCH if isinstance(error, Misfit) else layout.INTERNAL


def start(ring, options):
    shared.wanted.update(ring.wanted())
    shared._ring = ring
    policy = Policy(load(options.target), options.batched)
    ring.say(policy.spec)
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
        ring.cannot(describe(error))
        sys.exit(1)
    try:
        worker.serve()
    except Closed:
        pass


if __name__ == "__main__":
    main()
