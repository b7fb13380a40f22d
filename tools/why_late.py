#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the late wake-ups of a thread apart: why_late.py [options] PID

Follows one thread of a process that sleeps on a timer (the control tick, unless
--thread names another) through the kernel's own trace, and says for the latest
of its wake-ups how long the interrupt came late (the host or a section without
interrupts had the CPU), how long the thread then waited for the CPU, who ran
meanwhile, and whether that was inside a network interrupt. Needs root, and
tracefs under /sys/kernel/tracing.

    tools/why_late.py $(pgrep -n tendon)
    tools/why_late.py --seconds 60 --share 0.001 4711
"""

import argparse
import collections
import pathlib
import re
import sys
import time

TRACING = pathlib.Path("/sys/kernel/tracing")
LINE = re.compile(
    r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\]\s+(?P<flags>\S+)\s+"
    r"(?P<seconds>\d+)\.(?P<micros>\d+): (?P<event>\w+): (?P<rest>.*)"
)
FIELD = re.compile(r"(\w+)=(\S+)")
# The fourth flag: what the event interrupted. H: an interrupt inside softirq.
IN_SOFTIRQ = ("H", "s")

Wake = collections.namedtuple("Wake", "late_us timer_us wait_us who inside")


def thread_id(pid, name):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    sys.exit(f"why_late: process {pid} has no thread {name}")


class Trace:
    """A trace buffer of its own, gone when left."""

    def __init__(self, tid):
        self.folder = TRACING / "instances" / f"tendon-{tid}"
        self.filters = {
            "timer/hrtimer_start": f"common_pid=={tid}",
            "timer/hrtimer_expire_entry": None,
            "sched/sched_waking": f"pid=={tid}",
            "sched/sched_switch": f"next_pid=={tid}",
        }

    def __enter__(self):
        self.folder.mkdir()
        self.put("trace_clock", "mono")
        self.put("buffer_size_kb", "65536")
        for event, condition in self.filters.items():
            if condition:
                self.put(f"events/{event}/filter", condition)
            self.put(f"events/{event}/enable", "1")
        return self

    def __exit__(self, *_):
        self.put("tracing_on", "0")
        self.folder.rmdir()

    def put(self, name, text):
        (self.folder / name).write_text(text)

    def lines(self):
        self.put("tracing_on", "0")
        with (self.folder / "trace").open() as trace:
            yield from (line for line in trace if not line.startswith("#"))


def wakes(lines, tid):
    """One Wake for each time that the thread's timer woke it."""
    due_ns = {}
    fired = waking = None
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        field = dict(FIELD.findall(match["rest"]))
        now_us = int(match["seconds"]) * 1e6 + int(match["micros"])
        if match["event"] == "hrtimer_start":
            due_ns = {field["hrtimer"]: int(field["softexpires"])}
        elif match["event"] == "hrtimer_expire_entry":
            if field["hrtimer"] in due_ns:
                fired = due_ns[field["hrtimer"]] / 1e3, int(field["now"]) / 1e3
        elif match["event"] == "sched_waking":
            waking = match["flags"]
        elif fired and waking and int(field["next_pid"]) == tid:
            due_us, fired_us = fired
            yield Wake(
                now_us - due_us,
                fired_us - due_us,
                now_us - fired_us,
                field["prev_comm"],
                waking[2] in IN_SOFTIRQ,
            )
            fired = waking = None


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def mean(values):
    return sum(values) / len(values)


def report(found, share):
    late = [wake.late_us for wake in found]
    limit, middle = quantile(late, 1 - share), quantile(late, 0.5)
    worst = [wake for wake in found if wake.late_us >= limit]
    calm = [wake for wake in found if wake.late_us <= middle]
    print(
        f"{len(found)} wake-ups, p50 {quantile(late, 0.5):.0f} us, "
        f"p99 {quantile(late, 0.99):.0f}, p99.9 {quantile(late, 0.999):.0f}"
    )
    for name, group in ("the early half", calm), (f"the latest {share:.1%}", worst):
        print(
            f"{name:16} {len(group):6}   "
            f"interrupt {mean([w.timer_us for w in group]):7.1f} us   "
            f"then {mean([w.wait_us for w in group]):7.1f} us for the CPU   "
            f"in softirq {mean([w.inside for w in group]):4.0%}"
        )
    who = collections.Counter(wake.who for wake in worst).most_common(5)
    print("ran before it:  ", ", ".join(f"{name} {count}" for name, count in who))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pid", type=int, metavar="PID")
    parser.add_argument("--thread", default="td-tick")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--share", type=float, default=0.01, help="of the wake-ups is late (0.01)"
    )
    options = parser.parse_args()
    tid = thread_id(options.pid, options.thread)
    try:
        with Trace(tid) as trace:
            time.sleep(options.seconds)
            found = list(wakes(trace.lines(), tid))
    except PermissionError as error:
        sys.exit(f"why_late: {error.filename}: needs root")
    except FileNotFoundError as error:
        sys.exit(f"why_late: {error.filename}: mount -t tracefs none {TRACING}")
    if not found:
        sys.exit(f"why_late: no timer woke {options.thread} in {options.seconds} s")
    report(found, options.share)


if __name__ == "__main__":
    main()
