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
        result = pointer.contents
        owner = _Owner(pointer)
        self.seq: int = result.seq
        self.outcome: str = OUTCOMES[result.outcome]
        self.error: errors.Error | None = None
        if result.outcome:
            self.error = _library.fail(result.error, result.error_text.decode())
        self.kind: str = KINDS[result.kind]
        self.text: str = result.text.decode()
        self.is_unsafe: bool = result.is_unsafe
        self.server: str = result.server.decode()
        self.chunk_id: int = result.chunk_id
        self.inference_ms: float = result.inference_ms
        self.queue_ms: float = result.queue_ms
        self.round_trip_ms: float = result.round_trip_us / 1e3
        self.superseded: tuple[int, ...] = tuple(
            result.superseded[: result.superseded_count]
            if result.superseded_count
            else ()
        )
        self._actions = _array(result.actions, owner)
        self._results = {
            each.name.decode(): _array(each, owner)
            for each in (result.results[i] for i in range(result.result_count))
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
        result = f": {self.error}" if self.error else f", {self._actions.shape}"
        return f"<Result {self.seq} {self.outcome}{result}>"


def _array(tensor: Any, owner: _Owner) -> npt.NDArray[Any]:
    if not tensor.rank:
        return np.empty((0, 0), np.float32)
    shape = tuple(tensor.shape[: tensor.rank])
    return _arrays.view(tensor.data, tensor.dtype, shape, owner)
