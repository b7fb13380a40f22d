# SPDX-License-Identifier: Apache-2.0
"""The structs and functions of include/tendon/, as ctypes has them."""

from __future__ import annotations

import ctypes as c
import struct
from typing import Any

#: td_err
OK, NOMEM, EMPTY, TIMEOUT, IO, MISMATCH, INTERNAL = 0, 2, 4, 7, 11, 15, 18
INFER_RAW = 2


def _letters(kind: Any) -> str:
    if issubclass(kind, c.Structure):
        return "".join(_letters(each[1]) for each in kind._fields_)
    if issubclass(kind, c.Array):
        item: Any = kind._type_
        return _letters(item) * (c.sizeof(kind) // c.sizeof(item))
    simple = isinstance(kind._type_, str) and kind._type_ not in "zP"
    return kind._type_ if simple else "P"


def record(kind: type[c.Structure]) -> struct.Struct:
    """The same memory, written and read whole: a call instead of one a field."""
    made = struct.Struct(f"@{_letters(kind)}0q")
    assert made.size == c.sizeof(kind), kind
    return made


class ErrInfo(c.Structure):
    _fields_ = [("text", c.c_char * 512)]


class Overlap(c.Structure):
    _fields_ = [
        ("first", c.c_uint64),
        ("rows", c.c_uint32),
        ("count", c.c_uint32),
        ("old_rows", c.c_void_p),
        ("new_rows", c.c_void_p),
    ]


ReadFn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_uint32)
ObserveStateFn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_uint32)
WriteFn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_uint32)
PictureFn = c.CFUNCTYPE(
    *(c.c_int, c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t),
    *(c.c_uint32, c.c_uint32, c.POINTER(c.c_size_t)),
)
ControlFn = c.CFUNCTYPE(
    c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_uint32, c.c_void_p
)
BlendFn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Overlap), c.c_void_p)


class Driver(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("user", c.c_void_p),
        ("read", ReadFn),
        ("write", WriteFn),
        ("frame", c.c_void_p),
        ("control", ControlFn),
        ("aggregate", c.c_void_p),
        ("blend", BlendFn),
        ("blend_limit_s", c.c_double),
        ("observe_state", ObserveStateFn),
        ("picture", PictureFn),
    ]


class StepResult(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("doing", c.c_int),
        ("limited", c.c_bool),
        ("left", c.c_uint32),
        ("age_us", c.c_int64),
    ]


NumberFn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_double)
LogFn = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)

_INFO = c.POINTER(ErrInfo)
_OUT = c.POINTER(c.c_void_p)

#: Result and arguments of every function that is called.
FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "td_err_name": (c.c_char_p, [c.c_int]),
    "td_err_text": (c.c_char_p, [c.c_int]),
    "td_version": (c.c_uint32, []),
    "td_version_text": (c.c_char_p, []),
    "td_robot_open_text": (c.c_int, [c.c_char_p, c.POINTER(Driver), _OUT, _INFO]),
    "td_robot_run": (c.c_int, [c.c_void_p, _INFO]),
    "td_robot_stop": (None, [c.c_void_p]),
    "td_robot_close": (None, [c.c_void_p]),
    "td_robot_step": (
        c.c_int,
        [c.c_void_p, c.c_void_p, c.c_void_p, c.POINTER(StepResult)],
    ),
    "td_robot_joints": (c.c_uint32, [c.c_void_p]),
    "td_robot_reset": (c.c_int, [c.c_void_p, c.c_char_p, _INFO]),
    "td_robot_set_task": (c.c_int, [c.c_void_p, c.c_char_p, _INFO]),
    "td_robot_episode_begin": (c.c_int, [c.c_void_p, _INFO]),
    "td_robot_episode_end": (c.c_int, [c.c_void_p, c.c_bool, _INFO]),
    "td_robot_state": (c.c_char_p, [c.c_void_p]),
    "td_robot_report": (c.c_int, [c.c_void_p, NumberFn, c.c_void_p]),
    "td_log_to": (c.c_int, [LogFn, c.c_void_p, c.c_int]),
}


class ConnectionSettings(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("server", c.c_char_p),
        ("cluster", c.c_char_p),
        ("experiment", c.c_char_p),
        ("client_id", c.c_char_p),
        ("client_type", c.c_char_p),
        ("peer", c.c_bool),
        ("no_shared_memory", c.c_bool),
        ("every", c.c_bool),
    ]


