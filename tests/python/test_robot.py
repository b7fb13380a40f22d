# SPDX-License-Identifier: Apache-2.0
"""tendon.Robot on a real server: at work, and when a person's code goes wrong."""

import ctypes
import io
import json
import threading
import time
import traceback

import msgpack
import numpy as np
import PIL.Image
import pytest
import tendon
from arms import NAMES, SIZES, Arm, Pulled, settings
from outside_client import open_session
from scene import CAMERAS, JOINTS, ROUTE, ROWS
from tendon_process import PATIENCE_S, run, wait_until


@pytest.fixture
def begin(site):
    """begin(robot, **settings): runs until the test is over."""

    def start(robot, /, **changes):
        site.kept.callback(robot.close)
        robot.start(**settings(site, **changes))
        return robot

    return start


def count(robot, name):
    return robot.report()[name]


def wait_count(robot, name, least=1):
    wait_until(lambda: count(robot, name) >= least, f"{name} does not reach {least}")


def test_it_plays_what_a_server_answers(site, begin):
    site.serve()
    arm = begin(Arm())
    wait_count(arm, "fresh", 2 * ROWS)
    assert arm.state == "STREAMING"
    assert count(arm, "driver_failed") == 0
    assert arm.written[0].dtype == np.float32 and arm.written[0].shape == (len(NAMES),)
    arm.stop()
    assert arm.wait()
    arm.close()
    assert arm.state == "STOPPED"
    assert arm.report()["fresh"] >= 2 * ROWS
    assert arm.errors == []


def test_a_dict_by_name_is_as_good_as_an_array(site, begin):
    class Named(Arm):
        def read(self):
            return dict(zip(reversed(NAMES), self.at[::-1], strict=True))

    site.serve()
    arm = begin(Named())
    wait_count(arm, "fresh", ROWS)
    assert arm.errors == []


def test_a_host_that_owns_its_loop_steps(site, begin):
    site.serve()
    robot = begin(Pulled())
    state, doing = np.zeros(len(NAMES)), set()
    for _ in range(3000):
        step = robot.step(state)
        doing.add(step.doing)
        if step.action is not None:
            state = step.action
        if step.doing == "fresh" and step.left and len(doing) > 1:
            break
        time.sleep(0.01)
    assert doing >= {"idle", "fresh"}
    assert step.action.shape == (len(NAMES),) and step.age_s > 0
    with pytest.raises(ValueError, match="step.. gave shape 2, the robot has 6 joints"):
        robot.step([1, 2])


def test_a_reset_and_a_task_reach_the_server(site, begin):
    site.serve()
    received, tasks = [], set()
    session = site.keep(open_session(site.endpoint))
    session.declare_subscriber(
        f"{ROUTE}/robot-1/reset",
        lambda sample: received.append(
            msgpack.unpackb(bytes(sample.payload))["reason"]
        ),
    )
    session.declare_subscriber(
        f"{ROUTE}/robot-1/obs",
        lambda sample: tasks.add(msgpack.unpackb(bytes(sample.payload))["task"]),
    )
    arm = begin(Arm())
    wait_count(arm, "fresh")
    arm.set_task("bow")
    arm.reset("the cup fell")
    wait_until(lambda: received == ["the cup fell"] and "bow" in tasks, "both arrive")
    with pytest.raises(tendon.Invalid):
        arm.set_task("x" * 10000)


def test_a_reset_saves_an_episode_and_begins_the_next(site, begin):
    folder = site.folder / "data"
    site.serve()
    arm = begin(Arm(), record={"dir": folder, "codec": "h264"}, task="wave")
    wait_count(arm, "record_frames", ROWS)
    arm.set_task("bow")
    arm.reset("the cup fell")

    def goes_on():
        received = arm.report()
        return received["record_episodes"] == 1 and received["record_frames"] >= ROWS

    wait_until(goes_on, "no second episode is recorded")
    arm.close()
    received = json.loads((folder / "meta/info.json").read_text())
    assert (received["total_episodes"], received["total_tasks"]) == (2, 2)


def test_episodes_are_recorded(site, begin):
    folder = site.folder / "data"
    site.serve()
    arm = begin(Arm(), record={"dir": folder, "codec": "h264"})
    wait_count(arm, "record_frames", ROWS)
    arm.episode_end()
    arm.episode_begin()
    wait_count(arm, "record_frames", ROWS)
    arm.episode_end(keep=False)
    with pytest.raises(tendon.Error, match="no episode is being recorded"):
        arm.episode_end()
    arm.close()
    info = json.loads((folder / "meta/info.json").read_text())
    assert info["total_episodes"] == 1 and info["total_frames"] >= ROWS


