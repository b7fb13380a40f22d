# SPDX-License-Identifier: Apache-2.0
"""`tendon profile` on real engines: what it writes, keeps and refuses."""

import hashlib
import os
import pathlib
import re
import sys

import pytest
import yaml
from scene import manifest
from tendon_process import ROOT, run, wait_until
from test_native import checkpoint

POLICY = pathlib.Path(__file__).parent / "worker" / "policy.py"
QUICK = ["--samples", 5, "--requests", 4, "--accept-noise"]
TIMES = {"kind": "fixed", "ms": 2, "per_batch_ms": 1}

DRIFTS = """
import time
import numpy as np

calls = 0

def infer(obs):
    global calls
    calls += 1
    time.sleep(0.001 if calls <= 8 else 0.06)
    return np.zeros((20, 6), np.float32)
"""


@pytest.fixture
def measure(site, monkeypatch):
    """Runs it on an engine; returns how it ended."""
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")

    def begin(engine, *args, out="p.yaml", **changes):
        made = manifest(site.endpoint, engine=engine, **changes)
        path = site.write("manifest.yaml", made)
        return run("profile", path, "--out", site.folder / out, *args)

    return begin


@pytest.fixture
def profile(site, measure):
    """The profile of an engine."""

    def begin(engine, *args, out="p.yaml", **changes):
        done = measure(engine, *QUICK, *args, out=out, **changes)
        assert done.returncode == 0, done.stderr
        assert f"wrote {site.folder / out}\n" in done.stdout
        assert not (site.folder / f"{out}.part").exists()
        return yaml.safe_load((site.folder / out).read_text())

    return begin


def sizes(made):
    return {row["batch"]: row for row in made["service"]}


def worker(policy):
    return {"kind": "worker", "python": f"policy.py:{policy}", "latency": None}


def test_every_size_is_measured_alone_padded_and_under_load(profile):
    made = profile({"latency": TIMES, "max_batch": 4})
    assert (made["model"], made["engine"], made["gpu"]) == (
        "synthetic",
        "synthetic",
        "CPU",
    )
    assert made["origin"] == "measured" and made["complete"] is True
    assert made["engine_hash"].startswith("sha256:")
    rows = sizes(made)
    assert list(rows) == [1, 2, 4]
    for batch, row in rows.items():
        assert len(row["alone_ms"]) == 5
        assert min(row["alone_ms"]) >= 1 + batch  # a busy machine adds to it
    assert "padded_ms" not in rows[2]
    assert min(rows[4]["padded_ms"]) >= 1 + 3
    asked = [(row["batch"], row["percent"]) for row in made["rates"]]
    assert asked == [(n, p) for n in (1, 2, 4) for p in range(10, 101, 10)]
    for row in made["rates"]:
        assert row["measured_p50_ms"] >= 2 and row["predicted_p50_ms"] >= 2


def test_a_profile_is_played_back(profile, measure, site):
    first = profile({"latency": TIMES, "max_batch": 2}, out="first.yaml")
    played = {"latency": {"kind": "profile", "file": "first.yaml"}, "max_batch": 2}
    second = profile(played, out="second.yaml")
    for batch in (1, 2):
        least = min(sizes(first)[batch]["alone_ms"])
        assert min(sizes(second)[batch]["alone_ms"]) >= least - 0.001
    (site.folder / "first.yaml").write_text("profile: 1\n")
    done = measure(played, out="third.yaml")
    assert done.returncode == 1
    assert "first.yaml:1: model: is missing" in done.stderr
    assert "`tendon profile` measures a new one" in done.stderr


def test_a_python_worker_is_measured(profile, site):
    policy = site.write("policy.py", POLICY.read_text())
    made = profile(
        worker("infer"), "--model", "me/arm", "--gpu", "NVIDIA X", device="cpu"
    )
    assert (made["model"], made["engine"], made["gpu"]) == (
        "me/arm",
        "worker",
        "NVIDIA X",
    )
    digest = hashlib.sha256(policy.read_bytes()).hexdigest()
    assert made["engine_hash"] == f"sha256:{digest}"
    assert made["memory_gb"] > 0
    assert list(sizes(made)) == [1]