class ModelSettings(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("model_id", c.c_char_p),
        ("version", c.c_char_p),
        ("application", c.c_char_p),
        ("latency_budget_ms", c.c_int64),
        ("has_priority", c.c_bool),
        ("priority", c.c_uint32),
        ("limit_ms", c.c_int64),
        ("jpeg_quality", c.c_uint32),
        ("raw_if_shared", c.c_bool),
    ]


class Tensor(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", c.c_int),
        ("rank", c.c_uint32),
        ("shape", c.c_uint32 * 8),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
        ("has_age", c.c_bool),
        ("age_us", c.c_int64),
    ]


RAW, JPEG, PNG = range(3)


class Image(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("codec", c.c_int),
        ("height", c.c_uint32),
        ("width", c.c_uint32),
        ("channels", c.c_uint32),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
    ]


class Pair(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_char_p)]


class Observation(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("state", Tensor),
        ("tensors", c.POINTER(Tensor)),
        ("tensor_count", c.c_uint32),
        ("images", c.POINTER(Image)),
        ("image_count", c.c_uint32),
        ("metadata", c.POINTER(Pair)),
        ("metadata_count", c.c_uint32),
        ("task", c.c_char_p),
        ("urgency", c.c_float),
        ("has_priority", c.c_bool),
        ("priority", c.c_uint32),
        ("has_steps_remaining", c.c_bool),
        ("steps_remaining", c.c_uint32),
        ("must_go", c.c_bool),
        ("episode", c.c_uint64),
        ("cursor", c.c_uint64),
        ("latency_budget_ms", c.c_int64),
        ("limit_ms", c.c_int64),
    ]


class ModelResult(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("seq", c.c_uint64),
        ("outcome", c.c_int),
        ("error", c.c_int),
        ("error_text", c.c_char_p),
        ("kind", c.c_int),
        ("actions", Tensor),
        ("results", c.POINTER(Tensor)),
        ("result_count", c.c_uint32),
        ("text", c.c_char_p),
        ("is_unsafe", c.c_bool),
        ("server", c.c_char_p),
        ("chunk_id", c.c_uint64),
        ("inference_ms", c.c_float),
        ("queue_ms", c.c_float),
        ("round_trip_us", c.c_int64),
        ("superseded", c.POINTER(c.c_uint64)),
        ("superseded_count", c.c_uint32),
    ]


FUNCTIONS |= {
    "td_connection_open": (c.c_int, [c.POINTER(ConnectionSettings), _OUT, _INFO]),
    "td_connection_close": (None, [c.c_void_p]),
    "td_connection_model": (
        c.c_int,
        [c.c_void_p, c.POINTER(ModelSettings), _OUT, _INFO],
    ),
    "td_model_wait": (c.c_int, [c.c_void_p, c.c_int64, _INFO]),
    "td_model_state": (c.c_char_p, [c.c_void_p]),
    "td_model_observe": (
        c.c_int,
        [c.c_void_p, c.c_void_p, c.POINTER(c.c_uint64), _INFO],
    ),
    "td_model_get_result": (
        c.c_int,
        [c.c_void_p, c.c_int64, c.POINTER(c.POINTER(ModelResult))],
    ),
    "td_model_result_free": (None, [c.POINTER(ModelResult)]),
    "td_model_fd": (c.c_int, [c.c_void_p, c.POINTER(c.c_int)]),
    "td_model_report": (None, [c.c_void_p, NumberFn, c.c_void_p]),
    "td_model_stop": (None, [c.c_void_p]),
    "td_model_close": (None, [c.c_void_p]),
}


class InferText(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_uint32)]

    def __str__(self) -> str:
        return c.string_at(self.data, self.size).decode() if self.size else ""


class InferTensor(c.Structure):
    _fields_ = [
        ("name", InferText),
        ("dtype", c.c_int),
        ("rank", c.c_uint32),
        ("shape", c.c_uint32 * 8),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
        ("age_us", c.c_int64),
    ]


class InferImage(c.Structure):
    _fields_ = [
        ("name", InferText),
        ("rgb", c.c_void_p),
        ("height", c.c_uint32),
        ("width", c.c_uint32),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
        ("codec", c.c_int),
    ]


class InferPair(c.Structure):
    _fields_ = [("name", InferText), ("text", InferText)]


