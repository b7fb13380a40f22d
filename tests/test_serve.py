# SPDX-License-Identifier: Apache-2.0
"""A server that people run for months: what signals do, and who may start."""

import json
import signal
import subprocess

import pytest
from outside_client import Client, tensor
from scene import IMAGES, JOINTS, ROUTE, manifest
from tendon_process import ROOT, run, wait_until

STATE = tensor([0.0] * len(JOINTS))


def rewrite(site, server, content, name="server"):
    """Puts another manifest where the server's was, and tells it."""
    site.write(f"{name}.yaml", content)
    server.process.send_signal(signal.SIGHUP)


def lines_of(server, part, count):
    wait_until(lambda: len(server.lines(part)) >= count, server.missing(part))


def scheduled(endpoint, **scheduling):
    return manifest(endpoint) | {"scheduling": scheduling}


STRATEGIES = [
    "deadline_aware",
    "tiered_deadline",
    "priority_tiered",
    "batch_optimized",
    "round_robin",
    "model_deadline",
]


def test_strategies_change_while_robots_run_and_nothing_is_lost(site):
    server = site.serve()
    robots = [site.robot(f"robot-{i}") for i in (1, 2)]
    watch = site.watch()
    for robot in ("robot-1", "robot-2"):
        watch.wait_moving(robot)
    before = "model_deadline"
    for strategy in STRATEGIES:
        rewrite(site, server, scheduled(site.endpoint, strategy=strategy))
        server.wait_line(f"serve: scheduling.strategy: {strategy}, was {before}")
        before = strategy
        for robot in ("robot-1", "robot-2"):
            watch.wait_moving(robot)
    rewrite(site, server, scheduled(site.endpoint, score="urgency - age_ms"))
    server.wait_line('serve: scheduling.score: urgency - age_ms, was ""')
    for robot in ("robot-1", "robot-2"):
        watch.wait_moving(robot)
    for lost in ("departed", "failed", "refused"):
        assert watch.count("gpu-1", lost) == 0
    assert all(robot.stop() == 0 for robot in robots)
    assert server.stop(signal.SIGTERM) == 0


