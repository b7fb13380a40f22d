# SPDX-License-Identifier: Apache-2.0
"""A Python robot as the functions that libtendon calls."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _library, _types
from ._callback_errors import CallbackErrors
from ._description import Description

if TYPE_CHECKING:
    from .robot import Robot

Floats = npt.NDArray[np.float32]
Steps = npt.NDArray[np.uint64]

#: A robot's own method.
inside = _library.Inside()


def floats(address: int, *shape: int) -> Floats:
    """C's memory, as it is: good until the call is over."""
    count = int(np.prod(shape))
    memory = (ctypes.c_float * count).from_address(address)
    return np.ctypeslib.as_array(memory).reshape(shape)


def numbers(values: Any, where: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{where} gave {array.dtype}, and not numbers")
    return array


def to_state(
    values: Any, names: tuple[str, ...], where: str, what: str = "joint"
) -> npt.NDArray[Any]:
    """An array in the order of the joints, or of the states, or a dict by name."""
    if isinstance(values, Mapping):
        wrong = [f"no {name}" for name in names if name not in values]
        wrong += [f"{name}, no {what}," for name in values if name not in names]
        if wrong:
            raise ValueError(
                f"{where} gave {' and '.join(wrong)};"
                f" the {what}s are {', '.join(names)}"
            )
        values = [values[name] for name in names]
    array = numbers(values, where)
    if array.shape != (len(names),):
        raise ValueError(
            f"{where} gave {_shape(array)}, the robot has"
            f" {len(names)} {what}s: {', '.join(names)}"
        )
    return array


def to_frame(values: Any, height: int, width: int, where: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype != np.uint8:
        raise TypeError(f"{where} gave {array.dtype}, a frame is uint8")
    if array.shape != (height, width, 3):
        raise ValueError(f"{where} gave {_shape(array)}, not {height} x {width} x 3")
    return array


def put_jpeg(given: bytes | bytearray, address: int, room: int, where: str) -> int:
    """Returns how many bytes it has."""
    jpeg = bytes(given)
    if jpeg[:3] != b"\xff\xd8\xff":
        raise ValueError(f"{where} gave {len(jpeg)} bytes that are no JPEG")
    if len(jpeg) > room:
        raise ValueError(
            f"{where} gave a JPEG of {len(jpeg)} bytes, room is for {room}"
        )
    ctypes.memmove(address, jpeg, len(jpeg))
    return len(jpeg)


def _shape(array: npt.NDArray[Any]) -> str:
    return "shape " + (" x ".join(map(str, array.shape)) or "()")


class Driver:
    """Holds what C borrows; must live until the robot is closed."""

    def __init__(
        self, robot: Robot, description: Description, callback_errors: CallbackErrors
    ) -> None:
        self.robot, self.callback_errors = robot, callback_errors
        self.names, self.states, self.cameras = description
        self.begun: dict[str, threading.Event] = {}
        self.struct = _types.Driver(size=ctypes.sizeof(_types.Driver))
        if robot._has("read"):
            self.begun["read"] = threading.Event()
            self.struct.read = _types.ReadFn(self._read)
            self.struct.write = _types.WriteFn(self._write)
        if self.states:
            self.struct.observe_state = _types.ObserveStateFn(self._observe_state)
        if robot._has("control"):
            self.struct.control = _types.ControlFn(self._control)
        if self.cameras:
            self.struct.picture = _types.PictureFn(self._picture)
            for name in self.cameras:
                self.begun[f"frame({name!r})"] = threading.Event()
        if robot._has("aggregate"):
            self.struct.blend = _types.BlendFn(self._blend)
            self.struct.blend_limit_s = robot.aggregate_limit_s

    def wait_begun(self, seconds: float) -> None:
        """Until every function that reads was called once, or the time is over."""
        until = time.monotonic() + seconds
        for event in self.begun.values():
            event.wait(max(0.0, until - time.monotonic()))

    def _guard(self, where: str, work: Callable[[], None]) -> int:
        """Whatever a user's function raises stays on this side of C."""
        try:
            with inside:
                work()
            return _types.OK
        except BaseException as error:
            self._failed(where, error)
            return _types.IO
        finally:
            if where in self.begun:
                self.begun[where].set()

    def _failed(self, where: str, error: BaseException) -> None:
        raised = self.callback_errors.add(where, error)
        try:
            with inside:
                raised.handled |= bool(self.robot.on_error(error, where))
        except BaseException as worse:
            self.callback_errors.add("on_error", worse)

    def _read(self, _user: int, ret_state: int, count: int) -> int:
        def work() -> None:
            state = to_state(self.robot.read(), self.names, "read()")
            floats(ret_state, count)[:] = state

        return self._guard("read", work)

    def _observe_state(self, _user: int, ret_state: int, count: int) -> int:
        def work() -> None:
            state = to_state(
                self.robot.observe_state(), self.states, "observe_state()", "state"
            )
            floats(ret_state, count)[:] = state

        return self._guard("observe_state", work)

    def _write(self, _user: int, command: int, count: int) -> int:
        return self._guard(
            "write", lambda: self.robot.write(floats(command, count).copy())
        )

    def _control(
        self, _user: int, command: int, state: int | None, count: int, ret_out: int
    ) -> int:
        def work() -> None:
            measured = floats(state, count).copy() if state else None
            out = self.robot.control(floats(command, count).copy(), measured)
            floats(ret_out, count)[:] = to_state(out, self.names, "control()")

        return self._guard("control", work)

    def _picture(
        self,
        _user: int,
        camera: int,
        ret_bytes: int,
        room: int,
        height: int,
        width: int,
        ret_jpeg: Any,
    ) -> int:
        name = self.cameras[camera]
        where = f"frame({name!r})"

        def work() -> None:
            given = self.robot.frame(name)
            if isinstance(given, bytes | bytearray):
                ret_jpeg[0] = put_jpeg(given, ret_bytes, room, where)
                return
            frame = to_frame(given, height, width, where)
            memory = (ctypes.c_uint8 * (height * width * 3)).from_address(ret_bytes)
            np.copyto(np.ctypeslib.as_array(memory).reshape(frame.shape), frame)

        return self._guard(where, work)

    def _blend(self, _user: int, overlap: Any, ret_rows: int) -> int:
        def work() -> None:
            job = overlap.contents
            shape = (job.rows, job.count)
            steps = np.arange(job.first, job.first + job.rows, dtype=np.uint64)
            old = floats(job.old_rows, *shape).copy()
            new = floats(job.new_rows, *shape).copy()
            rows = numbers(self.robot.aggregate(steps, old, new), "aggregate()")
            if rows.shape != shape:
                raise ValueError(
                    f"aggregate() gave {_shape(rows)}, not {shape[0]} x {shape[1]}"
                )
            floats(ret_rows, *shape)[:] = rows

        return self._guard("aggregate", work)
