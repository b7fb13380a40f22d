# SPDX-License-Identifier: Apache-2.0
"""A Python callable as the function of a callback engine (tendon/infer.h)."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _arrays, _library, _types
from ._callback_errors import CallbackErrors
from ._driver import floats
from .worker.answers import Misfit, split, to_chunk, to_value
from .worker.policy import Policy

#: A function that a server calls.
inside = _library.Inside()


class Loop:
    """An event loop on a thread of its own, for the asynchronous functions of a
    server: they run side by side, however many threads wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait(self, awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(_wait(awaitable), self._get()).result()

    def _get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if not self._loop:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="tendon-loop", daemon=True
                ).start()
            return self._loop

    def close(self) -> None:
        """Nothing waits any more."""
        with self._lock:
            if self._loop:
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


async def _wait(awaitable: Any) -> Any:
    with inside:
        return await awaitable


class Infer:
    """Holds what C borrows; must live until the server is closed."""

    def __init__(
        self,
        call: Callable[..., Any],
        batched: bool,
        callback_errors: CallbackErrors,
        loop: Loop,
    ) -> None:
        self.policy = Policy(call, batched, loop.wait)
        self.callback_errors = callback_errors
        self.function = _types.InferFn(self._infer)

    def _infer(self, _user: int, requests: Any, count: int, info: Any) -> int:
        try:
            members = [requests[i].contents for i in range(count)]
            with inside:
                answers = self.policy.run([observation(each) for each in members])
            for pointer, answer in zip(requests[:count], answers, strict=True):
                self._put(pointer, answer)
            return _types.OK
        except BaseException as error:
            self.callback_errors.add("model", error)
            put_error(info.contents if info else None, error)
            return status_of(error)

    def _put(self, pointer: Any, answer: Any) -> None:
        request = pointer.contents
        try:
            if isinstance(answer, Exception):
                raise answer
            shape = (request.chunk_rows, request.action_count)
            actions, named = split(answer)
            rows = to_chunk(actions, shape)
            floats(request.actions, *shape)[: len(rows)] = rows
            request.rows = len(rows)
            for name, value in named.items():
                put_result(pointer, name, value)
        except Exception as error:
            self.callback_errors.add("model", error)
            request.status = status_of(error)
            put_error(request.info.contents if request.info else None, error)


def observation(request: Any) -> dict[str, Any]:
    """As a model worker has it (docs/worker.md); arrays are good until the call is
    over."""
    obs: dict[str, Any] = {
        "client": str(request.client),
        "task": str(request.task),
        "metadata": {
            str(pair.name): str(pair.text)
            for pair in request.metadata[: request.metadata_count]
        },
        "seed": request.seed,
        "cursor": request.cursor,
        "boot": request.boot,
        "episode": request.episode,
        "seq": request.seq,
        "rtc": None,
    }
    if request.has_rtc:
        obs["rtc"] = {
            "base_chunk": request.rtc_base_chunk,
            "delay_steps": request.rtc_delay_steps,
            "prefix": _tensor(request.rtc_prefix.contents),
        }
    if request.state_count:
        obs["state"] = _arrays.view(request.state, 0, (request.state_count,), request)
    for i in range(request.tensor_count):
        obs[str(request.tensors[i].name)] = _tensor(request.tensors[i])
    for i in range(request.image_count):
        image = request.images[i]
        if image.rgb:
            shape = (image.height, image.width, 3)
            obs[str(image.name)] = _arrays.view(image.rgb, 4, shape, request)
        else:  # of no camera of the model's: as it came
            data = ctypes.string_at(image.data, image.bytes)
            raw = np.frombuffer(data, np.uint8)
            shape = (image.height, image.width, -1)
            is_raw = image.codec == _types.INFER_RAW
            obs[str(image.name)] = raw.reshape(shape) if is_raw else data
    return obs


def _tensor(tensor: Any) -> Any:
    shape = tuple(tensor.shape[: tensor.rank])
    return _arrays.view(tensor.data, tensor.dtype, shape, tensor)


def put_result(pointer: Any, name: str, value: Any) -> None:
    """`text` is the answer's own; any other text goes as its letters."""
    if name == "text" and isinstance(value, str):
        words = value.encode()
        text = ctypes.create_string_buffer(words)
        named = _types.InferText(ctypes.addressof(text), len(words))
        return _library.call("td_infer_set_text", pointer, named)
    name, code, array = to_value(name, value)
    array = np.ascontiguousarray(array)
    letters = name.encode()
    text = ctypes.create_string_buffer(letters)
    tensor = _types.InferTensor(rank=array.ndim, dtype=code, age_us=-1)
    tensor.name = _types.InferText(ctypes.addressof(text), len(letters))
    tensor.shape[: array.ndim] = array.shape
    tensor.data, tensor.bytes = _arrays.address(array), array.nbytes
    return _library.call("td_infer_result", pointer, ctypes.byref(tensor))


def status_of(error: BaseException) -> int:
    if isinstance(error, MemoryError):
        return _types.NOMEM
    return _types.MISMATCH if isinstance(error, Misfit) else _types.INTERNAL


def put_error(info: Any, error: BaseException) -> None:
    if info is not None:
        words = f"{type(error).__name__}: {error}".encode(errors="replace")
        info.text = words[:511].decode(errors="ignore").encode()
