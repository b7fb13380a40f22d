# SPDX-License-Identifier: Apache-2.0
"""The scheduler against docs/scheduling.md, written a second time.

`sched_log` has the real scheduler decide in random cases over strategy, fairness,
priority, urgency, steps, deadline, cadence and age. Whatever it starts, the
reference must start as well; where two have as many points, one of them.
"""

import math
import os
import pathlib
import subprocess
import sys
from collections import Counter

import pytest
from tendon_process import BIN

sys.path.insert(0, str(pathlib.Path(__file__).parent / "reference"))

import scheduling

SCHED_LOG = pathlib.Path(BIN).with_name("sched_log")
CASES = int(os.environ.get("TENDON_CASES", "10000"))


def time(word):
    return math.inf if word == "-" else int(word)


def read_cases(lines):
    case = []
    for line in lines:
        words = line.split()
        if words[0] == "c" and case:
            yield case
            case = []
        case.append(words)
    yield case


def make(words):
    _, _, strategy, tiers, fairness, run = words
    return scheduling.Scheduler(strategy, int(tiers), float(fairness), int(run))


def replay(case, counts):
    scheduler = make(case[0])
    for words in case[1:]:
        kind, *rest = words
        if kind == "m":
            _, model, queued, highest, most, budget = rest
            scheduler.join(
                scheduling.Member(
                    int(model), queued == "1", int(highest), float(most), int(budget)
                )
            )
        elif kind == "a":
            now, member, seq, priority, urgency, steps, due, expected = rest
            scheduler.arrive(
                int(now),
                int(member),
                int(seq),
                int(priority),
                float(urgency),
                int(steps),
                time(due),
                time(expected),
            )
        else:
            decide(scheduler, int(rest[0]), int(rest[1]), counts, case[0])


def decide(scheduler, now, seq, counts, case):
    may = scheduler.next(now)
    seqs = [each.seq for each in may] or [0]
    assert seq in seqs, f"{case}: {seq} started, not {seqs}"
    counts["decisions"] += 1
    counts[scheduler.strategy] += 1
    counts["equal"] += bool(may) and may[0].seq != seq
    for each in may:
        if each.seq == seq:
            scheduler.start(each)


def test_what_starts_is_what_the_document_says(capsys):
    counts = Counter()
    command = [SCHED_LOG, "1", str(CASES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for case in read_cases(process.stdout):
            replay(case, counts)
            counts["cases"] += 1
    assert process.returncode == 0
    assert counts["cases"] == CASES
    for strategy in (
        "deadline_aware",
        "model_deadline",
        "tiered_deadline",
        "priority_tiered",
        "batch_optimized",
        "round_robin",
    ):
        assert counts[strategy] > CASES
    # Equal ones leave as they came, but for rounding in the ninth digit.
    assert counts["equal"] <= counts["decisions"] / 1000
    with capsys.disabled():
        print(f"\n{CASES} cases, {counts['decisions']} starts compared")


def request(scheduler, claims, due=math.inf, since=0):
    priority, urgency = claims
    scheduler.join(scheduling.Member(0, False, 0, 1.0, 50 * scheduling.MS))
    number = len(scheduler.members) - 1
    ms = scheduling.MS
    due = due * ms if due < math.inf else due
    scheduler.arrive(
        since * ms, number, number + 1, priority, urgency, -1, due, math.inf
    )
    return scheduler.waiting[-1]


def test_the_example_of_the_document():
    scheduler = scheduling.Scheduler("model_deadline", 4, 0.1, 10 * scheduling.MS)
    rows = [
        (request(scheduler, (1, 0), 40), 15),
        (request(scheduler, (1, 0), 110), -6),
        (request(scheduler, (1, 0), -5), -36),
        (request(scheduler, (0, 1), -5), 50),
        (request(scheduler, (1, 0), 310), -66),
        (request(scheduler, (1, 0), since=-20), 15),
    ]
    for each, points in rows:
        assert scheduler.points(each, 0) == pytest.approx(points)
    order = []
    scheduler.fairness = 0
    while scheduler.waiting:
        first = scheduler.next(0)[0]
        order.append(first.seq)
        scheduler.start(first)
    assert order == [4, 1, 6, 2, 3, 5]
