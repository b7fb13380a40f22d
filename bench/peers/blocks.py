# SPDX-License-Identifier: Apache-2.0
"""How a peer takes part: it says when it is ready, then runs a block and prints
its numbers for each SIGUSR1, until a signal ends it."""

import signal

ENDS = {signal.SIGINT, signal.SIGTERM}


def hold_signals():
    """To be called before any thread starts: signals are waited for."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS | {signal.SIGUSR1})


def release_signals():
    """For a child, which would wait for none of them."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS | {signal.SIGUSR1})


def run_blocks(block):
    print("ready", flush=True)
    while signal.sigwait(ENDS | {signal.SIGUSR1}) == signal.SIGUSR1:
        print(*(f"{number:.9g}" for number in block()), flush=True)


def wait_for_end():
    """Of one that has no blocks: it is there for others."""
    print("ready", flush=True)
    signal.sigwait(ENDS)


def quantile(values, fraction):
    """Of sorted values."""
    return values[min(len(values) - 1, int(fraction * len(values)))]


def summary(took_s, seconds):
    """Chunks a second, and the p50 and p99 of a round trip in milliseconds."""
    took_s = sorted(took_s)
    p50_s, p99_s = quantile(took_s, 0.5), quantile(took_s, 0.99)
    return len(took_s) / seconds, 1e3 * p50_s, 1e3 * p99_s
