# SPDX-License-Identifier: Apache-2.0
"""The real binary at work: its files, its processes, what it says."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import msgpack
from outside_client import open_session
from scene import ROUTE, ROWS, manifest, robot_file

ROOT = pathlib.Path(__file__).parents[1]
BIN = os.environ.get("TENDON_BIN", str(ROOT / "build/release/tendon"))

PATIENCE_S = 60  # for what must come; a busy machine is slow, not wrong


def wait_until(condition, what, seconds=PATIENCE_S):
    """Looks again and again until `condition` gives something; returns that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s: {what}"
        time.sleep(0.02)
    return found


def free_endpoint():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


def run(*args, **options):
    """A command that ends by itself."""
    return subprocess.run(
        [BIN, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        **options,
    )


class Tendon:
    """A command that goes on until it is stopped."""

    def __init__(self, log, *args, env=None):
        self.log = pathlib.Path(log)
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [BIN, *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=os.environ | (env or {}),
            )

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        return self.log.read_text(errors="replace")

    def lines(self, part):
        return [line for line in self.text().splitlines() if part in line]

    def wait_line(self, part):
        """The first line that holds `part`."""

        def look():
            found = self.lines(part)
            assert found or self.process.poll() is None, self.missing(part)
            return found

        return wait_until(look, self.missing(part))[0]

    def missing(self, part):
        return f"no line with {part!r} in what {self.process.args[1:]} said"

    def ended(self):
        """Its exit code, when it comes to an end by itself."""
        return self.process.wait(PATIENCE_S)

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.ended()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """However it stands: gently if it still runs."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def is_running(self):
        return self.process.poll() is None

    def rss_bytes(self):
        pages = pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The newest metrics of every robot and server, as anybody can have them."""

    def __init__(self, endpoint, route):
        self.newest = {}
        self.session = open_session(endpoint)
        for key in (f"{route}/metrics", f"{route}/*/metrics"):
            self.session.declare_subscriber(key, self.on_metrics)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def on_metrics(self, sample):
        try:
            metrics = msgpack.unpackb(bytes(sample.payload))
            self.newest[metrics["source"]] = metrics
        except Exception:
            return  # tests put nonsense here, too

    def state(self, source):
        return self.newest.get(source, {}).get("state")

    def count(self, source, counter):
        return self.newest.get(source, {}).get("counters", {}).get(counter, 0)

    def wait_state(self, source, state):
        wait_until(
            lambda: self.state(source) == state,
            f"{source} is not {state}",
        )

    def wait_count(self, source, counter, least):
        wait_until(
            lambda: self.count(source, counter) >= least,
            f"{source}: {counter} does not reach {least}",
        )

    def wait_more(self, source, counter, more=1):
        """The counter grows from where it is now."""
        self.wait_count(source, counter, self.count(source, counter) + more)

    def wait_moving(self, source):
        """A robot is given chunks and plays them."""
        self.wait_state(source, "STREAMING")
        self.wait_more(source, "merged", 2)
        self.wait_more(source, "fresh", ROWS)


class Site:
    """The processes of some tests, in a folder that goes again."""

    def __init__(self):
        # A socket's path is short, and that of pytest's own folders may not be.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="td-"))
        self.endpoint = f"unixsock-stream/{self.folder}/socket"
        self.started = 0
        self.kept = contextlib.ExitStack()
        self.kept.callback(shutil.rmtree, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kept.close()

    def keep(self, session):
        """Closes it at the end."""
        return self.kept.enter_context(session)

    def write(self, name, content):
        path = self.folder / name
        if not isinstance(content, str):
            content = json.dumps(content, indent=1)  # which is YAML, too
        path.write_text(content)
        return path

    def start(self, name, *args, env=None):
        self.started += 1
        log = self.folder / f"{name}-{self.started}.log"
        tendon = Tendon(log, *args, env=env)
        self.kept.callback(tendon.end)
        return tendon

    def serve(self, endpoint=None, name="server", **changes):
        path = self.write(
            f"{name}.yaml", manifest(endpoint or self.endpoint, **changes)
        )
        server = self.start(name, "serve", path)
        server.wait_line("serve: ready")
        return server

    def robot(
        self,
        client="robot-1",
        endpoint=None,
        folder=None,
        args=(),
        env=None,
        **changes,
    ):
        content = robot_file(
            endpoint or self.endpoint, client, folder or self.folder, **changes
        )
        path = self.write(f"{client}.yaml", content)
        return self.start(client, "robot", path, *args, env=env)

    def router(self, endpoint=None, *args):
        router = self.start("router", "router", endpoint or self.endpoint, *args)
        router.wait_line("listens")
        return router

    def watch(self, endpoint=None, route=ROUTE):
        return self.keep(Watch(endpoint or self.endpoint, route))
