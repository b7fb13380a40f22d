# SPDX-License-Identifier: Apache-2.0
"""People's functions, as a host calls them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import _library, _types
from ._faults import Faults
from ._infer import Infer, inside
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


Score = Callable[[ScoreRequest], float]

_REQUEST = struct.Struct(f"{len(ScoreRequest._fields)}d")
_NAN = float("nan")


class Functions:
    """Holds what C borrows; must live until the host is closed."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.metrics: list[Callable[[str, float, dict[str, str]], object]] = []
        self.events: list[Callable[[dict[str, Any]], object]] = []
        self._kept: list[Any] = []
        self._score: Any = None

    def give(self, handle: _library.Handle, models: Mapping[str, Any]) -> None:
        """To a host that has not started. A worker's model has no function."""
        library = _library.load()
        with handle as pointer:
            for model_id, (call, batched) in models.items():
                if call is None:
                    continue
                infer = Infer(call, batched, self.faults)
                self._kept.append(infer)
                name = model_id.encode()
                _library.call(
                    "td_server_use_model", pointer, name, infer.function, None
                )
            if self.metrics:
                self._kept.append(_types.MetricFn(self._tell_metric))
                _check(library.td_server_on_metric(pointer, self._kept[-1], None))
            if self.events:
                self._kept.append(_types.EventFn(self._tell_event))
                _check(library.td_server_on_event(pointer, self._kept[-1], None))

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
                values = _REQUEST.unpack(ctypes.string_at(request, _REQUEST.size))
                with inside:
                    return float(score(ScoreRequest(*values)))
            except BaseException as error:
                self.faults.add("score", error)
                return _NAN  # goes last, and is counted

        return ask

    def _tell_metric(self, _user: int, name: bytes, value: float, labels: Any) -> None:
        told = labels.contents
        found = {each: getattr(told, each) for each in LABELS}
        named = {
            each: text.decode() for each, text in found.items() if text is not None
        }
        for tell in self.metrics:
            self._guard("on_metric", tell, name.decode(), value, named)

    def _tell_event(self, _user: int, event: Any) -> None:
        told = event.contents
        found: dict[str, Any] = {"number": told.number}
        for name in ("kind", "server", "client", "text"):
            found[name] = getattr(told, name).decode()
        for tell in self.events:
            self._guard("on_event", tell, found)

    def _guard(self, where: str, tell: Callable[..., object], *told: Any) -> None:
        try:
            with inside:
                tell(*told)
        except BaseException as error:
            self.faults.add(where, error)


def _check(code: int) -> None:
    if code != _types.OK:
        raise _library.fail(code)
