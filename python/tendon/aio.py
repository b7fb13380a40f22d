# SPDX-License-Identifier: Apache-2.0
"""tendon.Connection for asyncio: the same names, awaited.

    async with tendon.aio.Connection("tcp/gpu-box:7447", "station-1") as connection:
        model = connection.model("pi0")
        await model.observe(state=state)
        result = await model.get_result(timeout_ms=200)

No thread waits: results wake the event loop through a descriptor.
"""

from __future__ import annotations

import asyncio
from typing import Any

from . import connection as sync
from .connection import Encoded, Result

__all__ = ["Connection", "Encoded", "Model", "Result"]


class Model:
    """Made by Connection.model(). Of one event loop; any number of its tasks."""

    def __init__(self, model: sync.Model) -> None:
        self._model = model
        self._waiting: set[asyncio.Future[None]] = set()

    async def observe(self, **observation: Any) -> int:
        """As tendon.Model.observe(). Pictures are compressed beside the loop."""
        return await asyncio.to_thread(self._model.observe, **observation)

    async def get_result(self, timeout_ms: float | None = None) -> Result | None:
        """As tendon.Model.get_result(). A task that is cancelled takes none."""
        loop = asyncio.get_running_loop()
        until = None if timeout_ms is None else loop.time() + timeout_ms / 1e3
        while True:
            result = self._model.get_result(0)
            if result or (until is not None and loop.time() >= until):
                return result
            await self._readable(loop, until)

    async def _readable(
        self, loop: asyncio.AbstractEventLoop, until: float | None
    ) -> None:
        """All who wait are woken, and those who find nothing wait again."""
        woken: asyncio.Future[None] = loop.create_future()
        descriptor = self._model.fileno()
        if not self._waiting:
            loop.add_reader(descriptor, self._wake)
        self._waiting.add(woken)
        timer = loop.call_at(until, _end, woken) if until is not None else None
        try:
            await woken
        finally:
            if timer:
                timer.cancel()
            self._waiting.discard(woken)
            if not self._waiting:
                loop.remove_reader(descriptor)

    def _wake(self) -> None:
        for woken in self._waiting:
            _end(woken)

    async def wait(self, timeout_ms: float | None = None) -> None:
        """As tendon.Model.wait()."""
        await asyncio.to_thread(self._model.wait, timeout_ms)

    @property
    def state(self) -> str:
        return self._model.state

    def report(self) -> dict[str, float]:
        return self._model.report()

    async def close(self) -> None:
        await asyncio.to_thread(self._model.close)
        self._wake()

    async def __aenter__(self) -> Model:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _end(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


class Connection:
    """As tendon.Connection, with which it shares its arguments."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._connection = sync.Connection(*arguments, **settings)
        self._models: list[Model] = []

    def model(self, *arguments: Any, **settings: Any) -> Model:
        made = Model(self._connection.model(*arguments, **settings))
        self._models.append(made)
        return made

    async def close(self) -> None:
        for model in self._models:
            await model.close()
        await asyncio.to_thread(self._connection.close)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