def test_a_plugin_can_score(site):
    plugin = site.folder / "my_score.so"
    source = ROOT / "examples/my_score.c"
    command = ["cc", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", plugin, source]
    subprocess.run(command, check=True)
    server = site.serve()
    site.robot()
    watch = site.watch()
    watch.wait_moving("robot-1")
    rewrite(site, server, scheduled(site.endpoint, plugin="my_score.so"))
    server.wait_line(f"serve: scheduling.plugin: {plugin}, was")
    watch.wait_moving("robot-1")
    watch.wait_more("gpu-1", "score_calls", 3)
    rewrite(site, server, manifest(site.endpoint))
    server.wait_line('serve: scheduling.plugin: "", was')
    watch.wait_moving("robot-1")
    for _ in range(2):  # the first may have been on its way
        watch.wait_more("gpu-1", "batches")
    calls = watch.count("gpu-1", "score_calls")
    watch.wait_more("gpu-1", "batches", 3)
    assert watch.count("gpu-1", "score_calls") == calls
    assert server.stop() == 0


BROKEN = {
    "not YAML": ("models: [", "not YAML"),
    "a field": ({"fps": 0}, "models[0].fps: must be 1 to 1000, got 0"),
    "a score": ("hurry", "scheduling.score: column 1"),
    "a plug-in": ("/nowhere/x.so", "scheduling.plugin: /nowhere/x.so: cannot open"),
}


def broken_manifest(site, case):
    content, _ = BROKEN[case]
    if case == "not YAML":
        return content
    if case == "a field":
        return manifest(site.endpoint, **content)
    return scheduled(site.endpoint, **{case[2:].replace("-", ""): content})


def test_a_broken_manifest_changes_nothing(site):
    server = site.serve()
    site.robot()
    watch = site.watch()
    watch.wait_moving("robot-1")
    for case, (_, words) in BROKEN.items():
        rewrite(site, server, broken_manifest(site, case))
        line = server.wait_line(words)
        assert "server.yaml" in line and line.endswith("; nothing was changed")
        watch.wait_moving("robot-1")
    assert not server.lines("reloaded")


def test_what_needs_a_restart_is_named_each_time(site):
    server = site.serve()
    changed = manifest(site.endpoint, fps=50, device="cuda:7")
    changed["models"].append(changed["models"][0] | {"server_id": "gpu-2"})
    for count in (1, 2):
        rewrite(site, server, changed)
        lines_of(server, "serve: models[0].fps: differs, needs a restart", count)
        lines_of(server, "serve: models[0].device: differs, needs a restart", count)
        lines_of(server, "serve: models[1]: is new, needs a restart", count)
        lines_of(server, "serve: reloaded: 0 changed, 3 need a restart", count)


def slow(ms):
    return {"latency": {"kind": "fixed", "ms": ms}}


@pytest.fixture
def client(site):
    def open_one(name="client-1"):
        return site.keep(Client(site.endpoint, ROUTE, name))

    return open_one


def refused(site, name):
    reason = f"client {name} is not in the manifest of server gpu-1"
    with (
        Client(site.endpoint, ROUTE, name) as stranger,
        pytest.raises(PermissionError, match=reason),
    ):
        stranger.attach("gpu-1")


def test_who_is_served_can_change(site):
    one = [{"client_uuid": "robot-1"}]
    both = [*one, {"client_uuid": "robot-2"}]
    server = site.serve(clients=one, accept_unknown=False)
    site.robot("robot-1")
    watch = site.watch()
    watch.wait_moving("robot-1")
    refused(site, "robot-2")
    rewrite(site, server, manifest(site.endpoint, clients=both, accept_unknown=False))
    server.wait_line("serve: models[0].clients: changed")
    site.robot("robot-2")
    watch.wait_moving("robot-2")
    rewrite(
        site, server, manifest(site.endpoint, clients=both[1:], accept_unknown=False)
    )
    server.wait_line("server: robot-1 left")
    watch.wait_moving("robot-2")


def test_unknown_robots_are_taken_where_the_manifest_says_so(site):
    server = site.serve(clients=[{"client_uuid": "robot-1"}], accept_unknown=False)
    refused(site, "stranger")
    rewrite(site, server, manifest(site.endpoint))
    server.wait_line("serve: models[0].accept_unknown: true, was false")
    site.robot("newcomer")
    site.watch().wait_moving("newcomer")


def running(watch):
    return lambda: watch.count("gpu-1", "running") == 1


def test_when_a_silent_robot_is_gone_can_change(site, client):
    server = site.serve()
    client().attach("gpu-1")
    rewrite(site, server, scheduled(site.endpoint, cadence={"gone_s": 1}))
    server.wait_line("serve: scheduling.cadence.gone_s: 1, was 10")
    server.wait_line("server: client-1 is gone: silent for 1 s")


def test_a_model_that_loads_is_warming(site, client):
    site.router()
    path = site.write(
        "slow.yaml", manifest(site.endpoint, mode="client", engine=slow(3000))
    )
    server = site.start("slow", "serve", path)
    robot = site.robot()
    one = client()
    found = wait_until(one.status, "its status")
    assert [s["state"] for s in found] == ["warming"]
    with pytest.raises(PermissionError, match="server gpu-1 is warming"):
        one.attach("gpu-1")
    robot.wait_line("waiting: server gpu-1 is warming")
    server.wait_line("serve: ready")
    assert [s["state"] for s in one.status()] == ["ready"]
    robot.wait_line("attached to server gpu-1")


def test_sigterm_answers_what_waits_and_ends(site, client):
    site.router()
    server = site.serve(mode="client", engine=slow(1500))
    watch = site.watch()
    clients = [client(f"client-{i}") for i in (1, 2)]
    for each in clients:
        each.attach("gpu-1")
        each.send(state=STATE, images=IMAGES)
    wait_until(running(watch), "the first runs, the second waits")
    server.process.send_signal(signal.SIGTERM)
    server.wait_line("serve: draining")
    assert [s["state"] for s in clients[0].status()] == ["draining"]
    with pytest.raises(PermissionError, match="server gpu-1 is draining"):
        client("late").attach("gpu-1")
    for each in clients:
        assert "actions" in each.receive()
    assert server.ended() == 0
    assert "2 received, 2 answered" in server.lines(" answered")[0]


def test_a_second_sigterm_ends_at_once(site, client):
    server = site.serve(engine=slow(2000))
    watch = site.watch()
    one = client()
    one.attach("gpu-1")
    one.send(state=STATE, images=IMAGES)
    wait_until(running(watch), "it runs")
    server.process.send_signal(signal.SIGTERM)
    server.wait_line("serve: draining")
    assert server.stop(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_second_start_is_refused_by_name(site):
    site.router()
    first = site.serve(mode="client")
    site.robot()
    site.watch().wait_moving("robot-1")
    path = site.write("again.yaml", manifest(site.endpoint, mode="client"))
    again = run("serve", path)
    assert again.returncode == 3
    assert "server gpu-1 of synthetic/v1/wave is already running (boot " in again.stderr
    assert "stop it, or give this one another server_id" in again.stderr
    assert first.is_running()
    other = site.serve(name="other", mode="client", server_id="gpu-2")
    assert other.is_running()


def test_a_killed_server_may_start_again_at_once(site):
    site.router()
    site.serve(mode="client").kill()
    site.serve(mode="client")


def test_an_endpoint_that_is_taken_is_named(site):
    site.serve()
    path = site.write("again.yaml", manifest(site.endpoint, server_id="gpu-2"))
    again = run("serve", path)
    assert again.returncode == 3
    assert site.endpoint in again.stderr


def entry(endpoint, model, **changes):
    server = manifest(endpoint)["models"][0]
    return server | {"model_id": model, "server_id": model} | changes


def test_two_models_share_a_device(site):
    content = manifest(site.endpoint)
    content["models"] = [
        entry(site.endpoint, model, device="cuda:0") for model in ("one", "two")
    ]
    server = site.start("both", "serve", site.write("both.yaml", content))
    server.wait_line("serve: ready")
    robots = {
        model: site.robot(f"robot-{model}", model_id=model) for model in ("one", "two")
    }
    for model in robots:
        site.watch(route=ROUTE.replace("synthetic", model)).wait_moving(
            f"robot-{model}"
        )
    assert all(robot.stop() == 0 for robot in robots.values())
    assert server.stop() == 0


def test_a_robot_gets_on_without_computing_ahead(site):
    site.serve(precompute=False)
    site.robot("robot-1")
    site.watch().wait_moving("robot-1")


def test_check_says_what_would_be_served(site):
    content = scheduled(site.endpoint, strategy="tiered_deadline", score="urgency")
    content["models"] = [
        entry(site.endpoint, "one", device="cuda:0"),
        entry(site.endpoint, "two", device="cpu", batch={"max_size": 1}),
    ]
    path = site.write("m.yaml", json.dumps(content))
    done = run("serve", path, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    tail = f"v1 for wave at {site.endpoint}, batches of up to 1; 0 robots listed"
    assert done.stdout == (
        f"{path}: 2 models\n"
        "cuda:0: tiered_deadline by the manifest's score\n"
        f"  one: one/{tail}, others are taken too\n"
        "cpu: tiered_deadline by the manifest's score\n"
        f"  two: two/{tail}, others are taken too\n"
        "fine\n"
    )


def test_a_model_slower_than_its_chunks_is_named_before_anyone_waits(site):
    server = site.serve(engine=slow(300))
    server.wait_line("serve: ready")
    assert "the first chunk of synthetic took 0.3" in server.text()
    assert "a robot plays it in 0.2 s" in server.text()
