# SPDX-License-Identifier: Apache-2.0
"""Ask a model that runs on a server.

    connection = tendon.Connection("tcp/gpu-box:7447", "station-1", cluster="lab",
                                   experiment="cups")
    model = connection.model("pi0", version="v1", application="pick")
    model.observe(state=state, front=frame, task="pick up the cup", urgency=0.5)
    result = model.get_result(timeout_ms=200)
    if result:
        print(result.actions)

tendon.aio has the same for asyncio.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import time
import weakref
from collections.abc import Mapping
from typing import Any

from . import _arrays, _library, _types, errors
from ._observation import Encoded, Made
from .result import Result
from .settings import identity

__all__ = ["Connection", "Encoded", "Model", "Result"]

#: How long a wait in C may keep Ctrl-C waiting.
SLICE_MS = 100

_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        with contextlib.suppress(Exception):
            connection.close()


class Model:
    """One model, asked through a connection. Made by Connection.model()."""

    def __init__(self, connection: Connection, handle: _library.Handle) -> None:
        self._connection = connection  # stays open while its models are used
        self._handle = handle
        self._library = _library.load()

    def observe(
        self,
        *,
        state: Any = None,
        task: str = "",
        urgency: float = 0.0,
        steps_remaining: int | None = None,
        priority: int | None = None,
        must_go: bool = False,
        episode: int = 0,
        cursor: int = 0,
        latency_budget_ms: float = 0,
        limit_ms: float = 0,
        ages: Mapping[str, float] | None = None,
        tensors: Mapping[str, Any] | None = None,
        images: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        **arrays_and_strings: Any,
    ) -> int:
        """Sends an observation, or keeps it until there is a server; its seq.

        A string is metadata; uint8 of height x width x channels, and bytes of
        JPEG or PNG, are pictures; every other array is a tensor. Where that is
        not meant, `tensors`, `images` and `metadata` say which it is. `ages` are
        in seconds, by name. Arrays are sent from where they lie; one that does
        not lie in one piece is copied first.
        """
        ages = ages or {}
        made = Made()
        if state is not None:
            made.set_state(state, ages)
        for name, value in arrays_and_strings.items():
            made.add(name, value, ages)
        for name, value in (tensors or {}).items():
            made.add_tensor(name, _arrays.plain(value, name), ages)
        for name, value in (images or {}).items():
            made.add_image(name, value)
        for name, text in (metadata or {}).items():
            made.add_text(name, text)
        observation = made.finish(
            task,
            urgency,
            priority is not None,
            priority or 0,
            steps_remaining is not None,
            steps_remaining or 0,
            must_go,
            episode,
            cursor,
            round(latency_budget_ms),
            round(limit_ms),
        )
        seq = ctypes.c_uint64()
        with self._handle as pointer:
            _library.call("td_model_observe", pointer, observation, ctypes.byref(seq))
        return seq.value

    def get_result(self, timeout_ms: float | None = None) -> Result | None:
        """The next outcome, in the order in which they came; None when the time
        is over (None: there is no limit). One that is no answer has `error`."""
        until = None if timeout_ms is None else time.monotonic() + timeout_ms / 1e3
        ret_result = ctypes.POINTER(_types.ModelResult)()
        with self._handle as pointer:
            while True:
                left_ms = SLICE_MS
                if until is not None:
                    left = max(0.0, until - time.monotonic()) * 1e3
                    left_ms = min(SLICE_MS, int(left + 0.999))
                code = self._library.td_model_get_result(
                    pointer, left_ms, ctypes.byref(ret_result)
                )
                if code == _types.OK:
                    return Result(ret_result)
                if code != _types.TIMEOUT:
                    raise _library.fail(code, "the model was closed")
                if until is not None and time.monotonic() >= until:
                    return None

    def wait(self, timeout_ms: float | None = None) -> None:
        """Until a server has taken it. Observing needs no wait. Raises why none
        has, when the time is over; the error's `code` has NOTFOUND, DENIED, …"""
        until = None if timeout_ms is None else time.monotonic() + timeout_ms / 1e3
        with self._handle as pointer:
            while True:
                left_ms = SLICE_MS
                if until is not None:
                    left = max(0.0, until - time.monotonic()) * 1e3
                    left_ms = min(SLICE_MS, int(left))
                try:
                    return _library.call("td_model_wait", pointer, left_ms)
                except errors.Error as error:
                    over = until is not None and time.monotonic() >= until
                    if over or isinstance(error, errors.Closed):
                        raise

    @property
    def state(self) -> str:
        """CONNECTING, ATTACHED, RECONNECTING or STOPPED."""
        try:
            with self._handle as pointer:
                return self._library.td_model_state(pointer).decode()
        except errors.Closed:
            return "STOPPED"

    def report(self) -> dict[str, float]:
        """Every number of the model by its name."""
        with self._handle as pointer:
            return _library.report("td_model_report", pointer)

    def fileno(self) -> int:
        """Readable while a result waits: for select and the like."""
        descriptor = ctypes.c_int()
        with self._handle as pointer:
            code = self._library.td_model_fd(pointer, ctypes.byref(descriptor))
        if code != _types.OK:
            raise _library.fail(code)
        return descriptor.value

    def close(self) -> None:
        """Leaves the server. Whoever waits for a result is told."""
        with contextlib.suppress(errors.Closed), self._handle as pointer:
            self._library.td_model_stop(pointer)
        self._handle.close(self._library.td_model_close)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """One client's session. What is not given comes from TENDON_SERVER,
    TENDON_CLIENT_ID, … or from tendon.yaml in the working folder.

    With `every` each observation is answered, or told why not: they queue, and
    none takes the place of another (docs/sdk.md)."""

    def __init__(
        self,
        server: str | None = None,
        client_id: str | None = None,
        client_type: str | None = None,
        *,
        cluster: str | None = None,
        experiment: str | None = None,
        peer: bool = False,
        shared_memory: bool = True,
        every: bool = False,
    ) -> None:
        given = {
            "server": server,
            "client_id": client_id,
            "client_type": client_type,
            "cluster": cluster,
            "experiment": experiment,
        }
        found = identity(given, ("server", "client_id", "cluster", "experiment"))
        self._library = _library.load()
        settings = _types.ConnectionSettings(
            size=ctypes.sizeof(_types.ConnectionSettings),
            peer=peer,
            no_shared_memory=not shared_memory,
            every=every,
        )
        for name in given:
            setattr(settings, name, str(found.get(name, "")).encode())
        pointer = ctypes.c_void_p()
        _library.call(
            "td_connection_open", ctypes.byref(settings), ctypes.byref(pointer)
        )
        assert pointer.value
        self._handle = _library.Handle(pointer.value, "this connection")
        self._models: weakref.WeakSet[Model] = weakref.WeakSet()
        _open.add(self)

    def model(
        self,
        model_id: str | None = None,
        latency_budget_ms: float = 0,
        priority: int | None = None,
        *,
        version: str | None = None,
        application: str | None = None,
        limit_ms: float = 0,
        jpeg_quality: int = 0,
        raw_if_shared: bool = False,
    ) -> Model:
        """Begins to look for a server of the model; comes back at once.

        Observations expire after `limit_ms` (0: five seconds). With
        `jpeg_quality` raw pictures are sent as JPEG, but where `raw_if_shared`
        and the server is on this machine.
        """
        given = {"model": model_id, "version": version, "application": application}
        found = identity(given, tuple(given))
        settings = _types.ModelSettings(
            size=ctypes.sizeof(_types.ModelSettings),
            model_id=found["model"].encode(),
            version=str(found["version"]).encode(),
            application=found["application"].encode(),
            latency_budget_ms=round(latency_budget_ms),
            has_priority=priority is not None,
            priority=priority or 0,
            limit_ms=round(limit_ms),
            jpeg_quality=jpeg_quality,
            raw_if_shared=raw_if_shared,
        )
        pointer = ctypes.c_void_p()
        with self._handle as connection:
            _library.call(
                "td_connection_model",
                connection,
                ctypes.byref(settings),
                ctypes.byref(pointer),
            )
        assert pointer.value
        what = f"the model {found['model']}"
        model = Model(self, _library.Handle(pointer.value, what))
        self._models.add(model)
        return model

    def close(self) -> None:
        """With all its models."""
        for model in list(self._models):
            model.close()
        self._handle.close(self._library.td_connection_close)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
