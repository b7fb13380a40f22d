# SPDX-License-Identifier: Apache-2.0
"""A server's numbers."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Mapping

from . import _library, _types, errors

LABELS = ("server", "model", "client", "error")

#: The names of docs/metrics.md: those with percentiles, and the others.
SPREADS = (
    "inference_latency_ms",
    "scheduling_wait_ms",
    "e2e_latency_ms",
    "observation_staleness_ms",
    "payload_size_bytes",
    "batch_size",
    "dispatch_depth",
    "score_ms",
)
NUMBERS = (
    "queue_full_drops",
    "dispatch_errors",
    "dispatch_retries",
    "send_errors",
    "requests_expired",
    "observation_errors",
    "client_disconnected",
    "device_us",
    "batches",
    "prefixes_made",
    "chunks_decoded",
    "puts_failed",
    "events_dropped",
    "bad_resets",
    "resets_unread",
    "bad_queries",
    "bad_tokens",
    "score_calls",
    "score_not_finite",
    "attached",
    "refused_attach",
    "clients_departed",
    "clients_gone",
    "expected",
    "rerun_alone",
    "offenders",
    "misaligned",
    "kept_chunk_hits",
    "prefix_hits",
    "again_misses",
    "prefix_lost",
    "net_drops",
    "net_pool_misses",
    "net_panics",
    "queue_depth",
    "active_clients",
    "capacity",
    "prefixes",
    "prefix_bytes",
    "uptime_s",
)


@dataclasses.dataclass(frozen=True)
class Stats:
    """How a number was spread, in the unit of its name."""

    count: int
    mean: float
    min: float
    max: float
    p50: float
    p95: float
    p99: float


class Metrics:
    """The numbers of docs/metrics.md, by their names there."""

    def __init__(self, server: Callable[[], _library.Handle]) -> None:
        self._server = server

    def get_stats(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        window_seconds: float = 60,
    ) -> Stats:
        """Of a spread, over the last seconds; all 0 where there was nothing."""
        spread = _types.ServerSpread(size=ctypes.sizeof(_types.ServerSpread))
        with self._server() as pointer:
            _library.call(
                "td_server_get_stats",
                pointer,
                name.encode(),
                ctypes.byref(_labels(labels)),
                window_seconds,
                ctypes.byref(spread),
            )
        fields = (field.name for field in dataclasses.fields(Stats))
        return Stats(*(getattr(spread, name) for name in fields))

    def get_latest(
        self, name: str, labels: Mapping[str, str] | None = None
    ) -> float | None:
        """As it is now; None for a spread that has had no value."""
        value = ctypes.c_double()
        try:
            with self._server() as pointer:
                _library.call(
                    "td_server_get_latest",
                    pointer,
                    name.encode(),
                    ctypes.byref(_labels(labels)),
                    ctypes.byref(value),
                )
        except errors.Error as error:
            if error.code == "EMPTY":
                return None
            raise
        return value.value

    def snapshot(self, window_seconds: float = 60) -> dict[str, Stats | float | None]:
        """Every number of the server by its name, as it is now; spreads over the
        last seconds."""
        spreads = {name: self.get_stats(name, None, window_seconds) for name in SPREADS}
        return spreads | {name: self.get_latest(name) for name in NUMBERS}


def _labels(given: Mapping[str, str] | None) -> _types.ServerLabels:
    made = _types.ServerLabels(size=ctypes.sizeof(_types.ServerLabels))
    for name, value in (given or {}).items():
        if name not in LABELS:
            raise ValueError(f"labels: no {name!r}; there are {', '.join(LABELS)}")
        setattr(made, name, str(value).encode())
    return made
