# SPDX-License-Identifier: Apache-2.0
"""A policy that costs nothing, for our own worker."""

import numpy as np

CHUNK = np.zeros((50, 14), np.float32)


def infer(_):
    return CHUNK
