# SPDX-License-Identifier: Apache-2.0
"""People's functions, as a server calls them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import _library, _types
from ._callback_errors import CallbackErrors
from ._infer import Infer, Loop, inside
from .metrics import LABELS


class ScoreRequest(NamedTuple):
    """What is known of a request that waits (include/tendon/score.h)."""

    age_ms: float
    budget_ms: float
    urgency: float
    priority: float
    steps_remaining: float  #: -1: not known
    slack_ms: float
    overdue_ms: float
    score: float  #: the published one
    client: str
    model: str


Score = Callable[[ScoreRequest], float]

_NUMBERS = struct.Struct(f"{len(ScoreRequest._fields) - 2}d")
_NAN = float("nan")


class Callbacks:
    """Holds what C borrows; must live until the server is closed."""

    def __init__(self, callback_errors: CallbackErrors) -> None:
        self.callback_errors = callback_errors
        self.metrics: list[Callable[[str, float, dict[str, str]], object]] = []
        self.events: list[Callable[[dict[str, Any]], object]] = []
        self._kept: list[Any] = []
        self._loop = Loop()
        self._score: Any = None
        self._metric: Any = None
        self._event: Any = None

    def give(self, handle: _library.Handle, models: Mapping[str, Any]) -> None:
        """To a server that has not started. A worker's model has no function."""
        with handle as pointer:
            for model_id, (call, batched) in models.items():
                if call is None:
                    continue
                infer = Infer(call, batched, self.callback_errors, self._loop)
                self._kept.append(infer)
                name = model_id.encode()
                _library.call(
                    "td_server_use_model", pointer, name, infer.function, None
                )
        self.listen(handle)

    def listen(self, handle: _library.Handle) -> None:
        """Once for the first of each kind; later ones are in the list."""
        library = _library.load()
        with handle as pointer:
            if self.metrics and not self._metric:
                self._metric = _types.MetricFn(self._on_metric)
                _check(library.td_server_on_metric(pointer, self._metric, None))
            if self.events and not self._event:
                self._event = _types.EventFn(self._on_event)
                _check(library.td_server_on_event(pointer, self._event, None))

    def close(self) -> None:
        """The server is closed."""
        self._loop.close()

    def schedule(
        self, handle: _library.Handle, text: str | None, score: Score | None
    ) -> None:
        function = _types.ScoreFn(self._scored(score)) if score else _types.ScoreFn()
        yaml = text.encode() if text else None
        with handle as pointer:
            _library.call("td_server_use_scheduling", pointer, yaml, function, None)
        self._score = function  # and the one before is not in use any more

    def _scored(self, score: Score) -> Callable[[int, Any], float]:
        def ask(_user: int, request: Any) -> float:
            try:
                values = _NUMBERS.unpack(ctypes.string_at(request, _NUMBERS.size))
                given = request.contents
                names = given.client.decode(), given.model.decode()
                with inside:
                    return float(score(ScoreRequest._make((*values, *names))))
            except BaseException as error:
                self.callback_errors.add("score", error)
                return _NAN  # goes last, and is counted

        return ask

    def _on_metric(self, _user: int, name: bytes, value: float, labels: Any) -> None:
        given = labels.contents
        found = {each: getattr(given, each) for each in LABELS}
        named = {
            each: text.decode() for each, text in found.items() if text is not None
        }
        for function in self.metrics:
            self._guard("on_metric", function, name.decode(), value, named)

    def _on_event(self, _user: int, event: Any) -> None:
        given = event.contents
        found: dict[str, Any] = {"number": given.number}
        for name in ("kind", "server", "client", "text"):
            found[name] = getattr(given, name).decode()
        for function in self.events:
            self._guard("on_event", function, found)

    def _guard(self, where: str, function: Callable[..., object], *given: Any) -> None:
        try:
            with inside:
                function(*given)
        except BaseException as error:
            self.callback_errors.add(where, error)


def _check(code: int) -> None:
    if code != _types.OK:
        raise _library.fail(code)
