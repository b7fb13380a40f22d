# SPDX-License-Identifier: Apache-2.0
"""What must not happen, happens: a line for the person, a counter, and the others
keep running. One server and one healthy robot go through all of it."""

import contextlib
import pathlib
import types
import urllib.request

import msgpack
import numpy as np
import pytest
import zenoh
from outside_client import Client, open_session, tensor
from outside_server import Server
from scene import CAMERAS, IMAGES, JOINTS, ROUTE, ROWS, STATUS, picture
from tendon_process import free_endpoint, run, wait_until

GOLDEN = pathlib.Path(__file__).parent / "golden"
LISTED = ["healthy", "second", "client-1"]

# Messages that announce much and bring nothing.
BIN_OF_2G = b"\xc6\x7f\xff\xff\xff"
ARRAY_OF_2G = b"\xdd\x7f\xff\xff\xff"
MAP_OF_2G = b"\xdf\x7f\xff\xff\xff"
TEXT_OF_2G = b"\xdb\x7f\xff\xff\xff"
HUGE = [
    BIN_OF_2G,
    ARRAY_OF_2G,
    MAP_OF_2G,
    TEXT_OF_2G,
    b"\x81\xabclient_uuid" + TEXT_OF_2G,
    b"\x81\xb0expected_cameras" + MAP_OF_2G,
    b"\x81\xacaction_names" + ARRAY_OF_2G,
    b"\x81\xa6images" + BIN_OF_2G,
    b"\x82\xa6seq_id\x01\xa5state\x81\xa4data" + BIN_OF_2G,
    b"\x82\xa6seq_id\x01\xa5state\x81\xa5shape" + ARRAY_OF_2G,
    b"\x82\xb2response_to_seq_id\x01\xaasuperseded" + ARRAY_OF_2G,
    b"\x82\xb2response_to_seq_id\x01\xa7actions\x81\xa4data" + BIN_OF_2G,
]
HUGE = [message.ljust(40, b"\0") for message in HUGE]
assert {len(message) for message in HUGE} == {40}
ROUNDS = 200
HUGE_PNG = (GOLDEN / "pictures" / "huge.png").read_bytes()


@pytest.fixture(scope="module")
def world(module_site):
    site = module_site
    server = site.serve(
        clients=[{"client_uuid": name} for name in LISTED], accept_unknown=False
    )
    robot = site.robot("healthy")
    watch = site.watch()
    watch.wait_state("gpu-1", "ready")
    watch.wait_moving("healthy")
    session = site.keep(open_session(site.endpoint))
    return types.SimpleNamespace(
        site=site, server=server, robot=robot, watch=watch, session=session
    )


@pytest.fixture(autouse=True)
def others_keep_running(world):
    yield
    world.watch.wait_moving("healthy")
    assert world.server.is_running() and world.robot.is_running()


@pytest.fixture
def client(world):
    with Client(world.site.endpoint, ROUTE, "client-1") as made:
        # The one of the test before may still be leaving.
        wait_until(lambda: made.status()[0]["clients"] == 1, "the healthy one alone")
        made.attach("gpu-1")
        yield made


def refused(robot):
    """The last line of a robot that gave up."""
    assert robot.ended() == 1
    return robot.text().splitlines()[-1]


def hold_still(obs):
    """The policy of an outside server: stay where you are."""
    return np.zeros((ROWS, len(JOINTS)))


# Robots that do not fit.


def test_robot_of_another_version_waits_and_says_for_what(world):
    robot = world.site.robot("second", model_version="v2")
    robot.wait_line("edge: waiting: no server answers for synthetic/v2/wave")
    watch = world.site.watch(route=ROUTE.replace("/v1/", "/v2/"))
    watch.wait_count("second", "status_nobody", 1)
    assert robot.stop() == 0


