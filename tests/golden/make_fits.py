# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/fits/: pictures as LeRobot brings them into the frame of a
policy, as float32 of height x width x RGB. With LeRobot's Python:

    build/venv-lerobot/bin/python tests/golden/make_fits.py
"""

import pathlib

import numpy as np
import torch
from lerobot.policies.common.vla_utils import resize_with_pad, resize_with_pad_torch

FOLDER = pathlib.Path(__file__).parent / "fits"
# The same table is in src/media/fit_test.c.
CASES = {
    "wide_corner": ((36, 64), (24, 24), "corner"),
    "tall_corner": ((50, 30), (24, 20), "corner"),
    "larger_corner": ((7, 9), (20, 24), "corner"),
    "same_corner": ((16, 16), (16, 16), "corner"),
    "wide_middle": ((36, 64), (24, 24), "middle"),
    "odd_middle": ((33, 47), (21, 28), "middle"),
    "larger_middle": ((10, 6), (28, 28), "middle"),
    "same_shape_middle": ((48, 64), (24, 32), "middle"),
}


def picture(height, width):
    """As src/media/fit_test.c makes it."""
    i = np.arange(height * width * 3, dtype=np.uint32)
    return ((i * i * 7 + i * 31) % 251).astype(np.uint8).reshape(height, width, 3)


def fit(size, to, place):
    values = torch.from_numpy(picture(*size)).type(torch.float32) / 255
    values = values.permute(2, 0, 1).contiguous()[None]
    if place == "corner":
        return resize_with_pad(values, *to, pad_value=0)
    return resize_with_pad_torch(values.permute(0, 2, 3, 1), *to).permute(0, 3, 1, 2)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        made = fit(*case)[0].permute(1, 2, 0).contiguous().numpy()
        (FOLDER / f"{name}.f32").write_bytes(made.astype("<f4").tobytes())
        print(f"{name}: {made.shape}")
