# SPDX-License-Identifier: Apache-2.0
"""A robot of your own on a remote policy, under the C control loop.

    class Arm(tendon.Robot):
        joints = ["waist", "shoulder", "elbow"]
        cameras = {"front": (480, 640)}

        def read(self):
            return self.bus.positions()

        def write(self, action):
            self.bus.move(action)

        def frame(self, camera):
            return self.camera.latest()

    Arm().run("arm.yaml", task="pick up the cup")

The loop, its timing and its fail-safe are C and wait for no Python: a method
that blocks or raises is counted, and the robot is held safe meanwhile.
docs/python.md says what happens when.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from . import _library, _types, errors
from ._callback_errors import CallbackError, CallbackErrors
from ._description import Description, join
from ._driver import Driver, Floats, Steps, inside, to_state
from .settings import Path

__all__ = ["Robot", "Step"]

log = logging.getLogger("tendon.robot")

#: How long start() waits for the first reading, to say at once what is wrong.
FIRST_S = 1.0
R = TypeVar("R", bound="Robot")
DOING = ("idle", "fresh", "starved", "failsafe")


class Step(NamedTuple):
    """What came of one control period."""

    action: Floats | None  #: what to write now; None: leave the robot be
    doing: str  #: "idle", "fresh", "starved" or "failsafe"
    limited: bool  #: a limit of the robot's was kept
    left: int  #: actions left to play
    age_s: float  #: fresh: since the observation that it answers


class Robot:
    """Subclass it with `read`, `write` and, where there are cameras, `frame`.

    Without `read` and `write` it is pulled: start() it, and call step(state)
    once a control period.
    """

    #: The joints in the policy's order; or a dict of their fields (`kind`, `min`,
    #: `max`, …, docs/robot-settings.md). A server with other names is refused.
    joints: Sequence[str] | Mapping[str, Mapping[str, Any]] = ()

    #: What the policy sees of the robot, in its order, where that is not where the joints are;
    #: or a dict of their fields (`kind`). observe_state() gives their values.
    states: Sequence[str] | Mapping[str, Mapping[str, Any]] = ()

    #: Each camera's (height, width), or a dict of its fields.
    cameras: Mapping[str, tuple[int, int] | Mapping[str, Any]] = {}

    #: How long a chunk waits for aggregate(); 0: half a policy step.
    aggregate_limit_s: float = 0.0

    _session: _Session | None

    def __new__(cls: type[R], *_: object, **__: object) -> R:
        self = object.__new__(cls)
        self._session = None  # here, as a subclass need not call __init__
        return self

    def read(self) -> Any:
        """Where the joints are: an array in their order, or a dict by name."""
        raise NotImplementedError

    def observe_state(self) -> Any:
        """(with `states`) What they are, after read() or in step(): an array in their
        order, or a dict by name."""
        raise NotImplementedError

    def write(self, action: Floats) -> None:
        """Moves the joints; the array is the robot's to keep."""
        raise NotImplementedError

    def frame(self, camera: str) -> Any:
        """The newest picture: uint8, height x width x RGB, or the bytes of a JPEG,
        which are sent and recorded as they are."""
        raise NotImplementedError

    def control(self, action: Floats, state: Floats | None) -> Any:
        """(optional) Your own fast controller between step and write()."""
        raise NotImplementedError

    def aggregate(self, steps: Steps, old: Floats, new: Floats) -> Any:
        """(optional) The rows to play, rows x joints, out of those that the chunk
        before and the new one have for the same steps. When it is late or raises,
        the new ones are played."""
        raise NotImplementedError

    def on_error(self, error: BaseException, where: str) -> bool | None:
        """Called with what a method raised, on its thread. True: dealt with, so
        that run() and wait() do not raise it at the end."""

    def run(self, config: Path | None = None, **settings: Any) -> None:
        """Finds a server and plays its policy until stop(), Ctrl-C or SIGTERM.

        Settings are the fields of docs/robot-settings.md, over those of a file;
        record="DIR" is short for record={"dir": "DIR"}.
        Raises what the methods raised, when it has ended and nobody dealt with
        it; Mismatch when the server does not fit.
        """
        with _library.terminable():
            try:
                self.start(config, **settings)
            except KeyboardInterrupt:
                return
            try:
                self.wait()
            except KeyboardInterrupt:
                log.info("interrupted")
            finally:
                self.close()
        self._open_or_ended().raise_first()

    def start(self, config: Path | None = None, **settings: Any) -> None:
        """The same on a thread of its own."""
        if self._session and not self._session.handle.closed:
            raise errors.Error("this robot runs already", "EXISTS")
        self._session = _Session(self, config, settings)

    def stop(self) -> None:
        """Makes run() and wait() return. Any thread, the robot's methods too."""
        if self._session:
            self._session.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until it has ended; False if the time is over before. Raises as run()."""
        session = self._open_or_ended()
        if not session.ended.wait(timeout_s):
            return False
        if session.failure:
            raise session.failure
        session.raise_first()
        return True

    def close(self) -> None:
        """Stops it, waits for its methods to return, and leaves the robot where
        it stands. Never raises what they raised."""
        if inside:
            raise RuntimeError("close() waits for this very method: call stop()")
        if self._session:
            self._session.close()

    def __enter__(self: R) -> R:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(self, state: Any) -> Step:
        """Pull mode: one control period, with the state just read. Never waits."""
        return self._open_or_ended().step(state)

    def reset(self, reason: str = "") -> None:
        """Begins a new episode: what was to come is forgotten."""
        self._open_or_ended().call_text("td_robot_reset", reason)

    def set_task(self, task: str) -> None:
        """Tells the policy something else to do."""
        self._open_or_ended().call_text("td_robot_set_task", task)

    def episode_begin(self) -> None:
        """Records what is played from now on as an episode of the dataset.

        Where the run is recorded: run(record="DIR"). The first begins by itself,
        unless `record` has `begin: command`; reset() ends one and begins the next.
        """
        self._open_or_ended().call("td_robot_episode_begin")

    def episode_end(self, keep: bool = True) -> None:
        """Ends it, and returns when it is in the dataset, or thrown away."""
        self._open_or_ended().call("td_robot_episode_end", keep)

    def report(self) -> dict[str, float]:
        """Every number by its name; after the end, as they then were."""
        return self._open_or_ended().report()

    @property
    def errors(self) -> list[CallbackError]:
        """What its methods raised: where, the exception, how often."""
        return self._session.callback_errors.all() if self._session else []

    @property
    def state(self) -> str:
        """CONNECTING, STREAMING, DEGRADED, STALLED, RECONNECTING or STOPPED."""
        return self._session.state() if self._session else "STOPPED"

    def _open_or_ended(self) -> _Session:
        if not self._session:
            raise errors.Closed("this robot was not started", "CLOSED")
        return self._session

    def _has(self, method: str) -> bool:
        own = getattr(self, method)
        return own is not None and getattr(own, "__func__", own) is not getattr(
            Robot, method
        )


def _check_methods(robot: Robot, description: Description) -> None:
    kind = type(robot).__name__
    if robot._has("read") != robot._has("write"):
        raise TypeError(f"{kind} needs both read() and write(), or neither, to step()")
    if description.cameras and not robot._has("frame"):
        raise TypeError(f"{kind} has cameras and no frame(camera)")
    if bool(description.states) != robot._has("observe_state"):
        raise TypeError(f"{kind} needs both states and observe_state(), or neither")
    if robot._has("control") and not robot._has("read"):
        raise TypeError(f"{kind}: control() is not used by a robot that is stepped")
    if robot._has("aggregate") and not callable(robot.aggregate):
        raise TypeError(f"{kind}.aggregate cannot be called")


_open: set[_Session] = set()


@atexit.register
def _close_all() -> None:
    """Python must not end under a thread that still calls it."""
    for session in list(_open):
        with contextlib.suppress(Exception):
            session.stop()
            session.finish()  # not close(): it is too late for another thread


class _Session:
    """One run of a robot: from open to close."""

    def __init__(
        self, robot: Robot, config: Path | None, given: Mapping[str, Any]
    ) -> None:
        settings = join(robot, config, given)
        description = Description.of(settings)
        self.names = description.joints
        _check_methods(robot, description)
        self.callback_errors = CallbackErrors(log, type(robot).__name__)
        self.driver = Driver(robot, description, self.callback_errors)
        self.pulled = not robot._has("read")
        self.ended = threading.Event()
        self.failure: errors.Error | None = None
        self.last: dict[str, float] = {}
        self.library = _library.load()
        pointer = ctypes.c_void_p()
        try:
            _library.call(
                "td_robot_open_text",
                settings.text().encode(),
                ctypes.byref(self.driver.struct),
                ctypes.byref(pointer),
            )
        except errors.Error as error:
            raise settings.trace(error) from None
        assert pointer.value
        self.handle = _library.Handle(pointer.value, "this robot")
        _open.add(self)
        self._start()

    def _start(self) -> None:
        self._state = (ctypes.c_float * len(self.names))()
        self._command = (ctypes.c_float * len(self.names))()
        self._stepping = threading.Lock()
        self._runner = threading.Thread(
            target=self._run, name="tendon-robot", daemon=True
        )
        try:
            self.driver.wait_begun(FIRST_S)
            self.raise_first()
            self._runner.start()
        except BaseException:
            self.close()
            raise

    def _run(self) -> None:
        try:
            with self.handle as pointer:
                _library.call("td_robot_run", pointer)
        except errors.Closed:
            pass  # before it began
        except errors.Error as error:
            self.failure = error
            log.error("%s: %s", self.callback_errors.what, error)
        finally:
            self.ended.set()

    def stop(self) -> None:
        with contextlib.suppress(errors.Closed), self.handle as pointer:
            self.library.td_robot_stop(pointer)

    def close(self) -> None:
        """The wait is a thread's, so that a second Ctrl-C can end it."""
        self.stop()
        thread = threading.Thread(target=self.finish, name="tendon-close", daemon=True)
        thread.start()
        thread.join()

    def finish(self) -> None:
        with contextlib.suppress(errors.Error):
            self.last = self.report()
        self.handle.close(self.library.td_robot_close)
        self.ended.set()
        _open.discard(self)

    def raise_first(self) -> None:
        error = self.callback_errors.first()
        if error is not None:
            raise error

    @contextlib.contextmanager
    def _used(self) -> Any:
        if inside:
            raise RuntimeError("a robot's own method may only call its stop()")
        with self.handle as pointer:
            yield pointer

    def step(self, state: Any) -> Step:
        if not self.pulled:
            raise RuntimeError("a robot with read() and write() is not stepped: run it")
        values = to_state(state, self.names, "step()").tolist()
        result = _types.StepResult(size=ctypes.sizeof(_types.StepResult))
        with self._stepping, self._used() as pointer:
            self._state[:] = values
            self.library.td_robot_step(
                pointer, self._state, self._command, ctypes.byref(result)
            )
            action = np.array(self._command, np.float32) if result.doing else None
        return Step(
            action,
            DOING[result.doing],
            result.limited,
            result.left,
            result.age_us / 1e6,
        )

    def call_text(self, function: str, text: str) -> None:
        self.call(function, text.encode())

    def call(self, function: str, *arguments: Any) -> None:
        with self._used() as pointer:
            _library.call(function, pointer, *arguments)

    def state(self) -> str:
        try:
            with self.handle as pointer:
                return self.library.td_robot_state(pointer).decode()
        except errors.Closed:
            return "STOPPED"

    def report(self) -> dict[str, float]:
        try:
            with self._used() as pointer:
                return _library.report("td_robot_report", pointer)
        except errors.Closed:
            return dict(self.last)
