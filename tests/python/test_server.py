# SPDX-License-Identifier: Apache-2.0
"""tendon.Server: any callable behind a real server, and what clients see of it."""

import asyncio
import functools
import pathlib
import re
import signal
import threading

import numpy as np
import pytest
import tendon
from scene import ROUTE
from scripts import Script
from tendon_process import wait_until

CLUSTER, EXPERIMENT, *_ = ROUTE.split("/")
WHO = {"cluster": CLUSTER, "experiment": EXPERIMENT}
WHAT = {"version": "v1", "application": "wave"}
JOINTS = ["waist", "elbow"]
STATE = np.array([1, 2], np.float32)
FRAME = np.full((48, 64, 3), 7, np.uint8)


def echo(obs):
    return np.repeat(obs["state"][None, :], 5, axis=0)


@pytest.fixture
def server(site):
    made = tendon.Server(site.endpoint, **WHO)
    site.kept.callback(made.close)
    return made


def serve(server, call, name="echo", **changes):
    given = {"actions": JOINTS, "chunk": 5} | WHAT | changes
    server.model(name, call, **given)
    server.start()


@pytest.fixture
def connect(site):
    def begin(client="station-1", name="echo"):
        connection = tendon.Connection(site.endpoint, client, **WHO)
        site.kept.callback(connection.close)
        model = connection.model(name, **WHAT)
        model.wait(60_000)
        return model

    return begin


def ask(model, **observation):
    model.observe(**{"state": STATE} | observation)
    return model.get_result(60_000)


def test_any_callable_is_served(server, connect):
    serve(server, echo)
    result = ask(connect())
    assert (result.actions == np.repeat(STATE[None], 5, axis=0)).all()
    assert server.state() == server.state("echo") == "ready"
    server.close()
    assert server.state() == "stopped"


def test_a_decorator_serves_a_coroutine_a_class_or_a_list(server, connect):
    @server.model("coroutine", actions=JOINTS, **WHAT)
    async def coroutine(obs):
        await asyncio.sleep(0)
        return echo(obs)

    @server.model("batched", actions=JOINTS, batched=True, max_batch=4, **WHAT)
    def batched(observations):
        return [echo(obs) for obs in observations]

    class Policy:
        spec = {"actions": JOINTS, "chunk": 5}

        def __call__(self, obs):
            return {"actions": echo(obs)}

    server.model("object", Policy(), **WHAT)
    server.start()
    for name in ("coroutine", "batched", "object"):
        assert (ask(connect(name=name)).actions == STATE).all(), name
    assert coroutine is not None and batched is not None


def test_all_that_was_sent_arrives(server, connect):
    seen = {}

    def look(obs):
        if obs["client"] == "station-1":
            seen.update(obs, front=obs["front"].copy(), force=obs["force"].copy())
        return echo(obs)

    serve(server, look, cameras={"front": (48, 64)})
    force = np.arange(6, dtype=np.int64).reshape(2, 3)
    result = ask(connect(), front=FRAME, force=force, task="wave", gripper="soft")
    assert result.ok, result.error
    assert (seen["front"] == FRAME).all() and (seen["force"] == force).all()
    assert seen["task"] == "wave" and seen["metadata"]["gripper"] == "soft"
    assert seen["seq"] == result.seq


def test_more_than_actions_comes_back(server, connect):
    value = np.array([[0.5, 0.25]], np.float64)
    serve(
        server,
        lambda obs: {"actions": echo(obs), "value": value, "n": 3, "text": "done"},
    )
    result = ask(connect())
    assert (result["value"] == value).all() and result["value"].dtype == np.float64
    assert result["n"] == [3] and result.text == "done"


class Wrong(Exception):
    pass