def test_robot_that_is_not_listed_is_refused_by_name(world):
    before = world.watch.count("gpu-1", "refused_attach")
    robot = world.site.robot("stranger")
    assert refused(robot) == (
        "tendon robot: client stranger is not in the manifest of server gpu-1: "
        "list it under clients, or set accept_unknown"
    )
    world.server.wait_line("refused to attach: client stranger is not")
    world.watch.wait_count("gpu-1", "refused_attach", before + 1)


def test_second_robot_of_the_same_name_is_refused(world):
    before = world.watch.count("gpu-1", "refused_attach")
    elsewhere = world.site.folder / "elsewhere"
    robot = world.site.robot("healthy", folder=elsewhere)
    line = refused(robot)
    assert line.startswith("tendon robot: client healthy is already running (boot ")
    assert line.endswith("): stop it or choose another client_uuid")
    world.watch.wait_count("gpu-1", "refused_attach", before + 1)


MISMATCHES = {
    "the order of the joints": (
        {"robot": {"joints": dict(reversed(JOINTS.items()))}},
        'action_names[0]: this robot has "gripper", the server wants "waist"; '
        "the order counts",
    ),
    "the kind of a joint": (
        {"robot": {"joints": JOINTS | {"gripper": {"kind": "linear"}}}},
        "action_names[5] gripper: this robot has kind linear, the server wants hold",
    ),
    "a joint less": (
        {"robot": {"joints": dict(list(JOINTS.items())[:5])}},
        "action_dim: this robot has 5, the server wants 6",
    ),
    "the size of a camera": (
        {"robot": {"cameras": {"front": {"height": 32, "width": 64}}}},
        "expected_cameras.front: this robot has 32x64, the server wants 48x64; "
        "a picture is never made larger",
    ),
    "no such camera": (
        {"robot": {"cameras": {"rear": CAMERAS["front"]}}},
        "expected_cameras.front: this robot has no such camera, the server wants 48x64",
    ),
    "the rate": (
        {"fps": 30},
        "step_period_us: this robot has 33333, the server wants 10000",
    ),
    "the length of a chunk": (
        {"actions_per_chunk": 50},
        "max_actions_per_chunk: this robot plays 50 a chunk, the server gives 20",
    ),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_mismatch_is_named_with_both_values(world, case):
    changes, line = MISMATCHES[case]
    robot = world.site.robot("second", **changes)
    assert refused(robot) == f"tendon robot: {line}"


def test_server_that_wants_more_than_a_robot_sends_is_refused(world):
    route = ROUTE.replace("/v1/", "/v5/")
    features = {"force": {"dtype": "<f4", "shape": [2, 3]}}
    greedy = STATUS | {"model_version": "v5", "observation_features": features}
    watch = world.site.watch(route=route)
    with Server(world.site.endpoint, route, greedy, hold_still):
        robot = world.site.robot("second", model_version="v5")
        assert refused(robot) == (
            "tendon robot: observation_features.force: this robot has none, the "
            "server wants 2x3 of <f4"
        )
    watch.wait_count("second", "status_mismatch", 1)


# Servers that claim what is not theirs, or speak another language.


def test_answer_of_a_foreign_server_is_dropped(world):
    foreign = STATUS | {"server_id": "foreign"}
    before = world.watch.count("healthy", "foreign_server")
    with Server(world.site.endpoint, ROUTE, foreign, hold_still) as server:
        server.subscribe("healthy")  # without having been asked
        world.watch.wait_count("healthy", "foreign_server", before + 5)
        world.watch.wait_moving("healthy")
    world.robot.wait_line("answer dropped: foreign_server: foreign")
    assert len(world.robot.lines("attached to server")) == 1


def test_server_of_a_newer_major_version_is_refused(world):
    route = ROUTE.replace("/v1/", "/v9/")
    newer = STATUS | {"model_version": "v9", "schema": 2}
    watch = world.site.watch(route=route)
    with Server(world.site.endpoint, route, newer, hold_still):
        robot = world.site.robot("second", model_version="v9")
        assert refused(robot) == (
            "tendon robot: status: schema 2 is newer than 1, which this version "
            "speaks: update Tendon"
        )
    assert robot.lines("status passed over: newer: status: schema 2 is newer than 1")
    watch.wait_count("second", "status_newer", 1)


def test_chunk_that_is_not_finite_is_refused_whole(world):
    route = ROUTE.replace("/v1/", "/v8/")
    sane = STATUS | {"model_version": "v8"}
    chunk = hold_still(None)

    with Server(world.site.endpoint, route, sane, lambda obs: chunk):
        watch = world.site.watch(route=route)
        robot = world.site.robot("second", model_version="v8")
        watch.wait_moving("second")
        chunk[ROWS - 1, 0] = np.nan
        watch.wait_more("second", "malformed", 2)
        watch.wait_more("second", "starved")
        fresh = watch.count("second", "fresh")
        watch.wait_more("second", "starved", 10)
        assert watch.count("second", "fresh") == fresh
        robot.wait_line("answer dropped: malformed: action: actions: ")
        chunk[:] = 0
        watch.wait_moving("second")
        assert robot.stop() == 0


# Two of one kind in one place.


def test_one_of_two_servers_of_one_name_takes_a_robot(site):
    """Two that could not see each other when they were started."""
    site.router()
    watch = site.watch()
    ours = site.serve(mode="client")
    namesake = STATUS | {"server_id": "gpu-1"}
    theirs = site.keep(Server(site.endpoint, ROUTE, namesake, hold_still))
    robot = site.robot()
    watch.wait_moving("robot-1")
    took = [bool(ours.lines("robot-1 attached")), "robot-1" in theirs.clients]
    assert took.count(True) == 1
    assert watch.count("robot-1", "unknown_seq") == 0

    # The other one is no reason to worry while it is there, nor when it goes.
    ends = [ours.kill, theirs.session.close]
    ends[took.index(False)]()
    watch.wait_moving("robot-1")
    assert watch.count("robot-1", "entered_reconnecting") == 0
    ends[took.index(True)]()
    robot.wait_line("server gpu-1 is gone: holding, looking for one")
    site.serve(mode="client")
    watch.wait_moving("robot-1")


def test_port_in_use_is_named(world):
    endpoint = free_endpoint()
    first = world.site.serve(endpoint, name="first")
    done = run("serve", world.site.folder / "first.yaml")
    assert done.returncode == 3
    assert endpoint in done.stderr.splitlines()[-1]
    done = run("router", endpoint)
    assert done.returncode == 1
    assert endpoint in done.stderr.splitlines()[-1]
    assert first.stop() == 0


def test_no_route_is_said_once(world):
    endpoint, page = free_endpoint(), free_endpoint().removeprefix("tcp/")
    port = int(page.split(":")[1])
    robot = world.site.robot("second", endpoint=endpoint, prometheus_port=port)
    robot.wait_line("waiting: no server answers")
    with urllib.request.urlopen(f"http://{page}/metrics") as numbers:
        nobody = b'\ntendon_edge_status_unused_total{why="nobody"} '
        assert int(numbers.read().split(nobody)[1].split()[0]) > 0
    robot.wait_line(f"net: nobody answers at {endpoint} yet")
    world.watch.wait_more("healthy", "fresh", 100)  # and the robot goes on trying
    assert len(robot.lines("waiting: ")) == 1
    assert len(robot.lines(f"net: nobody answers at {endpoint} yet")) == 1
    assert robot.stop() == 0


# Observations that are not what they should be.


GOOD = {"state": tensor(np.zeros(6)), "images": IMAGES}
WRONG = {  # what it is: how it is counted, the error's code and text, the fields
    "a JPEG that is not one": (
        *("refused", "FORMAT", "images.front: not a JPEG"),
        {"images": {"front": b"\xff\xd8 not a picture"}},
    ),
    "a JPEG of another size": (
        *("refused", "MISMATCH", "images.front: is 64x48, the model wants 48x64"),
        {"images": {"front": picture(64, 48)}},
    ),
    "a PNG that is not one": (
        *("refused", "FORMAT", "images.front: not a PNG"),
        {"images": {"front": {"codec": "png", "data": IMAGES["front"]}}},
    ),
    "a PNG of another size": (
        *("refused", "MISMATCH", "images.front: is 64x48, the model wants 48x64"),
        {"images": {"front": {"codec": "png", "data": picture(64, 48, "png")}}},
    ),
    "a PNG of 30 GB in 65 bytes": (
        *("refused", "LIMIT", "images.front: a picture of 100000 x 100000"),
        {"images": {"front": {"codec": "png", "data": HUGE_PNG}}},
    ),
    "no picture": (
        *("refused", "MISMATCH", "images.front: missing, the model wants 48x64"),
        {"images": {}},
    ),
    "a state of another shape": (
        *("refused", "MISMATCH", "state: is rank 1, 7 x <f4, the model wants 6 x <f4"),
        {"state": tensor(np.zeros(7))},
    ),
    "a state of two rows": (
        *("refused", "MISMATCH", "state: is rank 2"),
        {"state": tensor(np.zeros((2, 6)))},
    ),
    "a state that is not finite": (
        *("malformed", "FORMAT", "obs: state: "),
        {"state": tensor([0, 0, np.nan, 0, 0, 0])},
    ),
    "fewer bytes than its shape says": (
        *("malformed", "FORMAT", "obs: state: shape 2x6 of <f4 needs 48 bytes, got 24"),
        {"state": tensor(np.zeros(6)) | {"shape": [2, 6]}},
    ),
    "the name of somebody else": (
        *("refused", "MISMATCH", 'client_uuid: is "healthy" on the key of "client-1"'),
        {"client_uuid": "healthy"},
    ),
    "a newer schema": (
        *("malformed", "VERSION", "obs: schema 2 is newer than 1"),
        {"schema": 2},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_sender_is_told_what_is_wrong(world, client, case):
    outcome, code, text, fields = WRONG[case]
    before = world.watch.count("gpu-1", outcome)
    seq = client.send(**(GOOD | fields))
    answer = client.receive()
    assert answer["response_to_seq_id"] == seq
    assert answer["error"]["code"] == code
    assert answer["error"]["text"].startswith(text)
    assert "actions" not in answer
    world.server.wait_line(f"client-1: {outcome}: {text}")
    world.watch.wait_count("gpu-1", outcome, before + 1)

    # And the next one is as good as any.
    client.send(**GOOD)
    assert "actions" in client.receive()


# Bytes that mean nothing.


def put(world, key, payload):
    world.session.put(
        f"{ROUTE}/{key}", payload, congestion_control=zenoh.CongestionControl.BLOCK
    )


def query(world, payload):
    return list(world.session.get(f"{ROUTE}/status", payload=payload, timeout=10))


def sums_agree(world):
    """Every observation has ended under one name, or is on its way."""
    counters = world.watch.newest["gpu-1"]["counters"]
    names = "waiting running answered failed superseded refused malformed"
    names += " old_boot old_episode old_seq departed"
    return counters["received"] == sum(counters[name] for name in names.split())


def nonsense(kind, count):
    """Random bytes, and real messages with some of their bytes changed."""
    rng = np.random.default_rng(7)
    real = [path.read_bytes() for path in sorted(GOLDEN.glob(f"{kind}_*.msgpack"))]
    for i in range(count):
        if i % 2:
            yield rng.bytes(rng.integers(0, 300))
        else:
            message = bytearray(real[i // 2 % len(real)])
            for at in rng.integers(0, len(message), 8):
                message[at] = rng.integers(0, 256)
            yield bytes(message)


def test_random_bytes_as_observations(world):
    before = dict(world.watch.newest["gpu-1"]["counters"])
    for payload in nonsense("obs", 4000):
        put(world, "healthy/obs", payload)
    world.watch.wait_count("gpu-1", "received", before["received"] + 4000)
    world.watch.wait_count("gpu-1", "malformed", before["malformed"] + 500)
    assert sums_agree(world)
    world.server.wait_line("healthy: malformed: ")


def test_random_bytes_as_actions(world):
    dropped = ["malformed", "foreign_server", "inbox_full"]

    def count():
        return sum(world.watch.count("healthy", name) for name in dropped)

    before, malformed = count(), world.watch.count("healthy", "malformed")
    for payload in nonsense("action", 4000):
        put(world, "healthy/action", payload)
    wait_until(lambda: count() >= before + 4000, "all of it is counted")
    assert world.watch.count("healthy", "malformed") > malformed
    world.robot.wait_line("answer dropped: malformed: ")
    assert len(world.robot.lines("attached to server")) == 1


def test_random_bytes_as_resets(world):
    def count():
        names = ("bad_resets", "resets_unread")
        return sum(world.watch.count("gpu-1", name) for name in names)

    before, bad = count(), world.watch.count("gpu-1", "bad_resets")
    for payload in nonsense("reset", 2000):
        put(world, "healthy/reset", payload)
    wait_until(lambda: count() >= before + 2000, "all of it is counted")
    assert count() == before + 2000
    assert world.watch.count("gpu-1", "bad_resets") > bad
    world.server.wait_line("healthy: reset: ")


@contextlib.contextmanager
def costs_nothing(*processes):
    """What is done in here takes no memory of theirs."""
    before = {process: process.rss_bytes() for process in processes}
    yield
    for process, rss in before.items():
        assert process.rss_bytes() - rss < 32 << 20


def complaints(world):
    """What either has counted of what it did not like."""
    return {
        (source, name): world.watch.count(source, name)
        for source, names in {
            "gpu-1": ["malformed", "refused", "bad_queries", "bad_tokens"],
            "healthy": ["malformed", "foreign_server", "inbox_full"],
        }.items()
        for name in names
    }


def test_random_bytes_on_topics_that_nobody_reads(world):
    before = complaints(world)
    with costs_nothing(world.server, world.robot):
        for topic, kind in (("healthy/grant", "grant"), ("healthy/metrics", "metrics")):
            for payload in nonsense(kind, 1000):
                put(world, topic, payload)
        for payload in nonsense("metrics", 1000):
            put(world, "metrics", payload)
        assert len(query(world, None)) == 1  # behind all of it
        world.watch.wait_more("gpu-1", "received")
        world.watch.wait_moving("healthy")
    assert complaints(world) == before


def test_random_bytes_as_a_status_query(world):
    before = world.watch.count("gpu-1", "bad_queries")
    for payload in nonsense("attach", 200):
        query(world, payload)
    world.watch.wait_count("gpu-1", "bad_queries", before + 50)
    world.server.wait_line("bad attach: ")
    assert len(world.server.lines("bad attach: ")) < 10  # a flood fills no log
    assert len(query(world, None)) == 1


def test_random_bytes_as_a_status(world):
    """A robot that looks for its server gets nonsense from another."""
    route = ROUTE.replace("/v1/", "/v7/")
    replies = nonsense("status", 1_000_000)

    def on_query(query):
        query.reply(f"{route}/status", next(replies))

    queryable = world.session.declare_queryable(f"{route}/status", on_query)
    robot = world.site.robot("second", model_version="v7")
    robot.wait_line("waiting: status: ")
    watch = world.site.watch(route=route)
    watch.wait_count("second", "status_unreadable", 1)
    queryable.undeclare()
    assert robot.stop() == 0


class Crowded(Server):
    """Strangers answer on its key too, and before it does."""

    def __init__(self, *args):
        self.strangers = nonsense("status", 1_000_000)
        super().__init__(*args)

    def on_query(self, query):
        newer = msgpack.packb(self.status | {"server_id": "newer", "schema": 2})
        for reply in (newer, b"\xc1", next(self.strangers)):
            query.reply(f"{self.route}/status", reply)
        query.reply_err(b"I would rather not")
        super().on_query(query)


def test_strangers_who_answer_first_keep_no_robot_out(world):
    route = ROUTE.replace("/v1/", "/v6/")
    sane = STATUS | {"model_version": "v6"}
    with Crowded(world.site.endpoint, route, sane, hold_still):
        watch = world.site.watch(route=route)
        robot = world.site.robot("second", model_version="v6")
        watch.wait_moving("second")
        for name in ("status_newer", "status_unreadable", "status_failed"):
            assert watch.count("second", name) >= 2  # asked, and asked to attach
        robot.wait_line("status passed over: unreadable: status: ")
        assert robot.stop() == 0


def test_token_that_is_none_is_counted(world):
    before = world.watch.count("gpu-1", "bad_tokens")
    token = world.session.liveliness().declare_token(f"{ROUTE}/healthy/alive/soon")
    world.watch.wait_count("gpu-1", "bad_tokens", before + 1)
    world.server.wait_line(f"bad token: {ROUTE}/healthy/alive/soon (1 so far)")
    token.undeclare()


def flood(world, key):
    """How many were sent."""
    for message in ROUNDS * HUGE:
        put(world, key, message)
    return ROUNDS * len(HUGE)


def test_gigabytes_announced_by_an_observation(world, client):
    before = dict(world.watch.newest["gpu-1"]["counters"])
    with costs_nothing(world.server):
        sent = flood(world, "client-1/obs")
        world.watch.wait_count("gpu-1", "received", before["received"] + sent)
        world.watch.wait_count("gpu-1", "malformed", before["malformed"] + ROUNDS)
    assert sums_agree(world)
    assert "error" in client.receive()
    world.server.wait_line("client-1: malformed: obs: ")


def test_gigabytes_announced_by_an_action(world):
    robot = world.site.robot("second")
    world.watch.wait_moving("second")

    def count():
        names = ("malformed", "inbox_full")
        return sum(world.watch.count("second", name) for name in names)

    with costs_nothing(robot):
        sent = flood(world, "second/action")
        wait_until(lambda: count() >= sent, "all of it is counted")
    robot.wait_line("answer dropped: malformed: action: ")
    world.watch.wait_moving("second")
    assert robot.stop() == 0


def test_gigabytes_announced_by_a_reset(world, client):
    before = world.watch.count("gpu-1", "bad_resets")
    with costs_nothing(world.server):
        flood(world, "client-1/reset")
        world.watch.wait_count("gpu-1", "bad_resets", before + 1)
    world.server.wait_line("client-1: reset: reset: ")


def test_gigabytes_announced_by_an_attach(world):
    before = world.watch.count("gpu-1", "bad_queries")
    with costs_nothing(world.server):
        for message in HUGE:
            (reply,) = query(world, message)
            assert not msgpack.unpackb(bytes(reply.ok.payload))["attach"]["accepted"]
        world.watch.wait_count("gpu-1", "bad_queries", before + len(HUGE))
    world.server.wait_line("server: bad attach: attach: ")


def test_gigabytes_announced_by_a_status(world):
    """As many replies to each of a robot's queries."""
    route = ROUTE.replace("/v1/", "/v6/")
    robot = world.site.robot("second", model_version="v6")
    robot.wait_line("waiting: no server answers")

    def on_query(query):
        for message in ROUNDS * HUGE:
            query.reply(f"{route}/status", message)

    with costs_nothing(robot):
        queryable = world.session.declare_queryable(f"{route}/status", on_query)
        robot.wait_line("waiting: status: ")
        queryable.undeclare()
    assert robot.stop() == 0
