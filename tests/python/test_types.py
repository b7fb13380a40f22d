# SPDX-License-Identifier: Apache-2.0
"""What ctypes has of C is what C says itself."""

import ctypes
import re
import subprocess

import pytest
from tendon import _types, result, robot
from tendon._arrays import DTYPES
from tendon_process import ROOT

STRUCTS = {
    "td_errinfo": _types.ErrInfo,
    "td_robot_overlap": _types.Overlap,
    "td_robot_driver": _types.Driver,
    "td_robot_result": _types.StepResult,
    "td_connection_settings": _types.ConnectionSettings,
    "td_model_settings": _types.ModelSettings,
    "td_model_tensor": _types.Tensor,
    "td_model_image": _types.Image,
    "td_model_pair": _types.Pair,
    "td_model_observation": _types.Observation,
    "td_model_result": _types.ModelResult,
    "td_infer_text": _types.InferText,
    "td_infer_tensor": _types.InferTensor,
    "td_infer_image": _types.InferImage,
    "td_infer_pair": _types.InferPair,
    "td_infer_request": _types.InferRequest,
    "td_score_request": _types.ScoreRequest,
    "td_server_labels": _types.ServerLabels,
    "td_server_spread": _types.ServerSpread,
    "td_server_event": _types.ServerEvent,
}
VALUES = {
    "TD_OK": _types.OK,
    "TD_ERR_NOMEM": _types.NOMEM,
    "TD_ERR_EMPTY": _types.EMPTY,
    "TD_ERR_TIMEOUT": _types.TIMEOUT,
    "TD_ERR_IO": _types.IO,
    "TD_ERR_MISMATCH": _types.MISMATCH,
    "TD_ERR_INTERNAL": _types.INTERNAL,
    "TD_MODEL_RAW": _types.RAW,
    "TD_MODEL_JPEG": _types.JPEG,
    "TD_MODEL_PNG": _types.PNG,
    "TD_MODEL_F32": DTYPES.index("<f4"),
    "TD_MODEL_BF16": DTYPES.index("<u2"),
    "TD_MODEL_U8": DTYPES.index("|u1"),
    "TD_MODEL_BOOL": DTYPES.index("|b1"),
    "TD_INFER_U8": DTYPES.index("|u1"),
    "TD_INFER_BOOL": DTYPES.index("|b1"),
    "TD_MODEL_EXPIRED": result.OUTCOMES.index("expired"),
    "TD_MODEL_VERDICT": result.KINDS.index("verdict"),
    "TD_ROBOT_FAILSAFE": robot.DOING.index("failsafe"),
}


def ours():
    for name, struct in STRUCTS.items():
        yield f"sizeof({name})", ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            yield f"offsetof({name}, {field})", getattr(struct, field).offset
    yield from VALUES.items()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    headers = "".join(
        f"#include <tendon/{name}.h>\n"
        for name in ("connect", "robot", "infer", "server")
    )
    lines = "\n".join(
        f'printf("%zu\\n", (size_t)({expression}));' for expression, _ in ours()
    )
    source = folder / "types.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        f"{headers}int main(void)\n{{\n{lines}\n}}\n"
    )
    program = folder / "types"
    subprocess.run(["cc", "-I", ROOT / "include", source, "-o", program], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    return list(map(int, done.stdout.split()))


def test_structs_and_values_are_those_of_the_headers(theirs):
    expressions, values = zip(*ours(), strict=True)
    assert dict(zip(expressions, values, strict=True)) == dict(
        zip(expressions, theirs, strict=True)
    )


def test_every_function_is_declared():
    headers = "".join(
        path.read_text() for path in (ROOT / "include/tendon").glob("*.h")
    )
    declared = set(re.findall(r"\b(td_[a-z_]+)\(", headers))
    assert set(_types.FUNCTIONS) <= declared
