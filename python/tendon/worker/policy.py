# SPDX-License-Identifier: Apache-2.0
"""A user's callable, whatever it is, as one function of a batch."""

import asyncio
import functools
import importlib
import importlib.util
import inspect
import pathlib
import sys
from typing import Any

import numpy as np

from .answers import Misfit


def load(target):
    """What `module:name` or `path/to/file.py:name` names; a class is made."""
    where, colon, name = target.rpartition(":")
    if not colon or not name:
        raise ValueError(f"{target!r} is not module:callable or file.py:callable")
    module = _load_file(where) if where.endswith(".py") else None
    module = module or importlib.import_module(where)
    found: Any = functools.reduce(getattr, name.split("."), module)
    found = found() if inspect.isclass(found) else found
    if not callable(found):
        raise TypeError(f"{target} is a {type(found).__name__} and cannot be called")
    return found


def _load_file(where):
    path = pathlib.Path(where).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


HALVES = ("prefix", "decode", "prefix_bytes")


def is_async(call):
    """Whether calling it gives something to wait for."""
    return any(map(inspect.iscoroutinefunction, (call, type(call).__call__)))


class Policy:
    """`wait` waits for what an asynchronous callable gives; without it a loop of
    its own does."""

    def __init__(self, call, batched=False, wait=None):
        self.call = call
        self.wait = wait
        self.batched = batched or getattr(call, "batched", False)
        self.spec = dict(getattr(call, "spec", {}))
        self.spec["expects"] = callable(getattr(call, "expect", None))
        self.splits = bool(self.spec.get("prefix"))
        missing = [name for name in HALVES if not callable(getattr(call, name, None))]
        if self.splits and missing:
            raise TypeError(f"spec says prefix, but there is no {missing[0]}")
        self.waits = is_async(call)
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
            if isinstance(answer, np.ndarray):  # as most do
                return answer
            return self._wait(answer) if inspect.isawaitable(answer) else answer
        except Exception as error:
            return error

    def prefix(self, observations):
        """What decode() needs of each, or the exception."""
        return self._run_batch(observations, self.call.prefix)

    def decode(self, pairs):
        """An answer, or the exception, for each observation and its prefix."""
        return self._run_batch(pairs, self.call.decode)

    def prefix_bytes(self, prefix):
        return max(1, int(self.call.prefix_bytes(prefix)))

    def expect(self):
        self.call.expect()

    def drop(self, prefix):
        getattr(self.call, "drop", lambda _: None)(prefix)

    def _run_batch(self, observations, call=None):
        try:
            answers = (call or self.call)(observations)
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
        if self.wait:
            return self.wait(awaitable)
        if not self.loop:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(awaitable)


async def _together(calls):
    return await asyncio.gather(*calls, return_exceptions=True)
