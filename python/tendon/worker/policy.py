# SPDX-License-Identifier: Apache-2.0
"""A user's callable, whatever it is, as one function of a batch."""

import asyncio
import functools
import importlib
import importlib.util
import inspect
import pathlib
import sys

import numpy as np


def load(target):
    """What `module:name` or `path/to/file.py:name` names; a class is made."""
    where, colon, name = target.rpartition(":")
    if not colon or not name:
        raise ValueError(f"{target!r} is not module:callable or file.py:callable")
    module = _load_file(where) if where.endswith(".py") else None
    module = module or importlib.import_module(where)
    found = functools.reduce(getattr, name.split("."), module)
    found = found() if inspect.isclass(found) else found
    if not callable(found):
        raise TypeError(f"{target} is a {type(found).__name__} and cannot be called")
    return found


def _load_file(where):
    path = pathlib.Path(where).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@functools.lru_cache  # once for each
def _say_left_out(names):
    print("only actions are sent, left out:", ", ".join(sorted(map(str, names))))


def actions_of(answer):
    """What is sent of a dict."""
    if "actions" not in answer:
        names = ", ".join(map(str, answer))
        raise Misfit(f"the policy gave a dict of {names or 'nothing'}, not of actions")
    if len(answer) > 1:
        _say_left_out(frozenset(answer) - {"actions"})
    return answer["actions"]


def to_array(value):
    """float32 of anything array-like: numpy, torch, jax, lists."""
    if isinstance(value, dict):
        value = actions_of(value)
    if hasattr(value, "detach"):  # torch: off its graph and its device
        value = value.detach().cpu()
        if value.dtype.itemsize == 2:  # numpy has no bfloat16
            value = value.float()
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        try:
            value = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError):
            pass  # on a device, or of a kind that numpy has not; it may convert
    return np.asarray(value, dtype=np.float32)


def to_chunk(value, shape):
    """Rows of actions that fit the model."""
    array = to_array(value)
    if array.ndim == 1:
        array = array[None]
    rows, channels = shape
    fits = array.ndim == 2 and 1 <= len(array) <= rows and array.shape[1] == channels
    if not fits:
        got = " x ".join(map(str, array.shape))
        raise Misfit(f"the policy gave {got}, the model has 1 to {rows} x {channels}")
    return array


class Misfit(ValueError):
    """An answer of a shape that the model has not."""


class Policy:
    def __init__(self, call, batched=False):
        self.call = call
        self.batched = batched or getattr(call, "batched", False)
        self.spec = getattr(call, "spec", {})
        self.waits = any(map(inspect.iscoroutinefunction, (call, type(call).__call__)))
        self.loop = None

    def run(self, observations, beat=lambda member: None):
        """An answer, or the exception, for each observation."""
        if self.batched:
            return self._run_batch(observations)
        if self.waits:
            calls = [self.call(obs) for obs in observations]
            return self._wait(_together(calls))
        return [self._run_one(obs, beat, i) for i, obs in enumerate(observations)]

    def _run_one(self, obs, beat, member):
        beat(member)
        try:
            answer = self.call(obs)
            return self._wait(answer) if inspect.isawaitable(answer) else answer
        except Exception as error:
            return error

    def _run_batch(self, observations):
        try:
            answers = self.call(observations)
            if inspect.isawaitable(answers):
                answers = self._wait(answers)
            if len(answers) != len(observations):
                raise Misfit(
                    f"the policy gave {len(answers)} answers"
                    f" to {len(observations)} observations"
                )
            return list(answers)
        except Exception as error:
            return [error] * len(observations)

    def _wait(self, awaitable):
        if not self.loop:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(awaitable)


async def _together(calls):
    return await asyncio.gather(*calls, return_exceptions=True)
