# SPDX-License-Identifier: Apache-2.0
"""Serve models from Python.

    server = tendon.Server("tcp/0.0.0.0:7447", cluster="lab", experiment="cups")

    @server.model("echo", version="v1", application="pick", actions=["waist", "elbow"])
    def echo(obs):
        return np.repeat(obs["state"][None, :], 50, axis=0)

    server.run()

A function runs in this process, one call at a time (`async def`: `max_inflight`
calls), and shares its GIL. A string,
"policy.py:infer" or "module:callable", runs in a process of its own, which is what
a model with a GPU wants: docs/worker.md.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import pathlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from . import _library, _manifest, errors
from ._callback_errors import CallbackError, CallbackErrors
from ._callbacks import Callbacks, Score, ScoreRequest
from ._infer import inside
from .metrics import Metrics, Stats
from .settings import Path, Settings, identity, render
from .worker.policy import is_async

__all__ = ["Metrics", "ScoreRequest", "Server", "Stats", "register_policy"]

log = logging.getLogger("tendon.server")

#: Calls of an asynchronous function at a time, where `max_inflight` does not say.
ASYNC_INFLIGHT = 8

#: How long run() lets what waits and runs be answered, when it is to end.
DRAIN_S = 5.0

F = TypeVar("F", bound=Callable[..., Any])


_policies: dict[str, Score] = {}


def register_policy(name: str) -> Callable[[F], F]:
    """Names your own score, for use_scheduler(policy=name): of the requests
    that wait, the one with the highest goes first."""

    def register(score: F) -> F:
        _policies[name] = score
        return score

    return register


class _Model(NamedTuple):
    entry: dict[str, Any]
    call: Callable[..., Any] | None  # None: a worker's
    batched: bool


class Server:
    """A server in this process. `config` is a manifest's path or its fields
    (docs/manifest.md); without one, models are added with model()."""

    def __init__(
        self,
        server: str | None = None,
        *,
        config: Path | Mapping[str, Any] | None = None,
        cluster: str | None = None,
        experiment: str | None = None,
        **fields: Any,
    ) -> None:
        self._settings = Settings()
        if isinstance(config, Mapping):
            self._settings.add(config, "config: ")
        elif config is not None:
            self._settings.add_file(config)
            folder = pathlib.Path(config).resolve().parent
            listed = _manifest.list_name(self._settings.fields)
            entries = self._settings.fields.get(listed) or []
            self._settings.fields[listed] = [
                _manifest.beside(entry, folder) for entry in entries
            ]
        self._settings.add(fields, "argument ")
        self._given = {"server": server, "cluster": cluster, "experiment": experiment}
        self._models: dict[str, _Model] = {}
        self._scheduling: tuple[str | None, Score | None] | None = None
        self._callbacks = Callbacks(CallbackErrors(log, "server"))
        self._handle: _library.Handle | None = None
        self._stopped = threading.Event()
        self._lock = threading.RLock()
        self.metrics = Metrics(self._started)

    def model(
        self,
        model_id: str,
        call: Callable[..., Any] | str | None = None,
        *,
        version: str | None = None,
        application: str | None = None,
        batched: bool = False,
        engine: Mapping[str, Any] | None = None,
        actions: Any = None,
        states: Any = None,
        cameras: Mapping[str, Any] | None = None,
        chunk: int | None = None,
        max_batch: int | None = None,
        **fields: Any,
    ) -> Any:
        """Serves a callable under a name; without `call`, a decorator.

        It takes and gives what docs/worker.md says, and may say what it is in
        its attribute `spec`. `engine` and `fields` are more of a manifest's
        entry. Clients that are not listed are accepted, where no `clients` are.
        """
        spec = {
            "actions": actions,
            "states": states,
            "cameras": cameras,
            "chunk": chunk,
            "max_batch": max_batch,
        }
        given = {name: value for name, value in spec.items() if value is not None}
        entry = {
            "model_id": model_id,
            "model_version": version,
            "application_tag": application,
            "accept_unknown": "clients" not in fields,
        } | fields

        def serve(found: Any) -> Any:
            self._before_start("model()")
            if model_id in self._models:
                raise errors.Error(f"{model_id} is served already", "EXISTS")
            entry["engine"] = _manifest.engine(
                found, batched, given | dict(engine or {})
            )
            if not isinstance(found, str) and is_async(found):
                # As many at a time as the entry lets be under way.
                most = int(entry.setdefault("max_inflight", ASYNC_INFLIGHT))
                entry["engine"].setdefault("parallel", most)
            live = None if isinstance(found, str) else found
            self._models[model_id] = _Model(entry, live, batched)
            return found

        return serve if call is None else serve(call)

    def use_scheduler(
        self,
        strategy: str | None = None,
        *,
        policy: str | Score | None = None,
        weights: Mapping[str, float] | None = None,
        score: str | None = None,
        fairness: float | None = None,
        queue: Mapping[str, Any] | None = None,
    ) -> None:
        """Changes who goes first, at once where it runs; nothing is lost.

        `policy` is a function, or the name of a register_policy(): every request
        that waits asks it whenever a batch is formed, so its time is everyone's
        (`metrics.get_stats("score_ms")`). `score` is an expression instead. What
        is not given stays; docs/scheduling.md has the rule.
        """
        fields = {
            "strategy": strategy,
            "weights": weights,
            "score": score,
            "fairness": fairness,
            "queue": queue,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        text = "".join(
            f"{name}: {render(each, name)}\n" for name, each in given.items()
        )
        function = policy
        if isinstance(policy, str):
            if policy not in _policies:
                known = ", ".join(_policies) or "none"
                raise ValueError(
                    f"no policy {policy!r} is registered; there are: {known}"
                )
            function = _policies[policy]
        assert function is None or callable(function)
        with self._lock:
            if self._handle:
                self._callbacks.schedule(self._started(), text or None, function)
            else:
                self._scheduling = (text or None, function)

    def on_metric(self, function: F) -> F:
        """Calls function(name, value, labels) with each value, on a thread of its own.
        What it cannot keep up with is dropped and counted (`dropped`)."""
        self._callbacks.metrics.append(function)
        if self._handle:
            self._callbacks.listen(self._started())
        return function

    def on_event(self, function: F) -> F:
        """Calls function(event) with what happens: a dict of number, kind, server,
        client and text."""
        self._callbacks.events.append(function)
        if self._handle:
            self._callbacks.listen(self._started())
        return function

    def run(self) -> None:
        """Serves until stop(), Ctrl-C or SIGTERM, and answers what it has taken."""
        with _library.terminable():
            try:
                self.start()
                self.wait()
            except KeyboardInterrupt:
                log.info("interrupted")
            finally:
                self.close(DRAIN_S)

    def start(self) -> None:
        """Loads every model, warms it up and opens its doors. Blocks until then."""
        with self._lock:
            self._before_start("start()")
            self._open()
        try:
            _interruptible(self._start, self.stop)
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Makes run() and wait() return. Any thread."""
        self._stopped.set()
        if self._handle:
            with contextlib.suppress(errors.Closed), self._handle as pointer:
                _library.load().td_server_stop(pointer)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until stop(); False if the time is over before."""
        return self._stopped.wait(timeout_s)

    def close(self, drain_s: float = 0) -> None:
        """Stops it. With `drain_s`, what it has taken is answered first."""
        handle = self._handle
        if not handle or handle.closed:
            return
        if inside:
            raise RuntimeError("close() waits for this very function: call stop()")
        self.stop()

        def work() -> None:
            if drain_s > 0:
                with contextlib.suppress(errors.Error), handle as pointer:
                    _library.call("td_server_drain", pointer, round(drain_s * 1000))
            handle.close(_library.load().td_server_close)
            self._callbacks.close()

        if sys.is_finalizing() or _ending:
            work()
        else:
            _interruptible(work, lambda: None)
        _open.discard(self)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self, model_id: str | None = None) -> str:
        """stopped, warming, ready, draining or degraded; of all, the worst."""
        name = model_id.encode() if model_id else None
        try:
            with self._started() as pointer:
                return _library.load().td_server_state(pointer, name).decode()
        except errors.Closed:
            return "stopped"

    @property
    def errors(self) -> list[CallbackError]:
        """What functions of yours raised: where, the exception, how often."""
        return self._callbacks.callback_errors.all()

    @property
    def dropped(self) -> int:
        """Values that on_metric() and on_event() were too slow for."""
        with self._started() as pointer:
            return _library.load().td_server_dropped(pointer)

    def _started(self) -> _library.Handle:
        if inside:
            raise RuntimeError("a function that a server calls may only stop() it")
        if not self._handle:
            raise errors.Closed("this server was not started", "CLOSED")
        return self._handle

    def _before_start(self, what: str) -> None:
        if self._handle:
            raise errors.Error(f"{what} is for before the start", "BUSY")

    def _text(self) -> str:
        """The fields of the file, and an entry for each model that is added."""
        settings = self._settings
        known = {
            name: settings.fields.get(field)
            for name, field in (
                ("cluster", "cluster_uuid"),
                ("experiment", "experiment_tag"),
            )
        }
        given = {name: self._given[name] or value for name, value in known.items()}
        found = identity(given | {"server": self._given["server"]}, tuple(known))
        settings.add({"cluster_uuid": found["cluster"]}, "cluster: ")
        settings.add({"experiment_tag": found["experiment"]}, "experiment: ")
        listed = _manifest.list_name(settings.fields)
        entries = [dict(each) for each in settings.fields.get(listed) or []]
        for model in self._models.values():
            _manifest.add(entries, model.entry, self._given["server"])
        if not entries:
            raise errors.Invalid(
                "no model: add one with model(), or give a config", "INVALID"
            )
        settings.fields[listed] = entries
        return settings.text()

    def _open(self) -> None:
        text = self._text()
        pointer = ctypes.c_void_p()
        try:
            _library.call("td_server_open_text", text.encode(), ctypes.byref(pointer))
        except errors.Error as error:
            raise self._settings.trace(error) from None
        assert pointer.value
        handle = _library.Handle(pointer.value, "this server")
        try:
            calls = {name: (m.call, m.batched) for name, m in self._models.items()}
            self._callbacks.give(handle, calls)
            if self._scheduling:
                self._callbacks.schedule(handle, *self._scheduling)
        except BaseException:
            handle.close(_library.load().td_server_close)
            raise
        self._handle = handle
        _open.add(self)

    def _start(self) -> None:
        with self._started() as pointer:
            _library.call("td_server_start", pointer)


_open: set[Server] = set()
_ending: list[bool] = []


@atexit.register
def _close_all() -> None:
    """Python must not end under a thread that still calls it."""
    _ending.append(True)
    for server in list(_open):
        with contextlib.suppress(Exception):
            server.close()


def _interruptible(work: Callable[[], None], interrupt: Callable[[], None]) -> None:
    """Work in C, on a thread, so that Ctrl-C reaches the one who waits."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="tendon-server", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        interrupt()
        thread.join()
        raise
    if raised:
        raise raised[0]
