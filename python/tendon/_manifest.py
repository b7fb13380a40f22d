# SPDX-License-Identifier: Apache-2.0
"""A manifest's entries, of callables and keywords."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from .settings import identity

FOLDER = str(pathlib.Path(__file__).resolve().parents[1])
WORKER = (
    f"import sys; sys.path.insert(0, {FOLDER!r});"
    " from tendon.worker.__main__ import main; main()"
)


def worker(target: str, batched: bool) -> list[str]:
    """This very Python and package, whatever `python3` may be elsewhere."""
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise ValueError(f"{target!r} is not module:callable or file.py:callable")
    if where.endswith(".py"):
        path = pathlib.Path(where).resolve()
        if not path.exists():
            raise FileNotFoundError(f"{path} is not there")
        target = f"{path}:{name}"
    command = [sys.executable, "-c", WORKER, target]
    return command + ["--batched"] if batched else command


def list_name(fields: Mapping[str, Any]) -> str:
    """What a manifest calls its list of models."""
    return "server" if "server" in fields and "models" not in fields else "models"


def beside(entry: Mapping[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """A file of a manifest's entry stands beside the manifest."""
    made = dict(entry)
    python = str((made.get("engine") or {}).get("python") or "")
    if ".py:" in python:
        made["engine"] = made["engine"] | {"python": str(folder / python)}
    return made


def engine(call: Any, batched: bool, given: dict[str, Any]) -> dict[str, Any]:
    """A manifest's `engine`. Cameras may be (height, width), as elsewhere."""
    if isinstance(call, str):
        made: dict[str, Any] = {"kind": "worker", "command": worker(call, batched)}
    elif callable(call):
        made = {"kind": "callback"} | dict(getattr(call, "spec", {}))
    else:
        raise TypeError(f"a {type(call).__name__} cannot be called, and is no model")
    made |= given
    if isinstance(made.get("cameras"), Mapping):
        made["cameras"] = {
            name: size
            if isinstance(size, Mapping)
            else {"height": size[0], "width": size[1]}
            for name, size in made["cameras"].items()
        }
    return made


def add(
    entries: list[dict[str, Any]], entry: dict[str, Any], server: str | None
) -> None:
    """Over the file's entry of that model, or as a new one."""
    mine = next((e for e in entries if e.get("model_id") == entry["model_id"]), None)
    if mine is not None:
        given = {name: value for name, value in entry.items() if value is not None}
        if "clients" in mine or "accept_unknown" in mine:
            del given["accept_unknown"]
        mine |= given | {"engine": dict(mine.get("engine") or {}) | entry["engine"]}
        return
    known = {
        "server": entry.get("endpoint") or server,
        "version": entry["model_version"],
        "application": entry["application_tag"],
    }
    found = identity(known, tuple(known))
    entries.append(
        entry
        | {
            "model_version": str(found["version"]),
            "application_tag": found["application"],
            "endpoint": found["server"],
        }
    )
