# SPDX-License-Identifier: Apache-2.0
"""Settings: of arguments, files, variables and classes, as one YAML text.

The C side reads the text, checks every field and says what is wrong with which;
here it is only put together, and an error traced back to who gave the field.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from . import errors

Path = str | os.PathLike[str]

FOLDER_FILE = "tendon.yaml"

#: Settings that name the server, the model and the client: the argument, its variable, and its field.
IDENTITY: dict[str, tuple[str, str]] = {
    "server": ("TENDON_SERVER", "endpoint"),
    "cluster": ("TENDON_CLUSTER", "cluster_uuid"),
    "experiment": ("TENDON_EXPERIMENT", "experiment_tag"),
    "model": ("TENDON_MODEL", "model_id"),
    "version": ("TENDON_VERSION", "model_version"),
    "application": ("TENDON_APPLICATION", "application_tag"),
    "client_id": ("TENDON_CLIENT_ID", "client_uuid"),
    "client_type": ("TENDON_CLIENT_TYPE", "client_type"),
}

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_PLAIN = {"true": True, "false": False, "": None, "~": None, "null": None}
_TEXT_PLACE = re.compile(r"^\(text\):(\d+): ")


class Number(str):
    """As it stands in a file: 1.10 is no 1.1 where it is a version."""


class Settings:
    """Fields by their names, each with where it comes from."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.places: dict[str, str] = {}

    def add(self, fields: Mapping[str, Any], place: str) -> None:
        """Over what is there; of two maps the members are joined."""
        for name, value in fields.items():
            self.fields[name] = _join(self.fields.get(name), value)
            self.places[name] = place

    def add_file(self, path: Path) -> None:
        for name, (value, line) in read(path).items():
            self.add({name: value}, f"{os.fspath(path)}:{line}: ")

    def text(self) -> str:
        """YAML, a field a line."""
        return "".join(
            f"{json.dumps(name)}: {render(value, name)}\n"
            for name, value in self.fields.items()
        )

    def trace(self, error: errors.Error) -> errors.Error:
        """The same error, with the field's own place for the text's."""
        found = _TEXT_PLACE.match(str(error))
        if not found:
            return error
        rest = str(error)[found.end() :]
        name = re.split(r"[.:]", rest, maxsplit=1)[0]
        return errors.make(error.code, self.places.get(name, "") + rest)


def _join(old: Any, new: Any) -> Any:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    joined = dict(old)
    for name, value in new.items():
        joined[name] = _join(joined.get(name), value)
    return joined


def render(value: Any, where: str) -> str:
    """As YAML that is JSON, too."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value))
    if isinstance(value, Mapping):
        members = (
            f"{json.dumps(str(name))}: {render(each, f'{where}.{name}')}"
            for name, each in value.items()
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render(each, where) for each in value) + "]"
    if hasattr(value, "item"):  # a number of numpy's
        return render(value.item(), where)
    raise TypeError(f"{where}: a setting cannot be a {type(value).__name__}")


def read(path: Path) -> dict[str, tuple[Any, int]]:
    """The fields of a file, each with its line."""
    import yaml  # here, so that a model worker needs numpy alone

    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise errors.Invalid(f"{os.fspath(path)}: {error.strerror}", "IO") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise errors.Invalid(f"{os.fspath(path)}: {error}", "FORMAT") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise errors.Invalid(f"{os.fspath(path)}:1: must be a map of fields", "FORMAT")
    return {
        str(name): (_value(node, path), line)
        for name, node, line in _members(root, path)
    }


def _members(node: Any, path: Path) -> list[tuple[str, Any, int]]:
    members = [(key.value, value, key.start_mark.line + 1) for key, value in node.value]
    seen: set[str] = set()
    for name, _, line in members:
        if name in seen:
            raise errors.Invalid(f"{os.fspath(path)}:{line}: {name} twice", "FORMAT")
        seen.add(name)
    return members


def _value(node: Any, path: Path) -> Any:
    if node.id == "mapping":
        return {name: _value(each, path) for name, each, _ in _members(node, path)}
    if node.id == "sequence":
        return [_value(each, path) for each in node.value]
    if node.style is not None:  # in quotes, or a block
        return node.value
    if node.value in _PLAIN:
        return _PLAIN[node.value]
    return Number(node.value) if _NUMBER.fullmatch(node.value) else node.value


def endpoint(server: str) -> str:
    """`tcp/host:7447`, as Zenoh writes it; `tcp://host:7447` means the same."""
    return re.sub(r"^(\w[\w-]*)://", r"\1/", server)


def identity(given: Mapping[str, Any], needed: tuple[str, ...]) -> dict[str, Any]:
    """What is not given comes from TENDON_* or tendon.yaml, by argument."""
    folder: dict[str, Any] = {}
    if pathlib.Path(FOLDER_FILE).exists():
        names = {field: name for name, (_, field) in IDENTITY.items()}
        for name, (value, line) in read(FOLDER_FILE).items():
            known = names.get(name, name)
            if known not in IDENTITY:
                fields = ", ".join(IDENTITY)
                raise errors.Invalid(
                    f"{FOLDER_FILE}:{line}: {name}: not known; there are: {fields}",
                    "INVALID",
                )
            folder[known] = None if value is None else str(value)
    found: dict[str, Any] = {}
    for name, (variable, _) in IDENTITY.items():
        value = given.get(name)
        if value is None:
            value = os.environ.get(variable) or folder.get(name)
        if value is not None:
            found[name] = value
    missing = [name for name in needed if name not in found]
    if missing:
        ways = "; ".join(
            f"{name}: as an argument, in {IDENTITY[name][0]}"
            f" or as {name} in {FOLDER_FILE}"
            for name in missing
        )
        raise errors.Invalid(f"missing: {ways}", "INVALID")
    if "server" in found:
        found["server"] = endpoint(found["server"])
    return found
