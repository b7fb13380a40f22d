# SPDX-License-Identifier: Apache-2.0
"""libtendon.so: found, loaded once, and called.

ctypes lets other Python threads run while a C function does.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import os
import pathlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _types, errors

VERSION = "0.1.0"
ROOT = pathlib.Path(__file__).resolve().parents[2]
NATIVE = pathlib.Path(__file__).resolve().parent / "_native"
BUILDS = ("release", "dev")

#: Zenoh's sockets are read by the threads that call us back. By default others read
#: them and hand over, which every message pays for.
ZENOH_THREADS = "(acc:(handover:rx),net:(handover:rx))"

log = logging.getLogger("tendon")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def find(name: str) -> pathlib.Path:
    """`libtendon.so` or `tendon`: of the wheel, or the newest of a source tree."""
    inside = NATIVE / name
    if inside.exists():
        return inside
    given = os.environ.get("TENDON_BUILD")
    folders = [pathlib.Path(given)] if given else [ROOT / "build" / b for b in BUILDS]
    built = [folder / name for folder in folders if (folder / name).exists()]
    if not built:
        looked = ", ".join(str(folder) for folder in [NATIVE, *folders])
        raise ImportError(
            f"{name} is not in {looked}: `pip install ./python` in Tendon's source"
            f" tree, or build it there (tools/setup says what that takes)"
        )
    return max(built, key=lambda path: path.stat().st_mtime)


@functools.cache
def load() -> ctypes.CDLL:
    path = find("libtendon.so")
    os.environ.setdefault("ZENOH_RUNTIME", ZENOH_THREADS)  # the user's goes first
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(
            f"{path} cannot be loaded: {error} (tools/setup installs what it needs)"
        ) from error
    for name, (result, arguments) in _types.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    found = library.td_version_text().decode()
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{path} is version {found}, this package {VERSION}")
    library.td_log_to(_pass_on, None, 1)
    return library


@_types.LogFn
def _pass_on(_user: int | None, level: int, line: bytes) -> None:
    log.log(_LEVELS[level], "%s", line.decode(errors="replace"))


def fail(code: int, text: str = "") -> errors.Error:
    """The exception of a td_err."""
    library = load()
    name = library.td_err_name(code).decode()
    return errors.make(name, text or library.td_err_text(code).decode())


def call(name: str, *arguments: Any) -> None:
    """A function that returns a td_err and ends with a td_errinfo."""
    info = _types.ErrInfo()
    code = getattr(load(), name)(*arguments, ctypes.byref(info))
    if code != _types.OK:
        raise fail(code, info.text.decode(errors="replace"))


def report(name: str, pointer: int) -> dict[str, float]:
    """What a function tells a td_robot_number_fn or its like."""
    found: dict[str, float] = {}

    @_types.NumberFn
    def each(_user: int | None, name: bytes, value: float) -> None:
        found[name.decode()] = value

    if code := getattr(load(), name)(pointer, each, None):
        raise fail(code)
    return found


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM is as good as Ctrl-C, where nobody else has taken it."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Inside(threading.local):
    """Whether this thread is in a function that libtendon has called."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def __bool__(self) -> bool:
        return self.depth > 0


class Handle:
    """A C object that threads may use until one of them closes it.

    `with handle as pointer:` keeps it open meanwhile, so that no call ever meets
    memory that was freed.
    """

    def __init__(self, pointer: int, what: str) -> None:
        self.what = what
        self._pointer: int | None = pointer
        self._users = 0
        self._lock = threading.RLock()  # a signal may close it anywhere
        self._left = threading.Condition(self._lock)  # by a user, of a closed one

    def __enter__(self) -> int:
        with self._lock:
            if self._pointer is None:
                raise errors.Closed(f"{self.what} is closed", "CLOSED")
            self._users += 1
            return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._pointer is None:
                self._left.notify_all()

    @property
    def closed(self) -> bool:
        return self._pointer is None

    def close(self, free: Callable[[int], object]) -> None:
        """Once; waits for those who use it. Whoever comes second does nothing."""
        with self._lock:
            pointer, self._pointer = self._pointer, None
            while self._users:
                self._left.wait()
        if pointer is not None:
            free(pointer)
