# SPDX-License-Identifier: Apache-2.0
"""What a robot's class, its file and its arguments say of it, as one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import errors
from .settings import IDENTITY, Path, Settings, identity

if TYPE_CHECKING:
    from .robot import Robot


class Description(NamedTuple):
    """Names, in order."""

    joints: tuple[str, ...]
    states: tuple[str, ...]  # none: where the joints are
    cameras: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Description:
        section = settings.fields["robot"]
        return cls(*(tuple(section[field]) for field in cls._fields))


def join(robot: Robot, config: Path | None, given: Mapping[str, Any]) -> Settings:
    """The class's declarations, under the file's fields, under the arguments."""
    made = Settings()
    found = {IDENTITY[name][1]: value for name, value in identity({}, ()).items()}
    found.pop("client_type", None)
    made.add(found, "TENDON_* or tendon.yaml: ")
    if config is not None:
        made.add_file(config)
    made.add(_recorded(given), "argument ")
    kind = f"class {type(robot).__name__}"
    section = dict(made.fields.get("robot") or {})
    declared = {field: getattr(robot, field) for field in Description._fields}
    for field, members in declared.items():
        section[field] = _under(field, kind, _fields(members), section.get(field))
    if not section["joints"]:
        raise errors.Invalid(
            f"joints: the {kind} must name the robot's joints, in the policy's order",
            "INVALID",
        )
    place = made.places.get("robot")
    made.fields["robot"] = {"kind": "callback"} | section
    made.places["robot"] = f"{kind}, {place}" if place else f"{kind}: "
    return made


def _recorded(given: Mapping[str, Any]) -> dict[str, Any]:
    """record="DIR" is short for its section."""
    folder = given.get("record")
    if not isinstance(folder, str | os.PathLike):
        return dict(given)
    return {**given, "record": {"dir": os.fspath(folder)}}


def _fields(members: Any) -> dict[str, Any]:
    """By name: fields, a camera's (height, width), or nothing but the name."""
    if isinstance(members, Mapping):
        return {name: _sized(name, value) for name, value in members.items()}
    names = list(members or ())
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            raise errors.Invalid(f"{name!r} is not one name among {names}", "INVALID")
    return {name: {} for name in names}


def _sized(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    try:
        height, width = value
    except (TypeError, ValueError):
        raise TypeError(f"{name}: must be (height, width), is {value!r}") from None
    return {"height": height, "width": width}


def _under(
    field: str, kind: str, declared: dict[str, Any], given: Any
) -> dict[str, Any]:
    """A file may say more of a joint or camera, but neither name others than the
    class nor in another order."""
    more = _fields(given)
    if not declared:
        return more
    if list(more) != [name for name in declared if name in more]:
        raise errors.Invalid(
            f"robot.{field}: the {kind} has {', '.join(declared)},"
            f" the settings {', '.join(more)}",
            "INVALID",
        )
    return {name: fields | more.get(name, {}) for name, fields in declared.items()}
