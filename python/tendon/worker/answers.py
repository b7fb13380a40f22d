# SPDX-License-Identifier: Apache-2.0
"""What a policy may answer, as what the ring carries."""

import numpy as np

from . import layout

# What numpy has and the wire has not, in what holds all of it.
WIDER = {"uint16": "<i4", "uint32": "<i8", "bfloat16": "<f4"}


class Misfit(ValueError):
    """An answer that the model cannot have given, or that cannot be sent."""


def split(answer):
    """The actions of an answer, and what it names beside them."""
    if not isinstance(answer, dict):
        return answer, {}
    if "actions" not in answer:
        names = ", ".join(map(str, answer))
        raise Misfit(f"the policy gave a dict of {names or 'nothing'}, not of actions")
    named = {key: value for key, value in answer.items() if value is not None}
    return named.pop("actions"), named


def to_numpy(value):
    """An array of anything like one: numpy, torch, jax, lists."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # torch: off its graph and its device
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() == 2:
            value = value.float()  # numpy has no bfloat16
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError):
            pass  # on a device, or of a kind that numpy has not; it may convert
    return np.asarray(value)


def to_chunk(value, shape):
    """Rows of actions that fit the model."""
    try:
        array = np.asarray(to_numpy(value), dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise Misfit(f"the policy gave no rows of numbers: {error}") from error
    if array.ndim == 1:
        array = array[None]
    rows, channels = shape
    fits = array.ndim == 2 and 1 <= len(array) <= rows and array.shape[1] == channels
    if not fits:
        got = " x ".join(map(str, array.shape))
        raise Misfit(f"the policy gave {got}, the model has 1 to {rows} x {channels}")
    return array


def to_value(name, value):
    """One named result: its name, its dtype in the ring and its array."""
    words = name.encode() if isinstance(name, str) else b""
    if not 1 <= len(words) <= layout.MAX_NAME or not name.isprintable():
        raise Misfit(f"results: {name!r} is not a name of 1 to 64 bytes")
    if isinstance(value, str | bytes):
        return _to_letters(name, value)
    array = to_numpy(value)
    array = array[None] if array.ndim == 0 else array
    wanted = WIDER.get(array.dtype.name) or array.dtype.newbyteorder("<")
    dtype = np.dtype(wanted).str
    if dtype not in layout.DTYPES or dtype == "<u2" or array.ndim > 8:
        what = f"{array.dtype} of {array.ndim} sides"
        raise Misfit(f"results: {name} is {what}, which cannot be sent")
    return name, layout.DTYPES.index(dtype), array.astype(dtype, copy=False)


def _to_letters(name, text):
    is_text = name == "text" and isinstance(text, str)
    array = np.frombuffer(text.encode() if isinstance(text, str) else text, "|u1")
    if is_text and len(array) > layout.MAX_TEXT:
        raise Misfit(f"text: {len(array)} bytes, at most {layout.MAX_TEXT}")
    dtype = layout.TEXT_DTYPE if is_text else layout.DTYPES.index("|u1")
    return name, dtype, array


def to_values(named, room):
    """The named results of one answer, if there is room for them."""
    if not named:
        return []
    values = [to_value(name, value) for name, value in named.items()]
    if len(values) > layout.MAX_VALUES:
        raise Misfit(f"results: {len(values)}, at most {layout.MAX_VALUES}")
    size = sum(layout.round_up(array.nbytes) for _, _, array in values)
    if size > room:
        raise Misfit(f"results: {size} bytes, there is room for {room} (results_kb)")
    return values
