# SPDX-License-Identifier: Apache-2.0
"""Exceptions of a user's own functions, kept for the person."""

from __future__ import annotations

import dataclasses
import logging
import threading

MOST = 100


@dataclasses.dataclass
class Fault:
    """What a function raised, and how often with the same words."""

    where: str
    error: BaseException
    count: int = 1
    handled: bool = False


class Faults:
    """Any thread. The log is told once of each: a robot may fail at 100 Hz."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self.log, self.what = log, what
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], Fault] = {}

    def add(self, where: str, error: BaseException) -> Fault:
        key = (where, f"{type(error).__name__}: {error}")
        with self._lock:
            fault = self._kept.get(key)
            if fault:
                fault.count += 1
                return fault
            fault = Fault(where, error)
            if len(self._kept) >= MOST:
                return fault
            self._kept[key] = fault
        self.log.error("%s: %s failed: %s", self.what, where, key[1], exc_info=error)
        return fault

    def all(self) -> list[Fault]:
        with self._lock:
            return list(self._kept.values())

    def first(self) -> BaseException | None:
        """The first that nobody dealt with."""
        return next((each.error for each in self.all() if not each.handled), None)