def wrong_or_not(obs):
    def wrong():
        raise Wrong("the gripper is made of jelly")

    answers = {
        "raise": wrong,
        "strings": lambda: ["up", "down"],
        "shape": lambda: np.zeros((5, 3)),
        "rows": lambda: np.zeros((9, 2)),
        "nan": lambda: np.full((5, 2), np.nan),
        "nothing": lambda: None,
    }
    return answers.get(obs["task"], lambda: echo(obs))()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("raise", "Wrong: the gripper is made of jelly"),
        ("strings", "no rows of numbers"),
        ("shape", "gave 5 x 3, the model has 1 to 5 x 2"),
        ("rows", "gave 9 x 2, the model has 1 to 5 x 2"),
        ("nan", "finite"),
        ("nothing", "gave"),
    ],
)
def test_an_error_reaches_only_the_client_that_caused_it(
    server, connect, caplog, task, says
):
    serve(server, wrong_or_not)
    bad, good = connect("bad"), connect("good")
    result = ask(bad, task=task)
    assert result.outcome == "error" and says in str(result.error)
    assert ask(good).ok and ask(bad).ok
    for _ in range(3):
        ask(bad, task=task)
    if task == "raise":
        (fault,) = server.errors
        assert fault.count == 4 and isinstance(fault.error, Wrong)
        reported = [r for r in caplog.records if "made of jelly" in r.getMessage()]
        assert len([r for r in reported if r.exc_info]) == 1


def test_one_that_cannot_answer_zeros_does_not_start(server):
    with pytest.raises(tendon.Error, match="no rows of numbers"):
        serve(server, lambda obs: ["up"])
    assert server.state() == "stopped"


