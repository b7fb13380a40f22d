# SPDX-License-Identifier: Apache-2.0
"""numpy arrays as C sees them, and C's memory as numpy does. Nothing is copied but
arrays that do not lie in one piece."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_SIDES = 8

#: By td_model_dtype and td_infer_dtype; bfloat16 comes as its bits.
DTYPES = ("<f4", "<f8", "<f2", "<u2", "|u1", "|i1", "<i2", "<i4", "<i8", "|b1")
BFLOAT16 = 3

_CODES = {np.dtype(name): code for code, name in enumerate(DTYPES) if code != BFLOAT16}


def _array(value: Any, where: str) -> npt.NDArray[Any]:
    if hasattr(value, "detach"):  # torch: off its graph and its device
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: cannot be an array: {error}") from error
    if array.dtype == np.float64 and not isinstance(value, np.ndarray):
        array = array.astype(np.float32)  # Python's own numbers
    return array


def plain(value: Any, where: str) -> npt.NDArray[Any]:
    """An array of a dtype that is sent, in one piece."""
    array = value if type(value) is np.ndarray else _array(value, where)
    if array.dtype not in _CODES and array.dtype.name != "bfloat16":
        names = ", ".join(str(dtype) for dtype in _CODES)
        raise TypeError(f"{where}: is {array.dtype}; sent are {names} and bfloat16")
    if array.ndim > MOST_SIDES:
        raise ValueError(
            f"{where}: has {array.ndim} sides, at most {MOST_SIDES} are sent"
        )
    return np.ascontiguousarray(array)  # which also gives a number one side


def code(array: npt.NDArray[Any]) -> int:
    return _CODES.get(array.dtype, BFLOAT16)


def address(array: Any) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, empty or bfloat16: slower
        return array.__array_interface__["data"][0]


class Memory:
    """Memory of C's, for numpy.asarray(); it keeps `owner` while an array looks."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, at: int, dtype: int, shape: tuple[int, ...], owner: object):
        self.owner = owner
        self.__array_interface__ = {
            "data": (at, True),
            "typestr": DTYPES[dtype],
            "shape": shape,
            "version": 3,
        }


def view(
    at: int, dtype: int, shape: tuple[int, ...], owner: object
) -> npt.NDArray[Any]:
    """A read-only array. Empty ones have no memory."""
    if not at or 0 in shape:
        return np.empty(shape, DTYPES[dtype])
    return np.asarray(Memory(at, dtype, shape, owner))
