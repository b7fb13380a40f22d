# SPDX-License-Identifier: Apache-2.0
"""The golden bytes, read by PyPI's msgpack and numpy, the pictures by Pillow."""

import pathlib
import sys

import msgpack
import numpy as np
import PIL.Image
import pytest

FOLDER = pathlib.Path(__file__).parent / "golden"
sys.path.insert(0, str(FOLDER))

import make
import messages

PICTURES = sorted(path.stem for path in FOLDER.glob("pictures/*.rgb"))
CASES = [(kind, case) for kind, cases in messages.KINDS.items() for case in cases]


def read(kind, case):
    return msgpack.unpackb((FOLDER / f"{kind}_{case}.msgpack").read_bytes())


def array(tensor):
    dtype = np.uint16 if tensor["dtype"] == "bf16" else np.dtype(tensor["dtype"])
    return np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])


@pytest.mark.parametrize("kind,case", CASES)
def test_values_are_those_described(kind, case):
    assert read(kind, case) == messages.KINDS[kind][case]


@pytest.mark.parametrize("kind,case", CASES)
def test_fields_stand_in_the_order_described(kind, case):
    assert list(read(kind, case)) == list(messages.KINDS[kind][case])


def test_files_are_what_make_writes():
    made = {path.name: data for path, data in make.files()}
    here = {path.name: path.read_bytes() for path in FOLDER.glob("*.msgpack")}
    assert here == made


def test_state_is_an_array_of_floats():
    state = array(read("obs", "full")["state"])
    expected = np.array([0, 0.5, -1.25, 3, 1e-3, -1e6], np.float32)
    np.testing.assert_array_equal(state, expected)


def test_actions_are_rows_of_channels():
    actions = array(read("action", "full")["actions"])
    assert actions.shape == (2, 3) and actions.dtype == np.float32
    assert actions[1, 2] == np.float32(-1e6)


def test_every_dtype_reads_back():
    tensors = read("obs", "full")["tensors"]
    got = {name: array(tensor).ravel().tolist() for name, tensor in tensors.items()}
    assert got == {
        "force.left": [0.1, -9.81],
        "half": [0.5, -2.0],
        "brain": [0x3F80, 0xC000],
        "u8": [0, 255],
        "i8": [-128, 127],
        "i16": [-32768, 32767],
        "i32": [-(2**31), 2**31 - 1],
        "i64": [-(2**63), 2**63 - 1],
        "mask": [True, False, False, True],
        "none": [],
    }


def test_image_bytes_are_raw():
    images = read("obs", "full")["images"]
    assert images["left"][:2] == b"\xff\xd8" and len(images["left"]) == 770
    height, width, channels = images["depth"]["shape"]
    assert len(images["depth"]["data"]) == height * width * channels


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("name", PICTURES)
def test_pixels_are_those_described(name):
    path = FOLDER / "pictures" / f"{name}.png"
    pixels = PIL.Image.open(path).convert("RGB").tobytes()
    assert pixels == path.with_suffix(".rgb").read_bytes()
