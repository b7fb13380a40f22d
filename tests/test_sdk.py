# SPDX-License-Identifier: Apache-2.0
"""Asking a model from C, C++ and Rust: installed as a user has it, against a
real server."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from scene import JOINTS, ROUTE, ROWS, manifest, robot_file
from sdk import Program
from tendon_process import PATIENCE_S, ROOT, wait_until

STATE = ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]


def variables(site, client="planner-1", **changes):
    cluster, experiment, model, version, application = ROUTE.split("/")
    given = {
        "SERVER": site.endpoint,
        "CLUSTER": cluster,
        "EXPERIMENT": experiment,
        "CLIENT_ID": client,
        "MODEL": model,
        "VERSION": version,
        "APPLICATION": application,
    }
    return {f"TENDON_{name}": value for name, value in (given | changes).items()}


def blind(site, **changes):
    """A server of a model without cameras."""
    return site.serve(engine={"cameras": {}}, **changes)


@pytest.fixture(scope="module")
def ask(sdk):
    return sdk.compile("examples/ask.c", name="ask")


@pytest.fixture
def begin(site, sdk):
    """begin(program, *args): with the server's name in its environment."""

    def start(program, *args, client="planner-1", **changes):
        env = sdk.env() | variables(site, client, **changes)
        site.started += 1
        log = site.folder / f"{client}-{site.started}.log"
        made = Program(log, program, *args, env=env)
        site.kept.callback(made.end)
        return made

    return start


def test_example_is_answered_by_a_real_server(site, ask, begin):
    blind(site)
    program = begin(ask, 20, *STATE)
    assert program.ended() == 0, program.text()
    lines = program.lines("answered: 20 actions from gpu-1")
    assert len(lines) == 20, program.text()
    assert [line.split()[0] for line in lines] == [str(n + 1) for n in range(20)]


def test_refusal_names_the_field_and_both_values(site, ask, begin):
    blind(site)
    program = begin(ask, 1, *STATE[:2])
    assert program.ended() == 0, program.text()
    assert "1 error: MISMATCH: state: is rank 1, 2 x <f4" in program.text()


def test_server_may_come_later(site, ask, begin):
    program = begin(ask, 1, *STATE)
    program.wait_line("no server answers for synthetic/v1/wave")
    blind(site)
    assert program.ended() == 0, program.text()
    assert "answered: 20 actions" in program.text()


def test_a_killed_server_is_noticed_and_its_successor_found(site, ask, begin):
    first = blind(site, batch={"wait_ms": 0}, name="first")
    program = begin(ask, 1000000, *STATE)
    program.wait_line("100 answered")
    first.kill()
    program.wait_line(" lost: IO: its server is gone")
    blind(site, name="second")
    before = len(program.lines("answered"))
    wait_until(lambda: len(program.lines("answered")) > before + 100, "no more answers")


def test_missing_setting_is_named(site, ask, begin):
    program = begin(ask, 1, *STATE, CLUSTER="not/one")
    assert program.ended() == 1
    assert "cluster: 'not/one'" in program.text()


def test_url_is_an_endpoint_too(site, ask, begin):
    blind(site)
    url = site.endpoint.replace("/", "://", 1)
    program = begin(ask, 1, *STATE, SERVER=url)
    assert program.ended() == 0, program.text()
    assert "1 answered" in program.text()


def test_named_results_reach_the_program(site, ask, begin, monkeypatch):
    own = pathlib.Path(sys.executable).parent  # its python3 has numpy
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    site.write("policy.py", (ROOT / "tests/worker/policy.py").read_text())
    content = manifest(site.endpoint)
    content["models"][0]["engine"] = {
        "kind": "worker",
        "python": "policy.py:infer_more",
        "actions": JOINTS,
        "cameras": {},
        "chunk": ROWS,
    }
    server = site.start("worker", "serve", site.write("worker.yaml", content))
    server.wait_line("serve: ready")
    program = begin(ask, 1, *STATE)
    assert program.ended() == 0, program.text()
    assert "1 answered: 20 actions" in program.text()
    assert ", value of 8 bytes" in program.text()
    assert ", plan of 16 bytes" in program.text()


def test_large_answer_in_pieces_is_joined(site, ask, begin):
    joints = {f"joint{i}": {} for i in range(200)}
    engine = {"actions": joints, "cameras": {}, "chunk": 1000}
    site.serve(engine=engine, shared_memory=False)
    program = begin(ask, 3, *["0"] * 200)
    assert program.ended() == 0, program.text()
    assert len(program.lines("answered: 1000 actions")) == 3, program.text()


def test_cpp_header_in_all_its_parts(site, sdk, begin):
    blind(site)
    program = sdk.compile(
        "tests/api/ask.cpp", "-std=c++17", "-pedantic", compiler="g++", name="ask_cpp"
    )
    content = robot_file(
        site.endpoint,
        "robot-1",
        site.folder,
        robot={"kind": "callback", "cameras": {}},
    )
    done = begin(program, site.write("own.yaml", content))
    assert done.ended() == 0, done.text()
    assert "driver: the cable came off" in done.text()


def cargo(folder, sdk, *args, env):
    return subprocess.run(
        [ROOT / "tools/cargo", *args, "--offline", "--locked"],
        cwd=folder,
        env=os.environ
        | sdk.env()
        | {
            "CARGO_TARGET_DIR": str(ROOT / "build/rust-sdk"),
            "TENDON_LIB_DIR": str(sdk.libs),
        }
        | env,
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
    )


def test_rust_crate_in_all_its_parts(site, sdk):
    blind(site)
    done = cargo(ROOT / "clients/rust", sdk, "test", env=variables(site))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test futures_run_on_any_executor ... ok" in done.stdout


def block(language):
    """The example of that language in docs/sdk.md."""
    page = (ROOT / "docs/sdk.md").read_text()
    return re.search(rf"```{language}\n(.*?)```", page, re.DOTALL).group(1)


def serve_pi0(site):
    blind(site, model_id="pi0")


@pytest.mark.parametrize(
    "language, compiler, options",
    [("c", "cc", []), ("cpp", "g++", ["-std=c++17", "-pedantic"])],
)
def test_documented_example_runs(site, sdk, begin, language, compiler, options):
    serve_pi0(site)
    source = site.write(f"documented.{language}", block(language))
    program = sdk.compile(source, *options, compiler=compiler, name=f"doc_{language}")
    done = begin(program)
    assert done.ended() == 0, done.text()
    assert "20 actions" in done.text()


def test_documented_example_runs_in_python(site, sdk):
    serve_pi0(site)
    given = {"PYTHONPATH": str(ROOT / "python"), "TENDON_BUILD": str(sdk.libs)}
    done = subprocess.run(
        [sys.executable, site.write("documented.py", block("python"))],
        env=os.environ | variables(site) | given,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 actions\n"


def test_documented_example_runs_in_rust(site, sdk):
    example = ROOT / "clients/rust/examples/ask.rs"
    assert example.read_text().split("\n", 1)[1] == block("rust")
    serve_pi0(site)
    args = ["run", "-q", "--example", "ask"]
    done = cargo(ROOT / "clients/rust", sdk, *args, env=variables(site))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20 actions\n"