class Compressing(Arm):
    """Its camera gives JPEGs, no two of them alike."""

    def __init__(self):
        super().__init__()
        self.given = []

    def frame(self, camera):
        height, width = SIZES[camera]
        file = io.BytesIO()
        grey = (len(self.given) % 200,) * 3
        PIL.Image.new("RGB", (width, height), grey).save(file, "JPEG")
        self.given.append(file.getvalue() + b"%d" % len(self.given))
        return self.given[-1]


def test_a_cameras_jpeg_is_sent_and_recorded_as_it_is(site, begin):
    folder = site.folder / "data"
    site.serve()
    seen = set()
    session = site.keep(open_session(site.endpoint))
    session.declare_subscriber(
        f"{ROUTE}/robot-1/obs",
        lambda sample: seen.add(
            msgpack.unpackb(bytes(sample.payload)).get("images", {}).get("front")
        ),
    )
    arm = begin(Compressing(), record={"dir": folder, "codec": "h264"})
    wait_count(arm, "record_frames", ROWS)
    wait_until(lambda: len(seen - {None}) > 2, "nothing is seen")
    arm.close()
    assert seen - {None} <= set(arm.given)
    exported = site.folder / "shown"
    assert run("dataset", "export", folder, exported).returncode == 0
    shown = sorted(exported.rglob("*.jpg"))
    greys = [np.asarray(PIL.Image.open(path)).mean() for path in shown]
    assert len(greys) >= ROWS and len({round(grey) for grey in greys}) > 2
    assert max(greys) < len(arm.given) + 4


def test_a_run_that_is_not_recorded_has_no_episodes(site, begin):
    arm = begin(Arm())
    with pytest.raises(tendon.Error, match="nothing is recorded"):
        arm.episode_begin()


class Feeling(Arm):
    """Tells its policy more than where its joints are."""

    states = JOINTS | {"force": {}}

    def observe_state(self):
        return dict(zip(NAMES, self.at, strict=True)) | {"force": 7.5}


def test_a_policys_state_may_be_more_than_the_joints(site, begin):
    site.serve(engine={"states": Feeling.states})
    received = []
    session = site.keep(open_session(site.endpoint))
    session.declare_subscriber(
        f"{ROUTE}/robot-1/obs",
        lambda sample: received.append(msgpack.unpackb(bytes(sample.payload))["state"]),
    )
    arm = begin(Feeling())
    wait_count(arm, "fresh", ROWS)
    wait_until(lambda: received, "an observation")
    assert received[0]["shape"] == [len(NAMES) + 1]
    assert np.frombuffer(received[0]["data"], "<f4")[-1] == 7.5
    assert arm.written[0].shape == (len(NAMES),)
    assert arm.errors == []


def test_one_that_is_stepped_may_tell_more_too(site, begin):
    class Reported(Pulled):
        states = Feeling.states

        def observe_state(self):
            return np.arange(len(NAMES) + 1)

    site.serve(engine={"states": Feeling.states})
    robot = begin(Reported())

    def plays():
        step = robot.step(np.zeros(len(NAMES)))
        return step.doing == "fresh"

    wait_until(plays, "it plays")
    assert robot.errors == []


def test_other_states_than_the_policys_are_refused(site):
    site.serve()
    with pytest.raises(tendon.Mismatch, match="state"):
        Feeling().run(**settings(site))


def test_an_exception_of_the_handler_is_counted_logged_and_raised_at_the_end(
    site, begin
):
    class Dumb(Feeling):
        def observe_state(self):
            raise_broken()

    site.serve(engine={"states": Feeling.states})
    arm = begin(Dumb())
    wait_count(arm, "driver_failed", 3)
    assert count(arm, "sent") == 0
    arm.stop()
    with pytest.raises(Broken, match="the bus is gone"):
        arm.wait()
    assert arm.errors[0].where == "observe_state"


class Broken(Exception):
    pass


class Moody(Arm):
    """Goes wrong on demand."""

    def __init__(self):
        super().__init__()
        self.wrong = None
        self.received = []

    def mood(self, where):
        if self.wrong and self.wrong[0] == where:
            return self.wrong[1]()
        return None

    def read(self):
        found = self.mood("read")
        return super().read() if found is None else found

    def write(self, action):
        self.mood("write")
        super().write(action)

    def frame(self, camera):
        found = self.mood("frame")
        return super().frame(camera) if found is None else found

    def on_error(self, error, where):
        self.received.append((error, where))


def raise_broken():
    raise Broken("the bus is gone")


