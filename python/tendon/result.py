# SPDX-License-Identifier: Apache-2.0
"""How an observation ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _library, errors

OUTCOMES = ("answered", "error", "superseded", "lost", "expired")
KINDS = ("chunk", "plan", "verdict")


class _Owner:
    """A td_model_result, freed when the last array that looks into it goes."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer
        self.free = _library.load().td_model_result_free

    def __del__(self) -> None:
        self.free(self.pointer)


class Result:
    """How an observation ended.

    Arrays are read-only and look into the message itself, which stays as long as
    one of them does.
    """

    def __init__(self, pointer: Any) -> None:
        told = pointer.contents
        owner = _Owner(pointer)
        self.seq: int = told.seq
        self.outcome: str = OUTCOMES[told.outcome]
        self.error: errors.Error | None = None
        if told.outcome:
            self.error = _library.fail(told.error, told.error_text.decode())
        self.kind: str = KINDS[told.kind]
        self.text: str = told.text.decode()
        self.is_unsafe: bool = told.is_unsafe
        self.server: str = told.server.decode()
        self.chunk_id: int = told.chunk_id
        self.inference_ms: float = told.inference_ms
        self.queue_ms: float = told.queue_ms
        self.round_trip_ms: float = told.round_trip_us / 1e3
        self.superseded: tuple[int, ...] = tuple(
            told.superseded[: told.superseded_count] if told.superseded_count else ()
        )
        self._actions = _array(told.actions, owner)
        self._results = {
            each.name.decode(): _array(each, owner)
            for each in (told.results[i] for i in range(told.result_count))
        }

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def actions(self) -> npt.NDArray[Any]:
        """Rows x channels. Raises what went wrong, if it was not answered."""
        if self.error:
            raise self.error
        return self._actions

    @property
    def results(self) -> dict[str, npt.NDArray[Any]]:
        """What the model gave beside its actions. Raises likewise."""
        if self.error:
            raise self.error
        return self._results

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.actions if name == "actions" else self.results[name]

    def __repr__(self) -> str:
        told = f": {self.error}" if self.error else f", {self._actions.shape}"
        return f"<Result {self.seq} {self.outcome}{told}>"


def _array(tensor: Any, owner: _Owner) -> npt.NDArray[Any]:
    if not tensor.rank:
        return np.empty((0, 0), np.float32)
    shape = tuple(tensor.shape[: tensor.rank])
    return _arrays.view(tensor.data, tensor.dtype, shape, owner)
