# SPDX-License-Identifier: Apache-2.0
"""A native engine that is to run on a GPU, where there is none."""

import ctypes

import pytest
from scene import manifest


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="there is a GPU")
@pytest.mark.parametrize(
    ("device", "engine", "said"),
    [
        ("cuda:0", {}, "no NVIDIA driver"),
        ("cuda:x", {}, "cuda:x is no GPU, as cuda:0 is"),
        ("cuda", {"ensemble": {"enabled": True}}, "ensemble: is for device: cpu"),
        ("cuda", {"threads": 2}, "threads: are for device: cpu"),
    ],
)
def test_server_says_why_it_does_not_start(house, device, engine, said):
    made = manifest(house.endpoint)
    made["server"][0] |= {"device": device, "pretrained_path": str(house.folder)}
    made["server"][0]["engine"] = {"kind": "native", "max_batch": 4} | engine
    server = house.start("native", "serve", house.write("native.yaml", made))
    assert server.ended() == 1
    assert said in server.text()