@pytest.mark.parametrize("where", ["read", "write"])
def test_an_exception_is_counted_logged_and_raised_at_the_end(
    site, begin, caplog, where
):
    site.serve()
    arm = begin(Moody(), driver_limit_s=0.1)
    wait_count(arm, "fresh", ROWS)
    arm.wrong = (where, raise_broken)
    wait_count(arm, "driver_failed", 5)
    if where == "read":
        wait_count(arm, "failsafe_driver", 5)
    arm.wrong = None
    fresh = count(arm, "fresh")
    wait_count(arm, "fresh", fresh + ROWS)  # and it is back
    arm.stop()
    with pytest.raises(Broken, match="the bus is gone") as raised:
        arm.wait()
    assert "raise_broken" in "".join(traceback.format_tb(raised.tb))
    assert arm.received[0] == (raised.value, where)
    (fault,) = arm.errors
    assert fault.where == where and fault.count == len(arm.received) >= 5
    said = [r for r in caplog.records if "the bus is gone" in r.getMessage()]
    assert len(said) == 1 and said[0].exc_info


def test_what_is_dealt_with_is_not_raised(site, begin):
    class Calm(Moody):
        def on_error(self, error, where):
            return True

    site.serve()
    arm = begin(Calm())
    arm.wrong = ("read", raise_broken)
    wait_count(arm, "driver_failed", 2)
    arm.stop()
    assert arm.wait()
    assert arm.errors[0].handled


def test_a_hook_that_raises_is_kept_too(site, begin):
    class Worse(Moody):
        def on_error(self, error, where):
            raise RuntimeError("the hook, too")

    site.serve()
    arm = begin(Worse())
    arm.wrong = ("read", raise_broken)
    wait_until(lambda: len(arm.errors) == 2, "both are kept")
    assert [fault.where for fault in arm.errors] == ["read", "on_error"]


@pytest.mark.parametrize(
    ("where", "gives", "kind", "says"),
    [
        ("read", raise_broken, Broken, "the bus is gone"),
        ("read", lambda: [1, 2, 3], ValueError, "gave shape 3, .* 6 joints: waist"),
        ("read", lambda: 0.5, ValueError, r"gave shape \(\), the robot has 6"),
        ("read", lambda: list("abcdef"), TypeError, "gave <U1, and not numbers"),
        ("read", lambda: {"waist": 1}, ValueError, "gave no shoulder and no elbow"),
        (
            "read",
            lambda: dict.fromkeys([*NAMES, "tail"], 0),
            ValueError,
            "gave tail, no joint,",
        ),
        (
            "frame",
            lambda: np.zeros((48, 64, 3)),
            TypeError,
            "float64, a frame is uint8",
        ),
        ("frame", lambda: b"PNG", ValueError, "gave 3 bytes that are no JPEG"),
        (
            "frame",
            lambda: b"\xff\xd8\xff" * 10000,
            ValueError,
            "gave a JPEG of 30000 bytes, room is for 13312",
        ),
        (
            "frame",
            lambda: np.zeros((64, 48, 3), np.uint8),
            ValueError,
            "gave shape 64 x 48 x 3, not 48 x 64 x 3",
        ),
    ],
)
def test_a_robot_that_is_wrong_from_the_start_does_not_start(
    site, monkeypatch, where, gives, kind, says
):
    monkeypatch.setattr("tendon.robot.FIRST_S", PATIENCE_S)
    arm = Moody()
    arm.wrong = (where, gives)
    with pytest.raises(kind, match=says):
        arm.start(**settings(site))
    assert arm.state == "STOPPED"


def test_one_that_blocks_delays_itself_alone(site, begin):
    site.serve()
    arm = begin(Moody(), driver_limit_s=0.1)
    wait_count(arm, "fresh", ROWS)
    free = threading.Event()
    arm.wrong = ("read", free.wait)
    wait_count(arm, "failsafe_driver", 20)  # ticks, while it blocks
    assert not free.is_set()
    closed = threading.Thread(target=arm.close)
    closed.start()  # while the method runs
    arm.wrong = None
    free.set()
    closed.join(60)
    assert not closed.is_alive()


def test_one_that_holds_the_interpreter_does_not_hold_the_tick(site, begin):
    site.serve()
    arm = begin(Moody(), driver_limit_s=0.05)
    wait_count(arm, "fresh", ROWS)
    before = arm.report()
    hold = ctypes.PyDLL(None).usleep  # PyDLL: the lock is not given up
    hold(500_000)
    after = arm.report()
    assert after["failsafe_driver"] - before["failsafe_driver"] >= 5
    arm.stop()
    arm.wait()


def test_names_in_another_order_are_refused(site):
    class Permuted(Arm):
        joints = {name: JOINTS[name] for name in reversed(NAMES)}

    site.serve()
    with pytest.raises(tendon.Mismatch, match="waist"):
        Permuted().run(**settings(site))