def test_a_checkpoint_is_measured(profile, tmp_path):
    own = ["actions", "cameras", "chunk", "latency"]  # as the checkpoint says
    engine = {"kind": "native", "max_batch": 2} | dict.fromkeys(own)
    folder = checkpoint("two-cameras", tmp_path)
    made = profile(engine, device="cpu", pretrained_path=str(folder))
    assert (made["engine"], made["gpu"]) == ("native", "CPU")
    assert made["memory_gb"] > 0
    assert made["model_hash"].startswith("sha256:")
    assert list(sizes(made)) == [1, 2]


def test_a_noisy_run_is_refused_and_says_how_noisy(measure, site):
    site.write("policy.py", DRIFTS)
    few = ["--samples", 10, "--requests", 2]
    done = measure(worker("infer"), *few, device="cpu")
    assert done.returncode == 1
    assert re.search(r"too noisy: the times of a batch of 1 vary by \d+ %", done.stderr)
    assert "or take it with --accept-noise" in done.stderr
    assert not list(site.folder.glob("p.yaml*"))
    done = measure(worker("infer"), *few, "--accept-noise", device="cpu")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((site.folder / "p.yaml").read_text())["noise"] > 0.1


def test_what_was_stopped_goes_on_where_it_was(measure, site):
    engine = {"latency": TIMES | {"ms": 20}, "max_batch": 2}
    path = site.write("manifest.yaml", manifest(site.endpoint, engine=engine))
    out, part = site.folder / "p.yaml", site.folder / "p.yaml.part"
    long = ["--samples", 50, "--requests", 10000, "--accept-noise"]
    first = site.start("profile", "profile", path, "--out", out, *long)
    wait_until(part.exists, "a size is kept")
    assert first.stop() == 1
    assert first.lines("stopped; the same command goes on where it was")
    assert not out.exists()

    done = measure(engine | {"latency": TIMES}, *QUICK)
    assert done.returncode == 0, done.stderr
    assert f"goes on from {part}: " in done.stdout
    assert not part.exists()
    made = yaml.safe_load(out.read_text())
    assert len(sizes(made)[1]["alone_ms"]) == 50  # was not measured again
    assert list(sizes(made)) == [1, 2]


def test_what_is_there_is_not_overwritten(measure, profile, site):
    profile({"latency": TIMES})
    done = measure({"latency": TIMES})
    assert done.returncode == 1
    assert "p.yaml: is there already; remove it, or choose another" in done.stderr
    made = (site.folder / "p.yaml").read_text()
    unfinished = made.replace("complete: true", "complete: false")
    site.write("q.yaml.part", unfinished.replace('gpu: "CPU"', 'gpu: "other"'))
    done = measure({"latency": TIMES}, out="q.yaml")
    assert done.returncode == 1
    assert "q.yaml.part: is of another gpu, other, not CPU; remove it" in done.stderr


REFUSED = {
    "no such server": (
        ["--server", "x"],
        {},
        1,
        "the manifest has no model with server_id x",
    ),
    "sizes that shrink": (
        ["--sizes", "2,1"],
        {},
        2,
        '--sizes must be growing numbers from 1 to 4, such as 1,2,4, got "2,1"',
    ),
    "a size that is too large": (["--sizes", "8"], {}, 2, "--sizes must be"),
    "too few samples": (["--samples", "4"], {}, 2, "--samples must be 5 to 3333"),
    "no requests": (["--requests", "0"], {}, 2, "--requests must be 1 to 10000"),
    "continuous": ([], {"continuous": True}, 1, "the engine is continuous"),
    "no profile": (
        [],
        {"latency": {"kind": "profile", "file": "none.yaml"}},
        1,
        "none.yaml: No such file or directory; `tendon profile` measures a new one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_measured_is_refused(measure, case):
    args, engine, code, line = REFUSED[case]
    done = measure({"max_batch": 4, "latency": TIMES} | engine, *args)
    assert done.returncode == code
    assert line in done.stderr


def test_a_gpu_that_nobody_knows_must_be_named(measure, site):
    site.write("policy.py", POLICY.read_text())
    done = measure(worker("infer"), device="cuda:999")
    assert done.returncode == 1
    assert "knows the GPU cuda:999; say which it is with --gpu" in done.stderr


def test_a_function_of_another_program_is_not_measured():
    done = run("profile", ROOT / "examples/my_server.yaml")
    assert done.returncode == 1
    assert "runs a function of another program" in done.stderr


def test_one_of_several_servers_must_be_named():
    done = run("profile", ROOT / "examples/two_models.yaml")
    assert done.returncode == 1
    assert "several models; say which with --server" in done.stderr
