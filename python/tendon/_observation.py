# SPDX-License-Identifier: Apache-2.0
"""An observation: whatever a person gives, as C takes it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arrays, _types


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


class Made:
    """An observation as C takes it; holds what it points to."""

    def __init__(self) -> None:
        self.struct = _types.Observation(size=ctypes.sizeof(_types.Observation))
        self.tensors: list[_types.Tensor] = []
        self.images: list[_types.Image] = []
        self.pairs: list[_types.Pair] = []
        self.kept: list[Any] = []

    def add(self, name: str, value: Any, ages: Mapping[str, float]) -> None:
        """Whatever it is, by what it looks like."""
        if isinstance(value, str):
            self.add_text(name, value)
        elif isinstance(value, bytes | bytearray | memoryview | Encoded):
            self.add_image(name, value)
        else:
            array = _arrays.plain(value, name)
            if (
                array.dtype == np.uint8
                and array.ndim == 3
                and array.shape[2] in (1, 3, 4)
            ):
                self.add_image(name, array)
            else:
                self.tensors.append(self.tensor(name, array, ages))

    def add_text(self, name: str, text: str) -> None:
        self.pairs.append(_types.Pair(name.encode(), text.encode()))

    def add_image(self, name: str, value: Any) -> None:
        if isinstance(value, bytes | bytearray | memoryview):
            value = Encoded(value, name)
        image = _types.Image(name=name.encode())
        if isinstance(value, Encoded):
            array, image.codec = value.array, value.codec
        else:
            array = _arrays.plain(value, name)
            if array.dtype != np.uint8 or array.ndim != 3:
                raise TypeError(
                    f"{name}: a picture is uint8, height x width x channels; this is"
                    f" {array.dtype} of shape {array.shape}"
                )
            image.height, image.width, image.channels = array.shape
        image.data, image.bytes = _arrays.address(array), array.nbytes
        self.kept.append(array)
        self.images.append(image)

    def tensor(
        self, name: str, array: npt.NDArray[Any], ages: Mapping[str, float]
    ) -> _types.Tensor:
        made = _types.Tensor(name=name.encode(), rank=array.ndim)
        made.dtype = _arrays.code(array)
        made.shape[: array.ndim] = array.shape
        made.data, made.bytes = _arrays.address(array), array.nbytes
        self.kept.append(array)
        if name in ages:
            made.has_age, made.age_us = True, round(ages[name] * 1e6)
        return made

    def set_state(self, value: Any, ages: Mapping[str, float]) -> None:
        array = _arrays.plain(value, "state")
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"state: must be numbers in a row, is {array.dtype} of shape"
                f" {array.shape}"
            )
        self.struct.state = self.tensor("state", array.astype("<f4", copy=False), ages)

    def finish(self) -> _types.Observation:
        for field, kind, members in (
            ("tensor", _types.Tensor, self.tensors),
            ("image", _types.Image, self.images),
            ("metadata", _types.Pair, self.pairs),
        ):
            if members:
                many = field if field == "metadata" else f"{field}s"
                setattr(self.struct, many, (kind * len(members))(*members))
                setattr(self.struct, f"{field}_count", len(members))
        return self.struct