class Blended(Arm):
    def __init__(self, blend):
        super().__init__()
        self.blend, self.seen = blend, []

    def aggregate(self, steps, old, new):
        self.seen.append((steps, old, new))
        return self.blend(old, new)


def test_an_aggregation_has_the_last_word(site, begin):
    site.serve(engine={"latency": {"kind": "fixed", "ms": 30}})
    arm = Blended(lambda old, new: old * 0 + 0.25)
    arm.aggregate_limit_s = 60
    begin(arm)
    wait_until(lambda: any((row == 0.25).all() for row in arm.written), "it is played")
    steps, old, new = arm.seen[0]
    assert old.shape == new.shape == (len(steps), len(NAMES))
    assert (np.diff(steps) == 1).all()


@pytest.mark.parametrize(
    ("blend", "counter", "kept"),
    [
        (lambda old, new: 1 / 0, "aggregate_failed", ZeroDivisionError),
        (lambda old, new: new[1:], "aggregate_failed", ValueError),
        (lambda old, new: "rows", "aggregate_failed", TypeError),
        (lambda old, new: time.sleep(0.2) or new, "aggregate_late", None),
    ],
)
def test_an_aggregation_that_fails_or_is_late_is_done_without(
    site, begin, blend, counter, kept
):
    site.serve()
    arm = Blended(blend)
    if kept:
        arm.aggregate_limit_s = 60
    begin(arm)
    wait_count(arm, counter, 2)
    wait_count(arm, "fresh", 3 * ROWS)
    assert {type(fault.error) for fault in arm.errors} == ({kept} if kept else set())


def test_a_method_may_stop_and_nothing_else(site, begin):
    class Curious(Arm):
        def write(self, action):
            super().write(action)
            for ask in (self.report, self.close, lambda: self.set_task("x")):
                with pytest.raises(RuntimeError):
                    ask()
            self.stop()

    site.serve()
    arm = begin(Curious())
    assert arm.wait(60)
    assert arm.errors == []


def test_a_robot_that_is_closed_is_not_used(site, begin):
    robot = Pulled()
    with pytest.raises(tendon.Closed):
        robot.step(np.zeros(6))
    begin(robot)
    with pytest.raises(tendon.Error, match="runs already"):
        robot.start(**settings(site))
    robot.close()
    robot.close()
    for use in (
        lambda: robot.step(np.zeros(6)),
        robot.reset,
        lambda: robot.set_task(""),
    ):
        with pytest.raises(tendon.Closed):
            use()
    assert "ticks" in robot.report()
    begin(robot)  # and again
    assert robot.state == "CONNECTING"


@pytest.mark.parametrize(
    ("members", "kind", "says"),
    [
        ({"read": lambda self: 0}, TypeError, "both read.. and write"),
        ({"cameras": {"front": (48, 64)}}, TypeError, "cameras and no frame"),
        (
            {"cameras": {"front": 48}},
            TypeError,
            "front: must be .height, width., is 48",
        ),
        ({"joints": ()}, tendon.Invalid, "must name the robot's joints"),
        (
            {"joints": {"a": {"kind": "screw"}}},
            tendon.Invalid,
            "class Odd: robot.joints",
        ),
        ({"aggregate": 3}, TypeError, "aggregate cannot be called"),
        ({"states": ["force"]}, TypeError, "needs both states and observe_state"),
        (
            {"observe_state": lambda self: 0},
            TypeError,
            "needs both states and observe_state",
        ),
    ],
)
def test_a_class_that_makes_no_sense_is_refused(site, members, kind, says):
    odd = type("Odd", (tendon.Robot,), {"joints": NAMES} | members)
    with pytest.raises(kind, match=says):
        odd().start(**settings(site))


def test_cameras_and_joints_may_have_more_fields(site, begin):
    class Detailed(Arm):
        cameras = {"front": CAMERAS["front"] | {"fps": 10}}

    site.serve()
    arm = begin(Detailed(), robot={"joints": {"waist": {"min": -3, "max": 3}}})
    wait_count(arm, "fresh")
    arm.close()
    for joints, says in (
        ({"waist": {}, "tail": {}}, "the settings waist, tail"),
        (["shoulder", "waist"], "has waist, .*, the settings shoulder, waist"),
        (["waist", "waist"], "'waist' is not one name among"),
    ):
        with pytest.raises(tendon.Invalid, match=says):
            arm.start(**settings(site, robot={"joints": joints}))


def test_a_class_may_leave_its_body_to_the_settings(site, begin):
    class Bodiless(Arm):
        joints, cameras = (), {}

    site.serve()
    arm = begin(Bodiless(), robot={"joints": JOINTS, "cameras": CAMERAS})
    wait_count(arm, "fresh")
    assert arm.errors == []
