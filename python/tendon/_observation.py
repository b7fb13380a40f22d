# SPDX-License-Identifier: Apache-2.0
"""An observation: whatever a person gives, as C takes it."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _types

_TENSOR = _types.record(_types.Tensor)
_IMAGE = _types.record(_types.Image)
_PAIR = _types.record(_types.Pair)
_OBSERVATION = _types.record(_types.Observation)
_NO_TENSOR = (0,) * len(_TENSOR.unpack(bytes(_TENSOR.size)))
_NO_SIDES = (0,) * _arrays.MOST_SIDES


def _memory(data: bytes) -> ctypes.c_char:
    """The first byte of a copy that lives as long as this does."""
    return ctypes.c_char.from_buffer(bytearray(data))


@functools.lru_cache(maxsize=256)
def _c_text(text: str) -> ctypes.c_char:
    """Names and tasks come again and again."""
    return _memory(text.encode() + b"\0")


class Encoded:
    """A picture that is JPEG or PNG already, as bytes."""

    def __init__(self, data: Any, name: str = "picture") -> None:
        self.array = np.frombuffer(data, np.uint8)
        head = self.array[:8].tobytes()
        if head.startswith(b"\xff\xd8\xff"):
            self.codec = _types.JPEG
        elif head == b"\x89PNG\r\n\x1a\n":
            self.codec = _types.PNG
        else:
            raise ValueError(f"{name}: these bytes are neither JPEG nor PNG")


_ENCODED = (bytes, bytearray, memoryview, Encoded)


class Made:
    """An observation as C takes it; holds what it points to."""

    def __init__(self) -> None:
        self.state: tuple[Any, ...] = _NO_TENSOR
        self.tensors: list[bytes] = []
        self.images: list[bytes] = []
        self.pairs: list[bytes] = []
        self.kept: list[Any] = []

    def add(self, name: str, value: Any, ages: Mapping[str, float]) -> None:
        """Whatever it is, by what it looks like."""
        if isinstance(value, str):
            self.add_text(name, value)
        elif isinstance(value, _ENCODED):
            self.add_image(name, value)
        else:
            array = _arrays.plain(value, name)
            if (
                array.dtype == np.uint8
                and array.ndim == 3
                and array.shape[2] in (1, 3, 4)
            ):
                self._add_raw(name, array)
            else:
                self.add_tensor(name, array, ages)

    def add_text(self, name: str, text: str) -> None:
        self.pairs.append(_PAIR.pack(self._text(name), self._text(text)))

    def add_image(self, name: str, value: Any) -> None:
        if not isinstance(value, _ENCODED):
            self._add_raw(name, _arrays.plain(value, name))
            return
        made = value if isinstance(value, Encoded) else Encoded(value, name)
        self._add_picture(name, made.codec, (0, 0, 0), made.array)

    def _add_raw(self, name: str, array: npt.NDArray[Any]) -> None:
        if array.dtype != np.uint8 or array.ndim != 3:
            raise TypeError(
                f"{name}: a picture is uint8, height x width x channels; this is"
                f" {array.dtype} of shape {array.shape}"
            )
        self._add_picture(name, _types.RAW, array.shape, array)

    def _add_picture(
        self, name: str, codec: int, shape: tuple[int, ...], array: npt.NDArray[Any]
    ) -> None:
        place = self._place(array)
        made = _IMAGE.pack(self._text(name), codec, *shape, place, array.nbytes)
        self.images.append(made)

    def add_tensor(
        self, name: str, array: npt.NDArray[Any], ages: Mapping[str, float]
    ) -> None:
        self.tensors.append(_TENSOR.pack(*self._tensor(name, array, ages)))

    def _tensor(
        self, name: str, array: npt.NDArray[Any], ages: Mapping[str, float]
    ) -> tuple[Any, ...]:
        return (
            self._text(name),
            _arrays.code(array),
            array.ndim,
            *array.shape,
            *_NO_SIDES[array.ndim :],
            self._place(array),
            array.nbytes,
            name in ages,
            round(ages.get(name, 0) * 1e6),
        )

    def set_state(self, value: Any, ages: Mapping[str, float]) -> None:
        array = _arrays.plain(value, "state")
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"state: must be numbers in a row, is {array.dtype} of shape"
                f" {array.shape}"
            )
        self.state = self._tensor("state", array.astype("<f4", copy=False), ages)

    def finish(self, task: str, *rest: Any) -> bytes:
        """A td_model_observation. `rest` is what follows the task in it."""
        try:
            return _OBSERVATION.pack(
                _OBSERVATION.size,
                *self.state,
                *self._many(self.tensors),
                *self._many(self.images),
                *self._many(self.pairs),
                self._text(task),
                *rest,
            )
        except struct.error as error:
            raise ValueError(f"a number of the observation: {error}") from error

    def _many(self, records: list[bytes]) -> tuple[int, int]:
        if not records:
            return 0, 0
        return self._keep(_memory(b"".join(records))), len(records)

    def _text(self, text: str) -> int:
        return self._keep(_c_text(text))

    def _place(self, array: npt.NDArray[Any]) -> int:
        self.kept.append(array)
        return _arrays.address(array)

    def _keep(self, memory: ctypes.c_char) -> int:
        self.kept.append(memory)
        return ctypes.addressof(memory)
