# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, as exceptions.

Every one is an `Error` with the name of its code, as docs/c-api.md has them.
"""

from __future__ import annotations

__all__ = ["Closed", "Error", "Invalid", "Mismatch", "Timeout"]


class Error(RuntimeError):
    """Something that libtendon refused or could not do."""

    def __init__(self, text: str, code: str = "INTERNAL") -> None:
        super().__init__(text)
        self.code = code


class Invalid(Error, ValueError):
    """A setting or argument that makes no sense; the text names it."""


class Mismatch(Error):
    """A server and this side do not fit; the text names the field and both."""


class Timeout(Error, TimeoutError):
    """It did not come in time."""


class Closed(Error):
    """Used after it was closed, or before it was started."""


_KINDS: dict[str, type[Error]] = {
    "INVALID": Invalid,
    "FORMAT": Invalid,
    "LIMIT": Invalid,
    "MISMATCH": Mismatch,
    "VERSION": Mismatch,
    "TIMEOUT": Timeout,
    "CLOSED": Closed,
}


def make(code: str, text: str) -> Error:
    return _KINDS.get(code, Error)(text, code)
