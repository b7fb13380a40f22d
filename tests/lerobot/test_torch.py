# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch as what a policy answers."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from tendon.worker.answers import to_chunk, to_value

DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int64",
    "uint8",
    "bool",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_is_taken(dtype):
    tensor = torch.ones((2, 2), dtype=getattr(torch, dtype))
    if tensor.is_floating_point():
        tensor.requires_grad_()
    assert to_chunk(tensor, (5, 2)).tolist() == [[1, 1], [1, 1]]
    name, _, array = to_value("value", tensor)
    assert (name, array.tolist()) == ("value", [[1, 1], [1, 1]])
    is_half = dtype in ("float16", "bfloat16")
    assert array.dtype.name == ("float32" if is_half else dtype)


def test_a_view_that_is_not_whole_is_taken():
    tensor = torch.arange(12.0).reshape(3, 4).T[::2]
    assert to_chunk(tensor, (5, 3)).tolist() == tensor.tolist()
    assert to_value("value", tensor)[2].tolist() == tensor.tolist()
    assert to_value("value", torch.tensor(3))[2].tolist() == [3]