def test_a_name_is_served_by_a_process_of_its_own(site, server, connect):
    path = site.write(
        "policy.py",
        "import os\nimport numpy as np\n\ndef infer(obs):\n"
        "    return {'actions': np.ones((5, 2)), 'pid': np.array([os.getpid()])}\n",
    )
    serve(server, f"{path}:infer", chunk=5)
    result = ask(connect())
    assert (result.actions == 1).all()
    import os

    assert result["pid"][0] != os.getpid()


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        ("policy", ValueError, "is not module:callable"),
        ("none.py:infer", FileNotFoundError, "none.py is not there"),
        (3, TypeError, "a int cannot be called"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(server, call, kind, says):
    with pytest.raises(kind, match=says):
        server.model("echo", call, actions=JOINTS, **WHAT)


@pytest.mark.parametrize("listed", ["models", "server"])
def test_a_manifest_may_come_from_a_file(site, connect, listed):
    from scene import manifest

    made = manifest(site.endpoint)
    made["models"][0]["engine"] = {"kind": "callback", "actions": JOINTS, "chunk": 5}
    made[listed] = made.pop("models")  # `server`, as older files call it
    server = tendon.Server(config=site.write("manifest.yaml", made))
    site.kept.callback(server.close)
    server.model("synthetic", echo)
    server.start()
    assert ask(connect(name="synthetic")).ok


def test_what_is_wrong_with_a_setting_is_named(site, server):
    with pytest.raises(tendon.Invalid, match="no model"):
        server.start()
    server.model("echo", echo, actions=JOINTS, chunk=0, **WHAT)
    with pytest.raises(tendon.Invalid, match="chunk: must be 1 to 4096"):
        server.start()
    other = tendon.Server(cluster="c")
    other.model("echo", echo, **WHAT)
    with pytest.raises(tendon.Invalid, match="missing: experiment"):
        other.start()


class Gate:
    """A model that holds each call until the test lets it go."""

    def __init__(self):
        self.begun, self.free = [], threading.Semaphore(0)

    def __call__(self, obs):
        if obs["client"] != "warm-up":
            self.begun.append(obs["client"])
            self.free.acquire()
        return echo(obs)


def order_of(server, gate, models, urgencies):
    """The first client runs while the others come to wait, in that order; then
    those are let go: in which order do they run?"""
    gate.begun.clear()

    def depth():
        return server.metrics.get_latest("queue_depth", {"model": "echo"})

    for waiting, (client, urgency) in enumerate(urgencies.items()):
        models[client].observe(state=STATE, urgency=urgency)
        wait_until(lambda: len(gate.begun) == 1, "the first runs")
        wait_until(lambda waiting=waiting: depth() == waiting, f"{client} waits")
    gate.free.release(len(urgencies))
    assert all(models[client].get_result(60_000).ok for client in urgencies)
    return gate.begun[1:]


def test_a_score_in_python_decides_and_costs_what_is_shown(server, connect):
    asked = []

    @tendon.register_policy("urgent_first")
    def score(request):
        asked.append(request.urgency)
        return request.urgency

    server.use_scheduler("model_deadline", policy="urgent_first")
    gate = Gate()
    serve(server, gate, max_inflight=1)
    urgencies = {"first": 0.5, "calm": 0.25, "urgent": 0.75}
    models = {client: connect(client) for client in urgencies}
    assert order_of(server, gate, models, urgencies) == ["urgent", "calm"]
    assert {0.25, 0.75} <= set(asked)
    spent = server.metrics.get_stats("score_ms")
    assert spent.count > 0 and spent.max > 0
    server.use_scheduler("priority_tiered")
    asked.clear()
    assert order_of(server, gate, models, urgencies) == ["calm", "urgent"]
    assert not asked
    with pytest.raises(ValueError, match="no policy 'first'"):
        server.use_scheduler("model_deadline", policy="first")
    with pytest.raises(tendon.Invalid, match="strategy"):
        server.use_scheduler("whoever")


def test_a_score_that_raises_goes_last_and_is_logged(server, connect):
    def score(request):
        return 1 / 0

    server.use_scheduler("model_deadline", policy=score)
    serve(server, echo)
    assert ask(connect()).ok
    assert [fault.where for fault in server.errors] == ["score"]


def test_numbers_are_reported_and_asked_for(server, connect):
    reported, events = [], []

    @server.on_metric
    def log(name, value, labels):
        reported.append((name, value, labels))
        raise RuntimeError("not today")

    server.on_event(events.append)
    serve(server, echo)
    model = connect()
    for _ in range(3):
        assert ask(model).ok
    labels = {"model": "echo", "client": "station-1"}

    def seen():
        return server.metrics.get_stats("inference_latency_ms", labels, 60)

    wait_until(lambda: seen().count == 3, "an answer is counted once it has left")
    stats = seen()
    assert 0 <= stats.min <= stats.p50 <= stats.p95 <= stats.max
    assert server.metrics.get_latest("active_clients", {"model": "echo"}) == 1
    assert server.metrics.get_latest("received") == 3
    wait_until(
        lambda: any(n == "inference_latency_ms" and v for n, v, _ in reported),
        "it is reported",
    )
    name, _, found = next(
        each for each in reported if each[0] == "inference_latency_ms"
    )
    assert found["model"] == "echo" and found["client"] == "station-1"
    wait_until(lambda: any(e["kind"] == "attached" for e in events), "so is this")
    assert [fault.where for fault in server.errors] == ["on_metric"]
    for wrong, says in (
        (lambda: server.metrics.get_stats("latency"), "latency"),
        (
            lambda: server.metrics.get_stats("inference_latency_ms", {"robot": "x"}),
            "rob",
        ),
        (lambda: server.metrics.get_stats("inference_latency_ms", None, 0), "window"),
    ):
        with pytest.raises((tendon.Error, ValueError), match=says):
            wrong()


def test_what_is_for_before_the_start_is_refused_after_it(server):
    serve(server, echo)
    for late in (
        server.start,
        lambda: server.model("other", echo, actions=JOINTS, **WHAT),
    ):
        with pytest.raises(tendon.Error, match="before the start"):
            late()


def test_a_client_is_told_while_the_model_blocks(server, connect):
    free = threading.Event()

    def slow(obs):
        if obs["task"] == "wait":
            free.wait(60)
        return echo(obs)

    serve(server, slow)
    model = connect()
    model.observe(state=STATE, task="wait")
    assert model.get_result(100) is None
    free.set()
    assert model.get_result(60_000).ok


def test_a_model_may_stop_its_server_and_nothing_else(server, connect):
    def curious(obs):
        if obs["task"] == "stop":
            for use in (server.close, lambda: server.metrics.get_latest("received")):
                with pytest.raises(RuntimeError):
                    use()
            server.stop()
        return echo(obs)

    serve(server, curious)
    assert ask(connect(), task="stop").ok
    assert server.wait(60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_ends(site, number):
    script = Script(
        site,
        "serve",
        """
        import logging, sys
        import tendon
        logging.basicConfig(level="INFO")
        server = tendon.Server(sys.argv[1], cluster="c", experiment="e")
        server.model("m", lambda obs: obs["state"][None], version="v", application="a",
                     actions=["x"], chunk=1)
        server.on_event(lambda event: print(event["kind"], event["text"]))
        server.run()
        print("after")
        """,
        site.endpoint,
    )
    script.wait_line("state ready")
    assert script.stop(number) == 0, script.text()
    assert script.lines("after")


def is_probe(obs):
    """What a model is warmed up with."""
    return obs["seq"] == 0


def test_an_asynchronous_function_runs_as_often_at_a_time_as_it_may(server, site):
    here, met = [], asyncio.Event()

    async def three_meet(obs):
        if not is_probe(obs):
            here.append(obs["seq"])
            if len(here) == 3:
                met.set()
            await asyncio.wait_for(met.wait(), 60)
        return echo(obs)

    serve(server, three_meet, max_inflight=3)
    connection = tendon.Connection(site.endpoint, "planner", every=True, **WHO)
    site.kept.callback(connection.close)
    model = connection.model("echo", **WHAT)
    model.wait(60_000)
    for _ in range(3):
        model.observe(state=STATE)
    found = [model.get_result(60_000) for _ in range(3)]
    assert sorted(each.seq for each in found) == [1, 2, 3]
    assert [each.error for each in found] == [None] * 3


def test_two_models_on_a_processor_run_side_by_side(server, site):
    meeting = threading.Barrier(2)

    def meet(obs):
        if not is_probe(obs):
            meeting.wait(60)
        return echo(obs)

    server.model("one", meet, actions=JOINTS, chunk=5, **WHAT)
    server.model("two", meet, actions=JOINTS, chunk=5, **WHAT)
    server.start()
    connection = tendon.Connection(site.endpoint, "planner", **WHO)
    site.kept.callback(connection.close)
    models = [connection.model(name, **WHAT) for name in ("one", "two")]
    for model in models:
        model.wait(60_000)
        model.observe(state=STATE)
    assert [model.get_result(60_000).error for model in models] == [None] * 2


def test_every_observation_is_answered(server, site):
    serve(server, echo)
    connection = tendon.Connection(site.endpoint, "labels", every=True, **WHO)
    site.kept.callback(connection.close)
    model = connection.model("echo", **WHAT)
    for i in range(100):
        model.observe(state=STATE + i)
    for _ in range(100):
        result = model.get_result(60_000)
        assert result.error is None
        assert (result.actions[0] == STATE + (result.seq - 1)).all()
        assert not result.superseded
    assert model.report()["answered"] == 100


def test_a_score_sees_who_asks_and_which_model(server, connect):
    asked = []

    def score(request):
        asked.append((request.client, request.model))
        return 1.0

    serve(server, echo)
    server.use_scheduler(policy=score)
    assert ask(connect()).error is None
    assert ("station-1", "echo") in asked


def test_a_score_that_raises_is_told_once_and_counted(server, connect, caplog):
    def score(request):
        raise ValueError("no idea")

    serve(server, echo)
    server.use_scheduler(policy=score)
    model = connect()
    for _ in range(3):
        assert ask(model).error is None
    (raised,) = [each for each in server.errors if each.where == "score"]
    assert raised.count >= 3
    assert server.metrics.get_latest("score_not_finite") == raised.count
    assert caplog.text.count("score failed: ValueError: no idea") == 1


def test_a_picture_of_a_camera_that_nobody_declared(server, connect):
    seen = []

    def look(obs):
        seen.append({name: obs[name] for name in ("top", "side") if name in obs})
        return echo(obs)

    server.model("blind", look, actions=JOINTS, chunk=5, **WHAT)
    server.model(
        "eyed", look, actions=JOINTS, chunk=5, cameras={"top": (48, 64)}, **WHAT
    )
    server.start()
    # One that declares none takes what comes, as it comes.
    assert ask(connect(name="blind"), side=FRAME).error is None
    assert (seen[-1]["side"] == FRAME).all()
    # One that declares some refuses another by its name.
    told = ask(connect("station-2", "eyed"), top=FRAME, side=FRAME)
    assert "images.side: model eyed has no such camera" in str(told.error)


def test_a_function_that_hangs_is_an_event_and_a_state(server, connect):
    events, hangs, goes_on = [], threading.Event(), threading.Event()

    def sleepy(obs):
        if not is_probe(obs):
            hangs.set()
            goes_on.wait(60)
        return echo(obs)

    server.on_event(events.append)
    serve(server, sleepy, engine={"answer_s": 0.05})
    model = connect()
    model.observe(state=STATE)
    assert hangs.wait(60)
    wait_until(lambda: server.state("echo") == "degraded", "degraded")
    wait_until(
        lambda: any(event["kind"] == "engine_died" for event in events), "its event"
    )
    goes_on.set()
    assert model.get_result(60_000).error is None
    wait_until(lambda: server.state("echo") == "ready", "ready")
    assert ask(model).error is None


@pytest.fixture
def gated(site):
    """A server with a queue of one, whose function waits at a gate while that is
    closed and fails when it is told to; and what it has measured."""

    class Gated:
        def __init__(self):
            self.open, self.fails = threading.Event(), []
            self.open.set()
            queue = {"size": 1, "ttl_ms": 600_000, "retries": 1, "backoff_ms": 0}
            self.server = tendon.Server(
                site.endpoint, config={"scheduling": {"queue": queue}}, **WHO
            )
            site.kept.callback(self.server.close)
            site.kept.callback(self.open.set)
            serve(self.server, self.call)

        def call(self, obs):
            if not is_probe(obs):
                self.open.wait(60)
                if self.fails:
                    raise self.fails.pop()
            return echo(obs)

        def connect(self, client, **settings):
            connection = tendon.Connection(site.endpoint, client, **settings, **WHO)
            site.kept.callback(connection.close)
            model = connection.model("echo", **WHAT)
            model.wait(60_000)
            return model

        def now(self, name, **labels):
            return self.server.metrics.get_latest(name, labels)

        def reads(self, name, value):
            wait_until(lambda: self.now(name) == value, f"{name} is {value}")

    return Gated()


def test_each_spread_is_written_by_an_answer(gated):
    model = gated.connect("one")
    assert ask(model, ages={"state": 0.25}).error is None
    for name in (
        "inference_latency_ms",
        "scheduling_wait_ms",
        "e2e_latency_ms",
        "payload_size_bytes",
        "batch_size",
        "observation_staleness_ms",
    ):
        spread = functools.partial(gated.server.metrics.get_stats, name)
        wait_until(lambda get=spread: get().count == 1, f"one {name}")
    assert gated.now("observation_staleness_ms", client="one") >= 250
    assert gated.now("payload_size_bytes") > STATE.nbytes
    assert gated.now("batch_size") == 1


def test_gauges_say_who_is_here_and_what_waits(gated):
    model = gated.connect("one")
    gated.reads("active_clients", 1)
    gated.open.clear()
    for _ in range(2):
        model.observe(state=STATE)
    gated.reads("queue_depth", 1)
    gated.open.set()
    gated.reads("queue_depth", 0)
    model.close()
    gated.reads("client_disconnected", 1)
    gated.reads("active_clients", 0)


def test_a_full_queue_and_a_time_to_live_are_counted(gated):
    model = gated.connect("one", every=True)
    gated.open.clear()
    for _ in range(4):
        model.observe(state=STATE)
    gated.reads("queue_full_drops", 2)
    assert [model.get_result(60_000).error.code for _ in range(2)] == ["FULL"] * 2
    gated.open.set()
    assert [model.get_result(60_000).error for _ in range(2)] == [None] * 2
    gated.open.clear()
    gated.server.use_scheduler(queue={"size": 1, "ttl_ms": 1})
    for _ in range(2):
        model.observe(state=STATE)
    gated.reads("requests_expired", 1)


def test_failures_are_counted_with_their_retries(gated):
    model = gated.connect("one")
    gated.fails = [ValueError("once")]
    assert ask(model).error is None
    gated.reads("dispatch_retries", 1)
    gated.fails = [ValueError("twice"), ValueError("again")]
    assert ask(model).error is not None
    gated.reads("dispatch_retries", 2)
    gated.reads("dispatch_errors", 1)
    assert gated.now("dispatch_errors", error="INTERNAL") == 1
    assert ask(model, state=STATE[:1]).error is not None
    gated.reads("observation_errors", 1)


def test_a_snapshot_has_every_number_of_the_page(gated):
    page = pathlib.Path(__file__).parents[2] / "docs/metrics.md"
    rows = re.findall(r"(?m)^\| `(\w+)` \| (spread|counter|gauge) ", page.read_text())
    model = gated.connect("one")
    assert ask(model).error is None
    wait_until(lambda: gated.server.metrics.snapshot()["batches"] == 1, "it is counted")
    seen = gated.server.metrics.snapshot()
    assert set(seen) == {name for name, _ in rows} - {"state", "received"}
    assert seen["e2e_latency_ms"].count == 1
    assert seen["active_clients"] == 1


def test_who_listens_after_the_start_is_told(server, connect):
    serve(server, echo)
    told, events = [], []
    server.on_metric(lambda name, value, labels: told.append(name))
    server.on_event(lambda event: events.append(event["kind"]))
    assert ask(connect()).error is None
    wait_until(lambda: "e2e_latency_ms" in told, "a number")
    wait_until(lambda: "attached" in events, "an event")
