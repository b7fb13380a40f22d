# SPDX-License-Identifier: Apache-2.0
"""Robots and models on Tendon: docs/python.md begins with ten lines of each."""

from ._library import VERSION as __version__
from .connection import Connection, Encoded, Model, Result
from .errors import Closed, Error, Invalid, Mismatch, Timeout
from .robot import Robot, Step
from .server import ScoreRequest, Server, Stats, register_policy

__all__ = [
    "Closed",
    "Connection",
    "Encoded",
    "Error",
    "Invalid",
    "Mismatch",
    "Model",
    "Result",
    "Robot",
    "ScoreRequest",
    "Server",
    "Stats",
    "Step",
    "Timeout",
    "__version__",
    "register_policy",
]
