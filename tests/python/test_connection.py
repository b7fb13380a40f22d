# SPDX-License-Identifier: Apache-2.0
"""tendon.Connection and tendon.aio on a real server."""

import asyncio
import gc
import signal
import threading

import numpy as np
import pytest
import tendon
import tendon.aio
from scene import CAMERAS, IMAGES, JOINTS, ROUTE, ROWS
from scripts import Script
from tendon_process import wait_until

CLUSTER, EXPERIMENT, MODEL, VERSION, APPLICATION = ROUTE.split("/")
STATE = np.arange(6, dtype=np.float32)
FRAME = np.zeros((CAMERAS["front"]["height"], CAMERAS["front"]["width"], 3), np.uint8)
WHO = {"cluster": CLUSTER, "experiment": EXPERIMENT}
WHAT = {"version": VERSION, "application": APPLICATION}


@pytest.fixture
def connect(site):
    def begin(client="station-1", **changes):
        made = tendon.Connection(site.endpoint, client, "bench", **WHO | changes)
        site.kept.callback(made.close)
        return made

    return begin


@pytest.fixture
def model(site, connect):
    site.serve()
    made = connect().model(MODEL, **WHAT)
    made.wait(60_000)
    return made


def ask(model, **observation):
    seq = model.observe(**{"state": STATE, "front": FRAME} | observation)
    result = model.get_result(60_000)
    assert result.seq == seq
    return result


def test_an_observation_is_answered(model):
    result = ask(model, task="wave", urgency=0.5, steps_remaining=3, priority=0)
    assert result.ok and result.outcome == "answered" and result.kind == "chunk"
    assert result.actions.shape == (ROWS, len(JOINTS))
    assert result.actions.dtype == np.float32
    assert np.isfinite(result["actions"]).all()
    assert result.server == "gpu-1" and result.round_trip_ms > 0
    assert model.state == "ATTACHED"
    assert model.report()["answered"] == 1


@pytest.mark.parametrize("front", [IMAGES["front"], tendon.Encoded(IMAGES["front"])])
def test_pictures_may_come_encoded(model, front):
    assert ask(model, front=front).ok


@pytest.mark.parametrize(
    "front",
    [np.zeros((48, 128, 3), np.uint8)[:, ::2], np.asfortranarray(FRAME), FRAME[::-1]],
)
def test_arrays_may_lie_as_they_like(model, front):
    assert ask(model, front=front).ok


def test_answers_are_views_that_outlive_all(model, connect):
    result = ask(model)
    actions = result.actions
    copy = actions.copy()
    assert not actions.flags.owndata and not actions.flags.writeable
    del result
    model.close()
    gc.collect()
    assert (actions == copy).all()


def test_there_is_nothing_in_time(model):
    assert model.get_result(0) is None
    assert model.get_result(5) is None


def test_an_error_names_what_is_wrong(model):
    result = ask(model, state=STATE[:3])
    assert not result.ok and result.outcome == "error"
    with pytest.raises(tendon.Error, match="state"):
        _ = result.actions
    assert ask(model).ok


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"state": [[1, 2]]}, ValueError, "state: must be numbers in a row"),
        ({"state": "here"}, TypeError, "state: is <U4"),
        ({"force": np.zeros(2, np.complex64)}, TypeError, "force: is complex64"),
        ({"force": np.zeros(2, np.uint32)}, TypeError, "force: is uint32; sent are"),
        ({"force": object()}, TypeError, "force: is object"),
        ({"force": np.zeros((1,) * 9)}, ValueError, "force: has 9 sides"),
        ({"front": b"not a picture"}, ValueError, "front: these bytes are neither"),
        ({"images": {"front": np.zeros(3)}}, TypeError, "front: a picture is uint8"),
        ({"urgency": 2.0}, tendon.Invalid, "urgency"),
        ({"priority": -1}, ValueError, "a number of the observation: "),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(model, given, kind, says):
    with pytest.raises(kind, match=says):
        model.observe(**{"state": STATE, "front": FRAME} | given)
    assert ask(model).ok


def test_the_newest_wins(model):
    seqs = [model.observe(state=STATE, front=FRAME) for _ in range(20)]
    ended = []
    while seqs[-1] not in ended:
        result = model.get_result(60_000)
        ended += [*result.superseded, result.seq]
    assert sorted(ended) == seqs


def test_nobody_answers_for_another_model(site, connect):
    site.serve()
    with pytest.raises(tendon.Error) as raised:
        connect().model("another", **WHAT).wait(3000)
    assert raised.value.code == "NOTFOUND"


