# SPDX-License-Identifier: Apache-2.0
"""What a server shows of itself over HTTP, read as others read it."""

import json
import os
import pathlib
import re
import signal
import socket
import sys
import threading
import types
import urllib.error
import urllib.request

import msgpack
import numpy as np
import pytest
from outside_client import Client, tensor
from prometheus_client.parser import text_string_to_metric_families
from scene import IMAGES, JOINTS, ROUTE, manifest
from tendon_process import Site, wait_until

ROOT = pathlib.Path(__file__).parents[1]
ROBOTS = ["robot-1", "robot-2", "robot-3"]

# Inferential's metrics by name, with the labels that they have there.
PUBLISHED = {
    "inference_latency_ms": {"client", "model"},
    "scheduling_wait_ms": {"client", "model"},
    "e2e_latency_ms": {"client", "model"},
    "observation_staleness_ms": {"client"},
    "payload_size_bytes": {"client"},
    "queue_depth": {"model"},
    "batch_size": set(),
    "active_clients": set(),
    "queue_full_drops": {"client"},
    "dispatch_errors": {"client", "error"},
    "dispatch_retries": {"client", "model"},
    "send_errors": {"client"},
    "requests_expired": set(),
    "observation_errors": set(),
    "client_disconnected": {"client"},
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path):
    """(status, text), whatever the status is."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def stats(port, query=""):
    status, text = get(port, f"/v1/stats{query}")
    assert status == 200, text
    return json.loads(text)


def events(port, after=0):
    status, text = get(port, f"/v1/events?after={after}")
    assert status == 200, text
    return [json.loads(line) for line in text.splitlines()]


def families(port):
    status, text = get(port, "/metrics")
    assert status == 200
    found = list(text_string_to_metric_families(text))
    names = [family.name for family in found]
    assert len(names) == len(set(names))
    return {family.name: family for family in found}


def total(family):
    return sum(sample.value for sample in family.samples)


def start(site, name="server", admin=None, **changes):
    """A server that can be seen, and its port; it may still be warming up."""
    port = free_port()
    content = manifest(site.endpoint, **changes)
    content["admin"] = {"port": port} | (admin or {})
    engine = content["models"][0]["engine"]
    if engine["kind"] == "worker":
        del engine["latency"]  # the synthetic one's
    return site.start(name, "serve", site.write(f"{name}.yaml", content)), port


@pytest.fixture(scope="module")
def world(module_site):
    site = module_site
    server, port = start(site)
    server.wait_line("serve: ready")
    watch = site.watch()
    robots = [site.robot(name) for name in ROBOTS]
    for name in ROBOTS:
        watch.wait_moving(name)
    return types.SimpleNamespace(
        site=site, server=server, port=port, watch=watch, robots=robots
    )


def rows_of_docs():
    """{name: (name for Prometheus, labels)} of docs/metrics.md."""
    page = (ROOT / "docs/metrics.md").read_text()
    row = r"^\| `(\w+)` \| \w+ \| `(\w+)` \| ([\w, ]+) \|"
    found = re.findall(row, page, re.MULTILINE)
    return {name: (prom, set(labels.split(", "))) for name, prom, labels in found}


def test_the_published_metrics_are_listed_with_their_labels():
    rows = rows_of_docs()
    for name, labels in PUBLISHED.items():
        assert labels <= rows[name][1]


def test_every_metric_of_the_page_is_there(world):
    wait_until(
        lambda: (
            events(world.port)
            and total(families(world.port)["tendon_server_batch_size"])
        ),
        "batches",
    )
    found = families(world.port)
    for name, (prom, labels) in rows_of_docs().items():
        family = found[prom.removesuffix("_total")]
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == labels, name


@pytest.mark.parametrize("family", ["e2e_latency", "observation_staleness"])
def test_each_robot_has_its_times(world, family):
    def counts():
        samples = families(world.port)[f"tendon_server_{family}_seconds"].samples
        return {
            sample.labels["client"]: sample.value
            for sample in samples
            if sample.name.endswith("_count")
        }

    wait_until(lambda: set(counts()) == set(ROBOTS), "three robots")
    wait_until(lambda: min(counts().values()) > 5, "answers for each")


def test_outcomes_add_up_to_what_came(world):
    for _ in range(30):
        found = families(world.port)
        came = total(found["tendon_server_observations_received"])
        ended = total(found["tendon_server_observations_ended"])
        assert came == ended + total(found["tendon_server_observations_pending"])
        (model,) = stats(world.port)["models"]
        assert model["received"] == sum(model["outcomes"].values()) >= came


def test_windows_are_the_models_and_each_clients(world):
    (model,) = stats(world.port, "?window=600")["models"]
    assert model["model"] == "synthetic" and model["state"] == "ready"
    assert {client["client"] for client in model["clients"]} == set(ROBOTS)
    for name in ("inference_latency_ms", "scheduling_wait_ms", "e2e_latency_ms"):
        whole = model["windows"][name]
        assert whole["min"] <= whole["p50"] <= whole["p95"] <= whole["p99"]
        assert whole["p99"] <= whole["max"]
        parts = [client["windows"][name] for client in model["clients"]]
        assert max(part["max"] for part in parts) <= whole["max"] + 1e-3
    # The engine takes 2 ms, and so does nothing that is quicker.
    assert model["windows"]["inference_latency_ms"]["p50"] >= 1.9
    sizes = model["windows"]["payload_size_bytes"]
    assert 500 < sizes["min"] <= sizes["max"] < 1 << 20


def test_a_part_may_be_asked_for(world):
    (model,) = stats(world.port, "?client=robot-2&model=synthetic")["models"]
    assert [client["client"] for client in model["clients"]] == ["robot-2"]
    assert stats(world.port, "?model=another")["models"] == []


@pytest.mark.parametrize(
    "path, says",
    [
        ("/v1/stats?window=0", "window: must be a whole number from 1 to 600"),
        ("/v1/stats?window=601", "window: must be"),
        ("/v1/stats?window=1e2", "window: must be"),
        ("/v1/stats?windows=60", "no such parameter"),
        ("/v1/stats?window=6&window=7", "twice"),
        ("/v1/stats?model=%0", "two hex digits"),
        ("/v1/stats?model=%00", "control character"),
        ("/v1/stats?client=" + 65 * "x", "at most"),
        ("/v1/events?after=-1", "after: must be"),
        ("/v1/events?after=1000000", "begin again with after=0"),
        ("/v1/events?limit=0", "limit: must be"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_reason(world, path, says):
    status, text = get(world.port, path)
    assert status == 400 and says in text


def test_it_is_healthy_and_ready(world):
    assert get(world.port, "/healthz") == (200, "OK\n")
    status, text = get(world.port, "/readyz")
    assert status == 200
    assert json.loads(text) == {
        "ready": True,
        "models": [{"server": "gpu-1", "model": "synthetic", "state": "ready"}],
    }


def test_who_comes_and_goes_is_an_event(world):
    newest = events(world.port)[-1]["number"]
    robot = world.site.robot("passer-by")
    world.watch.wait_moving("passer-by")
    assert robot.stop() == 0

    def reported():
        kinds = {"attached", "left"}
        return [
            event["event"]
            for event in events(world.port, newest)
            if event.get("client") == "passer-by" and event["event"] in kinds
        ]

    wait_until(lambda: reported() == ["attached", "left"], "it came and went")
    (model,) = stats(world.port)["models"]
    assert "passer-by" not in {client["client"] for client in model["clients"]}
    assert model["departed"]["passer-by"] == 1
    gone = families(world.port)["tendon_server_client_disconnected"].samples
    assert [s.value for s in gone if s.labels["client"] == "passer-by"] == [1]


# What three answers, one observation that does not fit and one that is malformed make.
COUNTED = {
    "received": 5,
    "answered": 3,
    "refused": 1,
    "malformed": 1,
    "observation_errors": 2,
    "batches": 3,
    "attached": 1,
}
GAUGED = {"active_clients": 1, "capacity": 256}
SPREAD = {
    "inference_latency_ms": 3,
    "scheduling_wait_ms": 3,
    "e2e_latency_ms": 3,
    "payload_size_bytes": 3,
    "batch_size": 3,
    "dispatch_depth": 3,
}
MEASURED = {"device_us", "uptime_s", "net_pool_misses"}  # not counted by hand


@pytest.fixture(scope="module")
def still(swept):
    """What a server that was asked a few things and has come to rest says of
    itself: in /v1/stats, in /metrics and over Zenoh."""
    with Site() as site:
        yield numbers_at_rest(site)


def numbers_at_rest(site):
    server, port = start(site)
    server.wait_line("serve: ready")
    watch = site.watch()
    client = site.keep(Client(site.endpoint, ROUTE, "robot-0"))
    client.attach("gpu-1")
    state = tensor(np.zeros(len(JOINTS), np.float32))
    for _ in range(3):
        client.send(state=state, images=IMAGES)
        assert "error" not in client.receive()
    same = {"seq_id": 1, "boot": client.boot, "client_uuid": "robot-0"}
    client.send(state=tensor(np.zeros(1)), images=IMAGES)
    assert client.receive()["error"]["code"] == "MISMATCH"
    client.observations.put(b"nonsense")

    def rest():
        (model,) = stats(port)["models"]
        pending = model["outcomes"]["waiting"] + model["outcomes"]["running"]
        over_zenoh = watch.newest.get("gpu-1", {}).get("counters", {})
        settled = model["received"] == over_zenoh.get("received") == 5 and not pending
        return model if settled else None

    model = wait_until(rest, "all five have come to their end")
    wait_until(
        lambda: watch.newest["gpu-1"]["counters"].get("answered") == 3, "so they say"
    )
    return types.SimpleNamespace(
        model=model,
        families=families(port),
        zenoh=watch.newest["gpu-1"],
        payload_bytes=len(msgpack.packb(same | {"state": state, "images": IMAGES})),
    )


def expect(found, expected, where):
    for name, value in found.items():
        if name not in MEASURED:
            assert value == expected.get(name, 0), f"{where}: {name}"
    assert expected.keys() <= found.keys()


def test_the_numbers_are_those_of_what_happened(still):
    model = still.model
    counted = {"received": model["received"]} | model["outcomes"] | model["counters"]
    expect(counted, COUNTED, "counters")
    expect(model["gauges"], GAUGED, "gauges")
    (client,) = model["clients"]
    for windows in (model["windows"], client["windows"]):
        counts = {name: window["count"] for name, window in windows.items()}
        expected = {name: SPREAD[name] for name in SPREAD.keys() & counts.keys()}
        expect(counts, expected, "windows")
    sizes = model["windows"]["payload_size_bytes"]
    assert sizes["min"] == sizes["max"] == still.payload_bytes
    times = model["windows"]["inference_latency_ms"]
    assert times["min"] >= 2  # what the engine takes
    assert model["counters"]["device_us"] == pytest.approx(3e3 * times["mean"], abs=3)
    whole = model["windows"]["e2e_latency_ms"]
    assert whole["min"] >= times["min"] and whole["mean"] >= times["mean"]


def test_prometheus_has_the_same_numbers(still):
    model = still.model
    wanted = model["counters"] | model["gauges"]
    for name, (prom, _) in rows_of_docs().items():
        samples = still.families[prom.removesuffix("_total")].samples
        if name in model["windows"]:
            window = model["windows"][name]
            unit = 1e-3 if name.endswith("_ms") else 1
            ends = {"_count": window["count"], "_sum": window["mean"] * window["count"]}
            for end, value in ends.items():
                reported = sum(s.value for s in samples if s.name == prom + end)
                scale = unit if end == "_sum" else 1
                assert reported == pytest.approx(value * scale, rel=1e-4), name + end
        elif name in wanted and name != "uptime_s":
            scale = 1e-6 if name.endswith("_us") else 1
            reported = sum(sample.value for sample in samples)
            assert reported == pytest.approx(wanted[name] * scale, rel=1e-6), name
    ended = still.families["tendon_server_observations_ended"].samples
    outcomes = {s.labels["outcome"]: s.value for s in ended}
    pending = {"waiting": 0, "running": 0}
    assert pending | outcomes == model["outcomes"]
    assert total(still.families["tendon_server_observations_received"]) == 5


def test_zenoh_carries_the_same_numbers(still):
    model, zenoh = still.model, still.zenoh
    assert zenoh["state"] == "ready"
    assert zenoh["counters"] == (
        {"received": model["received"]} | model["outcomes"] | model["counters"]
    )
    assert zenoh["gauges"].keys() == model["gauges"].keys()
    expect(zenoh["gauges"], GAUGED, "gauges")
    assert zenoh["quantiles"].keys() == model["windows"].keys()
    for name, window in model["windows"].items():
        reported = {each: zenoh["quantiles"][name][each] for each in window}
        assert reported == pytest.approx(window, rel=1e-4), name


def test_only_this_machine_is_served(world):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", world.port))


GARBAGE = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
    bytes(4096),
    b"GET /metrics HTTP/1.1\r\n" + b"X: " + 100_000 * b"y",
    b"GET /" + 100_000 * b"z" + b" HTTP/1.1\r\n\r\n",
    b"POST /v1/stats HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /metrics HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
    b"GET /v1/stats?" + 2000 * b"a=b&" + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /v1/stats HTTP/1.1\r\n" + 500 * b"A: b\r\n" + b"\r\n",
    b"DELETE / HTTP/1.1\r\n\r\n",
    b"GET /v1/stats HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"hello\n\n",
]


def flood(port, bytes_):
    """Sends it, and reads what comes until the other side has had enough."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        try:
            sock.sendall(bytes_)
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65536), b""))
        except OSError:
            return b""


