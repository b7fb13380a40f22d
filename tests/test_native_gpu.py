# SPDX-License-Identifier: Apache-2.0
"""A native engine that is to run on a GPU, where there is none: with nothing, and with
what stands for one (tests/worker/fake_cuda.c)."""

import ctypes
import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
from outside_client import array
from scene import manifest
from sdk import Program
from tendon_process import BIN, run, wait_until
from test_native import GOLDEN, checkpoint, connect, observation

NAME = "no-camera"
FAKE = pathlib.Path(BIN).parent / "fake-gpu"
CONFIG = json.loads((GOLDEN / NAME / "config.json").read_text())
EXPECTED = np.fromfile(GOLDEN / NAME / "expected.f32", "<f4").reshape(3, 33, 5)


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
        ("cuda", {"threads": 2}, "threads: are for device: cpu"),
    ],
)
def test_server_says_why_it_does_not_start(site, device, engine, said):
    made = manifest(site.endpoint)
    made["models"][0] |= {"device": device, "pretrained_path": str(site.folder)}
    made["models"][0]["engine"] = {"kind": "native", "max_batch": 4} | engine
    server = site.start("native", "serve", site.write("native.yaml", made))
    assert server.ended() == 1
    assert said in server.text()


class Gpu:
    """A server whose GPU does what a file says."""

    def __init__(self, site, folder):
        self.site = site
        self.checkpoint = checkpoint(NAME, folder)
        self.commands = folder / "commands"
        self.env = {"LD_LIBRARY_PATH": str(FAKE), "TENDON_FAKE_GPU": str(self.commands)}
        self.command("")

    def command(self, word):
        self.commands.write_text(word)

    def write(self, **engine):
        made = manifest(self.site.endpoint)
        made["models"][0] |= {
            "device": "cuda:0",
            "pretrained_path": str(self.checkpoint),
        }
        made["models"][0]["engine"] = {"kind": "native", "max_batch": 4} | engine
        return self.site.write("gpu.yaml", made)

    def environment(self):
        return self.env | {"TENDON_CUDA_LIBRARY": str(FAKE / "fake_cuda.so")}

    def serve(self, **engine):
        path = self.write(**engine)
        return self.site.start("gpu", "serve", path, env=self.environment())


@pytest.fixture
def gpu(site, tmp_path):
    return Gpu(site, tmp_path)


def ask(robot, index, **fields):
    robot.send(**observation(NAME, index, CONFIG), **fields)
    return robot.receive()


def is_answered(robot, index):
    answer = ask(robot, index)
    if "error" in answer:
        return False
    np.testing.assert_allclose(array(answer["actions"]), EXPECTED[index], atol=1e-3)
    return True


def test_no_memory_at_load_is_said(gpu):
    gpu.command("load")
    server = gpu.serve()
    assert server.ended() == 1
    assert "allocating 5 MiB after 6: out of memory, 3 of 9 MiB are free; " in (
        server.text()
    )
    assert "max_batch is 4: take a smaller one, or another GPU" in server.text()


def test_doctor_names_the_gpu_the_precision_and_the_time(gpu):
    done = run("doctor", gpu.write(), env=os.environ | gpu.environment())
    assert done.returncode == 0, done.stdout
    assert re.search(
        r"native on Stand-in H200 \(cuda:0\), bf16: [0-9.]+ ms a chunk, "
        r"[0-9.]+ ms each of 4 at a time",
        done.stdout,
    ), done.stdout


@pytest.mark.parametrize(
    ("word", "code", "text"),
    [
        ("run", "NOMEM", "out of memory, 0 of 9 MiB are free"),
        ("lost", "IO", "the GPU is lost"),
    ],
)
def test_a_gpu_that_fails_in_service_is_said_and_comes_back(
    gpu, site, word, code, text
):
    server = gpu.serve()
    server.wait_line("serve: ready")
    robot = connect(site)
    assert is_answered(robot, 0)
    gpu.command(word)
    error = ask(robot, 1)["error"]
    assert error["code"] == code
    assert text in error["text"]
    gpu.command("")
    wait_until(lambda: is_answered(robot, 1), "an answer again")
    assert server.process.poll() is None


def test_an_ensemble_is_kept_on_a_gpu(gpu, site):
    server = gpu.serve(ensemble={"enabled": True, "coefficient": 0})
    server.wait_line("serve: ready")
    robot = connect(site)
    ask(robot, 0, cursor=0)
    got = array(ask(robot, 1, cursor=1)["actions"])
    mean = (EXPECTED[0][1:] + EXPECTED[1][:-1]) / 2
    np.testing.assert_allclose(got[:-1], mean, atol=1e-3)


def test_an_installed_server_finds_its_library(gpu, site, sdk):
    shutil.copy(FAKE / "fake_cuda.so", sdk.libs / "libtendon_cuda.so")
    log = site.folder / "installed.log"
    program = sdk.prefix / "bin" / "tendon"
    server = Program(log, program, "serve", gpu.write(), env=gpu.env)
    site.kept.callback(server.end)
    server.wait_line("serve: ready")
