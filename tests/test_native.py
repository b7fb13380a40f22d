# SPDX-License-Identifier: Apache-2.0
"""A LeRobot checkpoint behind `tendon serve`, with no Python in the server."""

import json
import pathlib
import shutil
import struct
import sys

import numpy as np
import pytest
from outside_client import Client, array, tensor
from scene import ROUTE, manifest
from tendon_process import ROOT

sys.path.insert(0, str(ROOT / "tests" / "golden"))
import hashed

GOLDEN = ROOT / "tests" / "golden" / "act"
FLOWS = ROOT / "tests" / "golden" / "flows"
TOLERANCE = 1e-4  # of the largest value


def write_weights(header: bytes, path: pathlib.Path) -> None:
    tensors = json.loads(header[8:])
    with path.open("wb") as file:
        file.write(header)
        for name, each in tensors.items():
            if name == "__metadata__":
                continue
            file.seek(len(header) + each["data_offsets"][0])
            file.write(hashed.weights(name, *each["shape"]).tobytes())


def checkpoint(name: str, folder: pathlib.Path, kept=GOLDEN) -> pathlib.Path:
    """A golden checkpoint with its weights."""
    made = pathlib.Path(shutil.copytree(kept / name, folder / name))
    header = (made / "model.header").read_bytes()
    assert struct.unpack("<Q", header[:8])[0] == len(header) - 8
    write_weights(header, made / "model.safetensors")
    return made


def observation(name: str, index: int, config: dict) -> dict:
    """As make_act.py had it, on the wire."""
    fields = {"images": {}, "tensors": {}}
    for key, feature in config["input_features"].items():
        shape, source = feature["shape"], f"{name}/{index}/{key}"
        short = key.removeprefix("observation.").removeprefix("images.")
        if feature["type"] == "VISUAL":
            frame = hashed.pixels(source, *shape[1:], 3)
            fields["images"][short] = {
                "codec": "raw",
                "data": frame.tobytes(),
                "shape": list(frame.shape),
            }
        elif short == "state":
            fields["state"] = tensor(hashed.floats(source, *shape))
        else:
            fields["tensors"][short] = tensor(hashed.floats(source, *shape))
    return fields


@pytest.fixture
def serve(site):
    """Starts a server of a checkpoint. Its manifest says nothing of an engine."""

    def begin(folder, **server):
        made = manifest(site.endpoint)
        del made["models"][0]["engine"]
        made["models"][0] |= {"pretrained_path": str(folder)} | server
        return site.start("native", "serve", site.write("native.yaml", made))

    return begin


def connect(site):
    client = site.keep(Client(site.endpoint, ROUTE, "robot-0"))
    client.attach("gpu-1")
    return client


@pytest.mark.parametrize("name", ["two-cameras", "no-camera"])
def test_a_checkpoint_answers_as_lerobot_does(name, site, serve, tmp_path):
    server = serve(checkpoint(name, tmp_path))
    server.wait_line("serve: ready")
    server.wait_line("native: synthetic: act on")
    robot = connect(site)
    config = json.loads((GOLDEN / name / "config.json").read_text())
    rows, cols = config["chunk_size"], config["output_features"]["action"]["shape"][0]
    expected = np.fromfile(GOLDEN / name / "expected.f32", "<f4")
    for index, want in enumerate(expected.reshape(-1, rows, cols)):
        robot.send(**observation(name, index, config))
        got = array(robot.receive()["actions"])
        np.testing.assert_allclose(got, want, atol=TOLERANCE * np.abs(expected).max())


def test_a_robot_is_told_what_is_wrong_with_its_observation(site, serve, tmp_path):
    name = "no-camera"
    serve(checkpoint(name, tmp_path)).wait_line("serve: ready")
    robot = connect(site)
    config = json.loads((GOLDEN / name / "config.json").read_text())
    wrong = observation(name, 0, config) | {"tensors": {}}
    robot.send(**wrong)
    error = robot.receive()["error"]
    assert error["code"] == "MISMATCH"
    assert error["text"] == "tensors.environment_state: is missing"
    robot.send(**observation(name, 0, config))
    assert "actions" in robot.receive()


def test_what_it_does_not_know_goes_to_a_worker(site, serve, tmp_path):
    folder = shutil.copytree(GOLDEN / "no-camera", tmp_path / "other")
    config = folder / "config.json"
    text = json.loads(config.read_text()) | {"type": "diffusion"}
    config.write_text(json.dumps(text))
    server = serve(folder)
    server.wait_line("diffusion")
    server.wait_line("kind: worker, see docs/lerobot.md")
    assert server.ended() != 0


def test_an_ensemble_is_kept_for_each_robot(site, serve, tmp_path):
    name = "no-camera"
    engine = {"engine": {"ensemble": {"enabled": True, "coefficient": 0}}}
    serve(checkpoint(name, tmp_path), **engine).wait_line("serve: ready")
    robot = connect(site)
    config = json.loads((GOLDEN / name / "config.json").read_text())
    expected = np.fromfile(GOLDEN / name / "expected.f32", "<f4").reshape(3, 33, 5)
    robot.send(**observation(name, 0, config), cursor=0)
    np.testing.assert_allclose(
        array(robot.receive()["actions"]), expected[0], atol=1e-3
    )
    robot.send(**observation(name, 1, config), cursor=1)
    got = array(robot.receive()["actions"])
    mean = (expected[0][1:] + expected[1][:-1]) / 2
    np.testing.assert_allclose(got[:-1], mean, atol=1e-3)
    np.testing.assert_allclose(got[-1], expected[1][-1], atol=1e-3)


@pytest.mark.parametrize("name", ["smolvla-two-cameras", "pi0-two-cameras"])
def test_a_policy_is_served_by_its_name_on_the_hub(
    name, site, serve, tmp_path, monkeypatch
):
    """With what is in the hub's local cache, its tokenizer too."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    cache = tmp_path / "hub"
    made = checkpoint(name, tmp_path, FLOWS)
    tokenizer = {"smolvla": "HuggingFaceTB--SmolVLM2-500M-Video-Instruct"}.get(
        name[:7], "google--paligemma-3b-pt-224"
    )
    for of, files in (
        ("robots--cookie-v1", [path for path in made.iterdir()]),
        (tokenizer, [made / "tokenizer.json"]),
    ):
        snapshot = cache / f"models--{of}" / "snapshots" / "one"
        snapshot.mkdir(parents=True)
        for path in files:
            if of == tokenizer or path.name != "tokenizer.json":
                shutil.copy(path, snapshot)
    server = serve("robots/cookie-v1")
    server.wait_line("serve: ready")
    robot = connect(site)
    config = json.loads((FLOWS / name / "config.json").read_text())
    robot.send(**observation(name, 0, config), task="pick the red cube")
    got = array(robot.receive()["actions"])
    assert got.shape == (8, 6) and np.isfinite(got).all()


def test_a_name_that_is_not_in_the_cache_says_how_to_get_it(site, serve, tmp_path):
    server = serve("robots/cookie-v1")
    assert server.process.wait(30) != 0
    assert "get it with `hf download robots/cookie-v1`" in server.text()