class InferRequest(c.Structure):
    _fields_ = [
        ("client", InferText),
        ("task", InferText),
        ("boot", c.c_uint64),
        ("episode", c.c_uint64),
        ("seq", c.c_uint64),
        ("cursor", c.c_uint64),
        ("seed", c.c_uint64),
        ("urgency", c.c_float),
        ("priority", c.c_uint32),
        ("steps_remaining", c.c_int64),
        ("state", c.c_void_p),
        ("state_count", c.c_uint32),
        ("state_age_us", c.c_int64),
        ("images", c.POINTER(InferImage)),
        ("image_count", c.c_uint32),
        ("tensors", c.POINTER(InferTensor)),
        ("tensor_count", c.c_uint32),
        ("metadata", c.POINTER(InferPair)),
        ("metadata_count", c.c_uint32),
        ("has_rtc", c.c_bool),
        ("rtc_base_chunk", c.c_uint64),
        ("rtc_delay_steps", c.c_uint32),
        ("rtc_prefix", c.POINTER(InferTensor)),
        ("actions", c.c_void_p),
        ("chunk_rows", c.c_uint32),
        ("action_count", c.c_uint32),
        ("rows", c.c_uint32),
        ("status", c.c_int),
        ("info", c.POINTER(ErrInfo)),
        ("library", c.c_void_p),
    ]


class ScoreRequest(c.Structure):
    _fields_ = [
        (name, c.c_double)
        for name in (
            "age_ms",
            "budget_ms",
            "urgency",
            "priority",
            "steps_remaining",
            "slack_ms",
            "overdue_ms",
            "score",
        )
    ] + [("client", c.c_char_p), ("model", c.c_char_p)]


class ServerLabels(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("server", c.c_char_p),
        ("model", c.c_char_p),
        ("client", c.c_char_p),
        ("error", c.c_char_p),
    ]


class ServerSpread(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("count", c.c_uint64),
        ("mean", c.c_double),
        ("min", c.c_double),
        ("max", c.c_double),
        ("p50", c.c_double),
        ("p95", c.c_double),
        ("p99", c.c_double),
    ]


class ServerEvent(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("number", c.c_uint64),
        ("kind", c.c_char_p),
        ("server", c.c_char_p),
        ("client", c.c_char_p),
        ("text", c.c_char_p),
    ]


InferFn = c.CFUNCTYPE(
    c.c_int, c.c_void_p, c.POINTER(c.POINTER(InferRequest)), c.c_uint32, _INFO
)
ScoreFn = c.CFUNCTYPE(c.c_double, c.c_void_p, c.POINTER(ScoreRequest))
MetricFn = c.CFUNCTYPE(
    None, c.c_void_p, c.c_char_p, c.c_double, c.POINTER(ServerLabels)
)
EventFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(ServerEvent))

FUNCTIONS |= {
    "td_infer_result": (
        c.c_int,
        [c.POINTER(InferRequest), c.POINTER(InferTensor), _INFO],
    ),
    "td_infer_set_text": (c.c_int, [c.POINTER(InferRequest), InferText, _INFO]),
    "td_server_open_text": (c.c_int, [c.c_char_p, _OUT, _INFO]),
    "td_server_use_model": (
        c.c_int,
        [c.c_void_p, c.c_char_p, InferFn, c.c_void_p, _INFO],
    ),
    "td_server_use_scheduling": (
        c.c_int,
        [c.c_void_p, c.c_char_p, ScoreFn, c.c_void_p, _INFO],
    ),
    "td_server_start": (c.c_int, [c.c_void_p, _INFO]),
    "td_server_stop": (None, [c.c_void_p]),
    "td_server_drain": (c.c_int, [c.c_void_p, c.c_int64, _INFO]),
    "td_server_close": (None, [c.c_void_p]),
    "td_server_state": (c.c_char_p, [c.c_void_p, c.c_char_p]),
    "td_server_get_stats": (
        c.c_int,
        [
            c.c_void_p,
            c.c_char_p,
            c.POINTER(ServerLabels),
            c.c_double,
            c.POINTER(ServerSpread),
            _INFO,
        ],
    ),
    "td_server_get_latest": (
        c.c_int,
        [
            c.c_void_p,
            c.c_char_p,
            c.POINTER(ServerLabels),
            c.POINTER(c.c_double),
            _INFO,
        ],
    ),
    "td_server_on_metric": (c.c_int, [c.c_void_p, MetricFn, c.c_void_p]),
    "td_server_on_event": (c.c_int, [c.c_void_p, EventFn, c.c_void_p]),
    "td_server_dropped": (c.c_uint64, [c.c_void_p]),
}
