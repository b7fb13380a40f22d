# SPDX-License-Identifier: Apache-2.0
"""`tendon demo`: what it shows, and what it leaves behind: nothing."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import threading

import pytest
from tendon_process import BIN, PATIENCE_S, run, wait_until

SUMMARY = re.compile(
    r"^(\d+) robots moved ([1-9]\d*) steps on ([1-9]\d*) chunks; "
    r"\d+ observations sent, \d+ ticks starved\.$",
    re.MULTILINE,
)


def children(pid):
    """Processes that `pid` started and that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def shared_memory(pids):
    """The files in /dev/shm that these processes have open or mapped."""
    found = set()
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            continue
        found.update(re.findall(r"/dev/shm/\S+\.zenoh$", text, re.MULTILINE))
    return found


def is_gone(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def attached(folder):
    logs = folder.glob("tendon-*/robot-*.log")
    return [log for log in logs if "attached to server" in log.read_text()]


MOMENTS = {
    "at its start": lambda folder: list(folder.glob("tendon-*")),
    "while robots start": lambda folder: list(folder.glob("tendon-*/robot-2.log")),
    "in the middle": lambda folder: len(attached(folder)) == 4,
}


@pytest.mark.parametrize("more", [(), (signal.SIGTERM,)], ids=["once", "twice"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_leaves_nothing(site, moment, more):
    demo = site.start("demo", "demo", env={"TMPDIR": str(site.folder)})
    wait_until(lambda: MOMENTS[moment](site.folder), moment)
    pids = [demo.pid, *children(demo.pid)]
    segments = shared_memory(pids)
    demo.process.send_signal(signal.SIGINT)
    for number in more:  # of another number, as two of one may become one
        demo.process.send_signal(number)
    assert demo.ended() == 0, demo.text()
    assert all(is_gone(pid) for pid in pids)
    assert not list(site.folder.glob("tendon-*"))
    assert not [path for path in segments if os.path.exists(path)]


def test_kill_9_leaves_no_process(site):
    demo = site.start("demo", "demo", env={"TMPDIR": str(site.folder)})
    wait_until(lambda: len(attached(site.folder)) == 4, "it runs")
    pids = children(demo.pid)
    assert len(pids) == 5
    segments = shared_memory([demo.pid, *pids])
    demo.kill()
    wait_until(lambda: all(is_gone(pid) for pid in pids), "its children end")

    # What the dead could not remove goes with the next that starts.
    assert segments
    assert run("doctor").returncode == 0
    assert not [path for path in segments if os.path.exists(path)]


def test_table_and_summary(site):
    done = run("demo", "--seconds", 5, env=os.environ | {"TMPDIR": str(site.folder)})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    table = re.findall(r"^(robot-\d) +STREAMING +[\d.]+ ", done.stdout, re.MULTILINE)
    assert table == ["robot-1", "robot-2", "robot-3", "robot-4"]
    assert SUMMARY.search(done.stdout)[1] == "4"
    assert not list(site.folder.glob("tendon-*"))


def test_table_is_live_on_a_terminal():
    master, slave = pty.openpty()
    demo = subprocess.Popen([BIN, "demo"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = bytearray()

    def read():
        try:
            while piece := os.read(master, 4096):
                seen.extend(piece)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    try:
        # Drawn over itself: up by its six lines, and the rest wiped.
        wait_until(lambda: b"\x1b[6A\x1b[J" in seen, "the table moves")
        for i in range(1, 5):
            wait_until(lambda i=i: b"robot-%d    STREAMING" % i in seen, "robots move")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(PATIENCE_S) == 0
    finally:
        demo.kill()
        demo.wait()
        reader.join()
        os.close(master)
    assert SUMMARY.search(seen.decode().replace("\r\n", "\n"))


def test_keep_leaves_the_files_and_says_where(site):
    done = run(
        *("demo", "--seconds", 1, "--robots", 1, "--keep"),
        env=os.environ | {"TMPDIR": str(site.folder)},
    )
    (folder,) = site.folder.glob("tendon-*")
    assert f"Configuration and logs are in {folder}" in done.stdout
    assert (folder / "robot-1.yaml").is_file()
    assert run("serve", folder / "serve.yaml", "--check").returncode == 0
