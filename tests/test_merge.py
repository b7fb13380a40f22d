# SPDX-License-Identifier: Apache-2.0
"""The edge core against docs/merge.md, written a second time.

`merge_log` runs the real core in virtual time: answers 400 ± 200 ms late, one in
twenty lost, some doubled or out of order, some that the robot must not take,
episodes that end, robots that start again, drivers that go away. For each seed
everything that the core decided must come out of the reference as well.
"""

import os
import pathlib
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest
from tendon_process import BIN

sys.path.insert(0, str(pathlib.Path(__file__).parent / "reference"))

import replay

MERGE_LOG = pathlib.Path(BIN).with_name("merge_log")
SEEDS = int(os.environ.get("TENDON_SEEDS", "1000"))  # more: tools/campaign
BATCH = 25


def replays(mode, first, count):
    command = [MERGE_LOG, mode, str(first), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        for log in replay.read_logs(process.stdout):
            yield replay.Replay(log)
    assert process.returncode == 0


def run_batch(mode, first, count):
    totals = replay.Totals()
    for one in replays(mode, first, count):
        totals.add(one.run())
    assert totals.seeds == count
    return totals


@pytest.fixture(scope="module")
def workers():
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield pool


def run_all(workers, mode, capsys):
    totals = replay.Totals()
    starts = range(1, SEEDS + 1, BATCH)
    counts = [min(BATCH, SEEDS + 1 - start) for start in starts]
    for batch in workers.map(run_batch, [mode] * len(starts), starts, counts):
        totals.add(batch)
    with capsys.disabled():
        print(
            f"\n{mode}: {totals.seeds} seeds, {totals.answers} answers, "
            f"{totals.commands} commands compared; most error: "
            f"angle {totals.error['angle']:.1e}, "
            f"quaternion {totals.error['quaternion']:.1e}"
        )
    return totals


def assert_all_happened(counts):
    """`not_finite` cannot come over the wire: such a message is malformed."""
    names = set(counts) - {"not_finite"}
    seldom = {name: counts[name] for name in names if counts[name] < SEEDS / 50}
    assert not seldom, f"the seeds hardly try these: {seldom}"
    assert counts["not_finite"] == 0


def test_every_command_is_that_of_the_reference(workers, capsys):
    totals = run_all(workers, "plain", capsys)
    assert totals.seeds == SEEDS
    assert_all_happened(totals.counts)


def test_no_command_leaves_the_limits(workers, capsys):
    """The same robots with limits, and with fail-safes of all kinds."""
    totals = run_all(workers, "limits", capsys)
    assert totals.seeds == SEEDS
    assert_all_happened(totals.counts)


@pytest.mark.parametrize("seed", range(1, 6))
def test_inference_longer_than_a_chunk_loses_no_row(seed):
    """2.5 s for 50 rows at 30 Hz, asked when none is left (g = 0)."""
    (one,) = replays("sequential", seed, 1)
    totals = one.run()
    assert {name for name, count in totals.counts.items() if count} <= {
        "merged",
        "pending",
    }
    *whole, last = one.steps.values()
    assert len(whole) >= 3
    assert Counter(whole) == {50: len(whole)} and last <= 50
