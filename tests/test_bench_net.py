# SPDX-License-Identifier: Apache-2.0
"""`tendon bench net`: networks of its own, of which nothing stays."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from tendon_process import BIN, PATIENCE_S, Tendon, wait_until

TOOLS = ["ip", "tc", "nft"]


def missing():
    if os.geteuid() != 0:
        return "only root may make networks"
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"{', '.join(absent)} not installed" if absent else None


def networks():
    """The network namespaces of processes that this test started, but for ours."""
    mark, found = os.environ["PYTEST_CURRENT_TEST"].encode(), set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.add(os.readlink(process / "ns/net"))
        except OSError:
            continue  # it has just ended
    return found - {os.readlink("/proc/self/ns/net")}


def test_without_root_it_says_so_and_makes_nothing():
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("no setpriv to put root's rights down")
    done = subprocess.run(
        [*(weak if os.geteuid() == 0 else []), BIN, "bench", "net"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert "only root may: try it with sudo" in done.stderr


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_it_measures_and_nothing_stays(tmp_path, end):
    if reason := missing():
        pytest.skip(reason)
    bench = Tendon(tmp_path / "log", "bench", "net", "--quick", "--json")
    last = bench.wait_line("jpeg50/sent")
    assert networks()
    rows = {row["case"]: row for row in map(json.loads, bench.lines("jpeg50"))}
    assert rows["cable/jpeg50/fresh"]["value"] > 50
    assert 0 < rows["cable/jpeg50/age/p50"]["value"] < 1000
    assert json.loads(last)["unit"] == "kB/s"
    bench.process.send_signal(end)
    bench.process.wait(PATIENCE_S)
    wait_until(lambda: not networks(), "the networks are gone")
