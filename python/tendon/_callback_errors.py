# SPDX-License-Identifier: Apache-2.0
"""Exceptions of a user's own functions, kept for the person."""

from __future__ import annotations

import dataclasses
import logging
import threading

MOST = 100


@dataclasses.dataclass
class CallbackError:
    """What a function raised, and how often with the same words."""

    where: str
    error: BaseException
    count: int = 1
    handled: bool = False


class CallbackErrors:
    """Any thread. The log is told once of each: a robot may fail at 100 Hz."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self.log, self.what = log, what
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], CallbackError] = {}

    def add(self, where: str, error: BaseException) -> CallbackError:
        key = (where, f"{type(error).__name__}: {error}")
        with self._lock:
            raised = self._kept.get(key)
            if raised:
                raised.count += 1
                return raised
            raised = CallbackError(where, error)
            if len(self._kept) >= MOST:
                return raised
            self._kept[key] = raised
        self.log.error("%s: %s failed: %s", self.what, where, key[1], exc_info=error)
        return raised

    def all(self) -> list[CallbackError]:
        with self._lock:
            return list(self._kept.values())

    def first(self) -> BaseException | None:
        """The first that nobody dealt with."""
        return next((each.error for each in self.all() if not each.handled), None)
