# SPDX-License-Identifier: Apache-2.0
"""`tendon doctor` with a manifest: each model is loaded, named and timed."""

import os
import pathlib
import re
import sys

import pytest
from scene import manifest
from tendon_process import run
from test_native import checkpoint
from test_profile import POLICY, worker

LATENCY = {"kind": "fixed", "ms": 20}
PROFILE = """
profile: 1
model: synthetic
engine: synthetic
gpu: CPU
origin: measured
source: a test
service:
  - {{batch: 1, alone_ms: [{ms}]}}
complete: true
"""


def line(done, model="synthetic"):
    """What it says of a model, without what is before and after."""
    found = [at for at in done.stdout.splitlines() if f"  {model} " in at]
    assert len(found) == 1, done.stdout
    return found[0]


def chunk_ms(said):
    return float(re.search(r": ([0-9.e+]+) ms a chunk", said)[1])


def make_profile(folder, ms):
    profiles = folder / "profiles"
    profiles.mkdir()
    (profiles / "p.yaml").write_text(PROFILE.format(ms=ms))
    return profiles


@pytest.fixture
def native(site, tmp_path):
    """A manifest of a checkpoint, which says nothing of an engine."""
    made = manifest(site.endpoint)
    del made["models"][0]["engine"]
    folder = checkpoint("no-camera", tmp_path)
    made["models"][0] |= {"pretrained_path": str(folder), "model_id": "act"}
    return site.write("native.yaml", made), folder


def test_a_policy_is_named_with_its_device_precision_and_time(native):
    done = run("doctor", native[0])
    assert done.returncode == 0, done.stdout
    said = line(done, "act")
    assert said.startswith("ok    act ") and " native on cpu, float32: " in said
    assert chunk_ms(said) > 0
    assert re.search(r", [0-9.]+ MB of memory", said), said


def test_a_full_batch_is_timed_too(site):
    engine = {"latency": LATENCY, "max_batch": 4}
    done = run("doctor", site.write("m.yaml", manifest(site.endpoint, engine)))
    assert done.returncode == 0, done.stdout
    said = line(done)
    assert chunk_ms(said) >= 20
    assert float(re.search(r", ([0-9.]+) ms each of 4 at a time", said)[1]) >= 5


@pytest.mark.parametrize(
    "ms, mark, words",
    [(200, "ok", "expected are 200 ms"), (1, "warn", "it is slower now")],
    ids=["as expected", "slower"],
)
def test_a_profile_says_what_to_expect(site, tmp_path, ms, mark, words):
    profiles = make_profile(tmp_path, ms)
    path = site.write("m.yaml", manifest(site.endpoint, {"latency": LATENCY}))
    done = run("doctor", path, "--profiles", profiles)
    assert done.returncode == 0, done.stdout
    said = line(done)
    assert said.startswith(mark) and words in said and "p.yaml" in said


def test_a_model_without_a_profile_is_named(site, tmp_path):
    profiles = make_profile(tmp_path, 1)
    made = manifest(site.endpoint, {"latency": LATENCY}, model_id="other")
    done = run("doctor", site.write("m.yaml", made), "--profiles", profiles)
    said = line(done, "other")
    assert said.startswith("warn") and "no profile to expect from: " in said


def test_a_worker_is_asked_too(site, monkeypatch):
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    site.write("policy.py", POLICY.read_text())
    made = manifest(site.endpoint, worker("infer"))
    done = run("doctor", site.write("m.yaml", made))
    assert done.returncode == 0, done.stdout
    assert "worker on cpu, in a precision of its own: " in line(done)


def test_what_does_not_load_is_broken(native):
    path, folder = native
    (folder / "model.safetensors").unlink()
    done = run("doctor", path)
    assert done.returncode == 1
    said = line(done, "act")
    assert said.startswith("FAIL") and "has neither model.safetensors nor" in said


def test_a_tokenizer_that_nothing_reads_is_refused(site, tmp_path):
    made = manifest(site.endpoint)
    folder = checkpoint("no-camera", tmp_path)
    made["models"][0] |= {
        "pretrained_path": str(folder),
        "engine": {"tokenizer": "mine.json"},
    }
    done = run("doctor", site.write("m.yaml", made))
    assert done.returncode == 1
    assert f"tokenizer: {site.folder}/mine.json is given, and" in line(done)


def test_a_manifest_that_is_wrong_is_named_with_its_line(site):
    made = manifest(site.endpoint, fps=0)
    done = run("doctor", site.write("m.yaml", made))
    assert done.returncode == 1
    assert "FAIL  manifest " in done.stdout and "fps: must be 1 to" in done.stdout


def test_profiles_are_for_a_manifest(site):
    done = run("doctor", site.endpoint, "--profiles", site.folder)
    assert done.returncode == 2 and done.stdout == ""
    assert "--profiles is for a manifest's models" in done.stderr
