# SPDX-License-Identifier: Apache-2.0
"""`tendon checkpoint show`: what it says of good folders, and of bad ones."""

import json
import pathlib
import shutil

import pytest
from tendon_process import run

GOLDEN = pathlib.Path(__file__).parent / "golden/checkpoints"
KINDS = ["act", "pi0", "pi05", "smolvla"]


def show(folder, *more):
    return run("checkpoint", "show", folder, *more)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_of_a_checkpoint_is_shown(kind):
    done = show(GOLDEN / kind, "--json")
    assert done.returncode == 0 and done.stderr == ""
    shown = json.loads(done.stdout)
    config = json.loads((GOLDEN / kind / "config.json").read_text())
    assert shown["type"] == config["type"] == kind
    assert shown["chunk_rows"] == config["chunk_size"]
    assert shown["state_dim"] == 6 and shown["action_dim"] == 6
    assert [camera["key"] for camera in shown["cameras"]] == [
        key
        for key, feature in config["input_features"].items()
        if feature["type"] == "VISUAL"
    ]
    for side, file in (("before", "preprocessor"), ("after", "postprocessor")):
        steps = json.loads((GOLDEN / kind / f"policy_{file}.json").read_text())
        names = [step["registry_name"] for step in steps["steps"]]
        assert [step["step"] for step in shown[side]] == names
    assert shown["weights"]["parameters"] > 0


def test_names_are_those_of_the_robot():
    shown = json.loads(show(GOLDEN / "act", "--json").stdout)
    assert [camera["name"] for camera in shown["cameras"]] == ["cam_high", "wrist"]
    assert shown["action_names"] is None
    shown = json.loads(show(GOLDEN / "pi0", "--json").stdout)
    assert shown["action_names"][5] == "Gripper.pos"


def test_a_missing_tokenizer_is_named(tmp_path):
    assert "its tokenizer.json is here" in show(GOLDEN / "pi0").stdout
    folder = shutil.copytree(GOLDEN / "pi0", tmp_path / "it")
    (folder / "tokenizer.json").unlink()
    assert "its tokenizer.json is missing" in show(folder).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_can_read_it(kind):
    done = show(GOLDEN / kind)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"{GOLDEN / kind}: {kind}"
    for word in ("cameras", "state", "actions", "before", "after", "weights"):
        assert any(line.startswith(f"{word} ") for line in lines)


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_that_it_runs_without_python(kind):
    assert "native       yes" in show(GOLDEN / kind).stdout


def test_an_option_that_python_alone_knows_is_named(tmp_path):
    folder = shutil.copytree(GOLDEN / "smolvla", tmp_path / "it")
    config = folder / "config.json"
    config.write_text(
        config.read_text().replace('"use_cache": true', '"use_cache": false')
    )
    shown = json.loads(show(folder, "--json").stdout)
    assert shown["native"] is False and "use_cache" in shown["why_not"]
    assert "the Python worker serves it" in show(folder).stdout


BAD = {
    "no folder": (None, None, "/config.json: No such file or directory"),
    "no weights": ("model.safetensors", None, ": has neither model.safetensors nor"),
    "half a file": ("model.safetensors", 40, "model.safetensors: is cut short"),
    "no pipeline": (
        "policy_preprocessor.json",
        None,
        "/policy_preprocessor.json: No such file or directory",
    ),
    "half a text": ("config.json", 100, "/config.json:"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_checkpoint_is_named_and_1(case, tmp_path):
    file, size, line = BAD[case]
    folder = tmp_path / "it"
    if file:
        shutil.copytree(GOLDEN / "act", folder)
        data = (folder / file).read_bytes()
        (folder / file).unlink()
        if size is not None:
            (folder / file).write_bytes(data[:size])
    done = show(folder)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("tendon checkpoint show: ") and line in done.stderr


@pytest.mark.parametrize("args", [[], ["show"], ["hide", "x"], ["show", "a", "b"]])
def test_wrong_usage_is_2(args):
    done = run("checkpoint", *args)
    assert done.returncode == 2 and done.stdout == ""
    assert "tendon checkpoint" in done.stderr