def test_garbage_harms_nobody(world):
    """Silent, slow and mad clients by the dozen; the robots keep their chunks."""
    silent = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(40)]
    for number, sock in enumerate(silent):
        if number % 2:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
    before = {name: world.watch.count(name, "merged") for name in ROBOTS}
    senders = [
        threading.Thread(target=flood, args=(world.port, bytes_))
        for bytes_ in GARBAGE * 4
    ]
    for sender in senders:
        sender.start()
    for name in ROBOTS:
        world.watch.wait_count(name, "merged", before[name] + 20)
        assert world.watch.state(name) == "STREAMING"
    for sock in silent:  # else the senders wait for the limit of the silent
        sock.close()
    for sender in senders:
        sender.join()
    assert world.server.is_running()
    test_outcomes_add_up_to_what_came(world)
    assert get(world.port, "/healthz")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/metrics", "/v1/stats", "/v1/events", "/readyz"])
def test_nothing_can_be_changed(world, method, path):
    request = f"{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    assert flood(world.port, request).startswith(b"HTTP/1.1 405 ")


def test_readiness_goes_from_warming_to_draining(site):
    slow = {"latency": {"kind": "fixed", "ms": 3000}}
    server, port = start(site, engine=slow)

    def state():
        try:
            status, text = get(port, "/readyz")
        except OSError:
            return None
        (model,) = json.loads(text)["models"]
        assert (status == 200) == (model["state"] == "ready")
        return model["state"]

    wait_until(lambda: state() == "warming", "it warms up")
    wait_until(lambda: state() == "ready", "it is ready")
    site.robot()
    wait_until(lambda: stats(port)["models"][0]["outcomes"]["running"], "it runs")
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: state() == "draining", "it drains")
    assert server.ended() == 0


