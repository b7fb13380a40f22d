# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/fits/: pictures as the policies of LeRobot bring them into
their frame, as float32 of height x width x RGB, -1 to 1. With LeRobot's Python:

    build/venv-lerobot/bin/python tests/golden/make_fits.py
"""

import pathlib
import types

import numpy as np
import torch
from lerobot.policies.pi0.modeling_pi0 import PI0Policy
from lerobot.policies.pi05.modeling_pi05 import PI05Policy
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy

FOLDER = pathlib.Path(__file__).parent / "fits"
KEY = "observation.images.top"
# What each does with the pictures of a batch before it looks at them.
POLICIES = {
    "smolvla": SmolVLAPolicy.prepare_images,
    "pi0": PI0Policy._preprocess_images,
    "pi05": PI05Policy._preprocess_images,
}
# The same table is in src/media/fit_test.c.
CASES = {
    "smolvla_wide": ((36, 64), (24, 24)),
    "smolvla_tall": ((50, 30), (24, 20)),
    "smolvla_larger": ((7, 9), (20, 24)),
    "smolvla_same": ((16, 16), (16, 16)),
    "pi0_wide": ((36, 64), (24, 24)),
    "pi0_odd": ((33, 47), (21, 28)),
    "pi0_larger": ((10, 6), (28, 28)),
    "pi0_same_shape": ((48, 64), (24, 32)),
    "pi05_wide": ((36, 64), (24, 24)),
    "pi05_same": ((16, 16), (16, 16)),
}


def picture(height, width):
    """As src/media/fit_test.c makes it."""
    i = np.arange(height * width * 3, dtype=np.uint32)
    return ((i * i * 7 + i * 31) % 251).astype(np.uint8).reshape(height, width, 3)


def policy(height, width):
    """As much of one as looks at pictures; smolvla has width before height."""
    config = types.SimpleNamespace(
        image_features=[KEY],
        resize_imgs_with_padding=(width, height),
        image_resolution=(height, width),
        empty_cameras=0,
    )
    return types.SimpleNamespace(
        config=config, parameters=lambda: iter([torch.zeros(1)])
    )


def fit(kind, size, to):
    values = torch.from_numpy(picture(*size)).type(torch.float32) / 255
    batch = {KEY: values.permute(2, 0, 1).contiguous()[None]}
    images, _ = POLICIES[kind](policy(*to), batch)
    return images[0][0].permute(1, 2, 0).contiguous().numpy()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        made = fit(name.partition("_")[0], *case)
        (FOLDER / f"{name}.f32").write_bytes(made.astype("<f4").tobytes())
        print(f"{name}: {made.shape}")
