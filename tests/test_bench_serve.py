# SPDX-License-Identifier: Apache-2.0
"""`tendon bench serve` and `peers`: real servers, and clients that they answer."""

from bench_rows import read_rows
from tendon_process import run


def test_any_number_of_clients_is_answered_and_the_cost_is_printed():
    done = run("bench", "serve", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    rows = read_rows(done.stdout)
    for clients in (1, 8, 64, 256, 1000):
        assert rows[f"{clients}-clients/throughput"]["value"] > 0
    assert 0 < rows["64-clients/load-150/fairness"]["value"] <= 1
    assert rows["shouted-and-corrupted/others/p99"]["value"] > 0
    for case in ("shm/100k/busy", "tcp/100k/busy", "shm/100k/paced", "tcp/100k/paced"):
        assert rows[f"{case}/cpu"]["against"] == "zenoh echo"


def test_peers_print_our_own_figures_even_alone():
    done = run("bench", "peers", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    rows = read_rows(done.stdout)
    assert len(rows) == 12
    assert all(row["value"] > 0 for row in rows.values())