def test_what_is_missing_is_named(monkeypatch, site):
    with pytest.raises(tendon.Invalid, match="client_id: .* TENDON_CLIENT_ID"):
        tendon.Connection(site.endpoint, **WHO)
    monkeypatch.setenv("TENDON_SERVER", site.endpoint)
    monkeypatch.setenv("TENDON_CLIENT_ID", "station-1")
    (site.folder / "tendon.yaml").write_text(f"cluster: {CLUSTER}\nexperiment: e2e\n")
    monkeypatch.chdir(site.folder)
    with (
        tendon.Connection() as connection,
        pytest.raises(tendon.Invalid, match="missing: version: "),
    ):
        connection.model(MODEL, application="wave")


def test_an_id_that_is_none_is_refused(connect):
    with pytest.raises(tendon.Invalid, match="client"):
        connect("station 1/2")


def test_what_is_closed_is_not_used(model, connect):
    model.close()
    model.close()
    for use in (lambda: model.observe(state=STATE), lambda: model.get_result(0)):
        with pytest.raises(tendon.Closed):
            use()
    assert model.state == "STOPPED"
    connection = connect("station-2")
    other = connection.model(MODEL, **WHAT)
    connection.close()
    with pytest.raises(tendon.Closed):
        other.observe(state=STATE)
    with pytest.raises(tendon.Closed):
        connection.model(MODEL, **WHAT)


def test_close_wakes_who_waits(model):
    raised = []

    def wait():
        with pytest.raises(tendon.Closed) as caught:
            model.get_result()
        raised.append(caught)

    waiting = threading.Thread(target=wait)
    waiting.start()
    model.close()
    waiting.join(60)
    assert raised


def test_a_server_that_comes_late_is_found(site, connect):
    model = connect().model(MODEL, limit_ms=60_000, **WHAT)
    seq = model.observe(state=STATE, front=FRAME)
    assert model.get_result(100) is None
    site.serve()
    assert model.get_result(60_000).seq == seq


def test_ctrl_c_reaches_who_waits(site):
    script = Script(
        site,
        "waits",
        """
        import sys, tendon
        model = tendon.Connection(sys.argv[1], "s", cluster="c", experiment="e").model(
            "m", version="v", application="a")
        print("waits")
        model.get_result()
        """,
        site.endpoint,
    )
    script.wait_line("waits")
    script.stop(signal.SIGINT)
    assert script.lines("KeyboardInterrupt")


def test_asyncio_asks_and_waits(site):
    site.serve()

    async def main():
        connection = tendon.aio.Connection(site.endpoint, "station-1", **WHO)
        async with connection, connection.model(MODEL, **WHAT) as model:
            await model.wait(60_000)
            assert await model.get_result(5) is None
            for _ in range(3):
                seq = await model.observe(state=STATE, front=FRAME)
                result = await model.get_result(60_000)
                assert result.seq == seq and result.ok

    asyncio.run(main())


def test_tasks_share_a_model_and_none_is_lost(site):
    site.serve()

    async def main():
        async with tendon.aio.Connection(site.endpoint, "s", **WHO) as connection:
            model = connection.model(MODEL, **WHAT)
            await model.wait(60_000)
            tasks = [asyncio.create_task(model.get_result()) for _ in range(4)]
            await asyncio.sleep(0)
            tasks.pop().cancel()
            seen = set()
            for _ in range(3):
                await model.observe(state=STATE, front=FRAME)
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                seen |= {task.result().seq for task in done}
                tasks = [task for task in tasks if task not in done]
            assert len(seen) == 3

    asyncio.run(main())


def test_a_task_that_waits_is_told_of_the_close(site):
    async def main():
        connection = tendon.aio.Connection(site.endpoint, "s", **WHO)
        model = connection.model(MODEL, **WHAT)
        waits = asyncio.create_task(model.get_result())
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(tendon.Closed):
            await waits

    asyncio.run(main())


# The names of the threads that a connection brings.
THREADS = """
    import pathlib
    import sys

    import tendon

    server, cluster, experiment, model, version, application = sys.argv[1:]
    who = {"cluster": cluster, "experiment": experiment}
    with tendon.Connection(server, "station-1", **who) as connection:
        connection.model(model, version=version, application=application).wait(60_000)
        names = (f.read_text().strip() for f in pathlib.Path("/proc/self/task").glob("*/comm"))
        print("threads", *names)
"""


@pytest.mark.parametrize(
    ("given", "hands_over"), [({}, False), ({"ZENOH_RUNTIME": "()"}, True)]
)
def test_who_reads_the_socket_calls_back_unless_the_user_says(site, given, hands_over):
    site.serve()
    script = Script(site, "threads", THREADS, site.endpoint, *ROUTE.split("/"), **given)
    assert ("net-0" in script.wait_line("threads").split()) is hands_over


def test_a_thousand_answers_leave_no_memory_behind(model):
    import resource

    def grown():
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(100):
        ask(model)
    before = grown()
    for _ in range(1000):
        ask(model)
    wait_until(lambda: model.report()["open"] == 0, "all have ended")
    assert grown() - before < 16 * 1024  # KiB; an observation has 9 KiB of picture