def test_an_engine_that_dies_is_seen(site, monkeypatch):
    """Twice by the same observation, which then runs no more."""
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    site.write("policy.py", (ROOT / "tests/worker/policy.py").read_text())
    worker = {"kind": "worker", "python": "policy.py:infer_or_not"}
    server, port = start(site, engine=worker)
    server.wait_line("serve: ready")
    client = site.keep(Client(site.endpoint, ROUTE, "robot-0"))
    client.attach("gpu-1")
    state = tensor(np.arange(len(JOINTS), dtype=np.float32))

    def kinds():
        return [event["event"] for event in events(port)]

    for deaths, code in enumerate(("CLOSED", "CLOSED", "DENIED")):
        wait_until(
            lambda deaths=deaths: kinds().count("engine_restarted") == deaths,
            "the engine is there",
        )
        client.send(state=state, images=IMAGES, task="die")
        assert client.receive()["error"]["code"] == code
    life = ["engine_died", "engine_restarted"]
    assert [kind for kind in kinds() if kind in life] == 2 * life
    assert kinds()[-1] == "quarantined"
    (model,) = stats(port)["models"]
    assert model["errors"] == {"CLOSED": 2, "DENIED": 1}
    assert model["outcomes"]["failed"] == model["counters"]["dispatch_errors"] == 3
    family = families(port)["tendon_server_dispatch_errors"]
    assert {s.labels["error"]: s.value for s in family.samples} == model["errors"]


def test_a_taken_port_is_named(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server, _ = start(site, admin={"port": port})
        assert server.ended() == 1
    assert server.lines(f"127.0.0.1:{port}: the port is taken")


def test_a_reload_is_an_event(site):
    server, port = start(site)
    server.wait_line("serve: ready")
    server.process.send_signal(signal.SIGHUP)
    kinds = ["state", "reloaded"]
    wait_until(lambda: [e["event"] for e in events(port)] == kinds, "reloaded")
    site.write("server.yaml", "models: [")
    server.process.send_signal(signal.SIGHUP)
    kinds.append("reload_failed")
    wait_until(lambda: [e["event"] for e in events(port)] == kinds, "it failed")
    assert "not YAML" in events(port)[-1]["text"]
