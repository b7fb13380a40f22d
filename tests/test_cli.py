# SPDX-License-Identifier: Apache-2.0
"""The command line: help, usage, and ends that are clean."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess

import pytest
from scene import robot_file
from tendon_process import BIN, PATIENCE_S, run, wait_until

COMMANDS = [
    "serve",
    "robot",
    "router",
    "checkpoint",
    "profile",
    "plan",
    "doctor",
    "demo",
    "bench",
]
EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def test_version_is_printed():
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("tendon ") and done.stderr == ""


def test_help_names_every_command():
    done = run("--help")
    assert done.returncode == 0
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_usage_and_examples(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: tendon {command}")
    assert f"\nexamples:\n  tendon {command}" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["serve", "robot"])
def test_help_lists_the_fields_of_the_file(command):
    fields = run(command, "--help").stdout
    assert "model_version" in fields and "1 to 1000" in fields


USAGE = {
    "no command": ([], "usage: tendon COMMAND"),
    "an unknown command": (["dance"], 'tendon: there is no command "dance"'),
    "an unknown option": (
        ["serve", "--fast", "x.yaml"],
        'tendon serve: unknown option "--fast"; try `tendon serve --help`',
    ),
    "two files": (
        ["robot", "a.yaml", "b.yaml"],
        'tendon robot: unexpected argument "b.yaml"; try `tendon robot --help`',
    ),
    "no file": (["serve"], "usage: tendon serve MANIFEST.yaml"),
    "an unknown level": (
        ["serve", EXAMPLES / "manifest.yaml", "--log", "loud"],
        "tendon serve: --log is debug, info, warn or error, not",
    ),
    "a benchmark that draws nothing": (
        ["bench", "wire", "--plot", "plots"],
        "tendon bench: wire draws nothing for --plot",
    ),
    "too many robots": (
        ["demo", "--robots", "1000"],
        'tendon demo: --robots must be 1 to 16, got "1000"',
    ),
}


TWO_WORDS = {
    "checkpoint show": ["from"],
    "dataset info": ["from"],
    "dataset verify": ["from"],
    "dataset repair": ["from"],
    "dataset export": ["from", "to"],
    "dataset replay": ["from"],
}
USAGE |= {
    f"an unknown option of {typed}": (
        [*typed.split(), *operands, "--fast"],
        f'tendon {typed}: unknown option "--fast"; try `tendon {typed} --help`',
    )
    for typed, operands in TWO_WORDS.items()
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage_is_2(case):
    args, line = USAGE[case]
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert line in done.stderr


OWN_PROGRAM = EXAMPLES / "my_server.yaml"
FACTORY = EXAMPLES / "factory.yaml"
FOR_TENDON = sorted(set(EXAMPLES.glob("*.yaml")) - {OWN_PROGRAM, FACTORY})


def test_a_manifest_for_a_program_of_ones_own_is_not_for_serve():
    done = run("serve", OWN_PROGRAM, "--check")
    assert done.returncode == 1
    assert "engine.kind: callback runs a function of the program" in done.stderr


@pytest.mark.parametrize("path", FOR_TENDON, ids=lambda p: p.name)
def test_examples_are_fine(path):
    command = "robot" if "robot" in path.name else "serve"
    done = run(command, path, "--check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: ") and done.stdout.endswith("fine\n")


def test_doctor_finds_this_machine_fit(site):
    done = run("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("\nThis machine can run Tendon.\n")
    for what in (
        "cpu",
        "real-time",
        "preemption",
        "locked memory",
        "awake CPUs",
        "/dev/shm",
        "zenoh link",
        "gpu",
        "videos",
    ):
        assert f"  {what} " in done.stdout


def test_doctor_tells_whether_somebody_listens(site):
    site.router()
    done = run("doctor", site.endpoint)
    assert done.returncode == 0, done.stdout
    assert "ok    reach " in done.stdout
    done = run("doctor", f"{site.endpoint}-none")
    assert done.returncode == 1
    assert "FAIL  reach " in done.stdout
    assert "is somebody listening there?" in done.stdout


THROUGH = "through shared memory"
COPIED = (
    "large messages are copied: the other end is on another machine, or has no "
    "shared memory"
)


@pytest.mark.parametrize(
    "start, how",
    [
        (lambda site: site.router(), THROUGH),
        (lambda site: site.serve(), THROUGH),
        (lambda site: site.serve(shared_memory=False), COPIED),
    ],
    ids=["router", "server", "server without"],
)
def test_doctor_tells_whether_memory_is_shared(site, start, how):
    start(site)
    done = run("doctor", site.endpoint)
    if "warn  shared memory " in done.stdout:
        pytest.skip("it cannot be, on this machine")
    (reach,) = (line for line in done.stdout.splitlines() if "  reach " in line)
    assert reach.startswith("ok ") and reach.endswith(f", {how}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_signal_ends_everything_cleanly(site, number):
    router = site.router()
    watch = site.watch()
    server = site.serve(mode="client")
    robot = site.robot()
    watch.wait_moving("robot-1")
    assert robot.stop(number) == 0
    assert robot.lines(" ticks, ") and not robot.lines("error")
    server.wait_line("server: robot-1 left")
    assert server.stop(number) == 0
    assert server.lines(" answered")
    assert router.stop(number) == 0


def test_signal_while_a_robot_is_being_opened_is_kept(site):
    robot = site.robot()
    wait_until((site.folder / "robot-1.boot").exists, "it is half open")
    assert robot.stop() == 0


def test_server_stops_while_its_robot_moves(site):
    site.router()
    watch = site.watch()
    server = site.serve(mode="client")
    robot = site.robot()
    watch.wait_moving("robot-1")
    assert server.stop() == 0
    robot.wait_line("server gpu-1 is gone: holding")
    assert robot.stop() == 0


def test_one_manifest_may_hold_several_models(site):
    first, second = (
        f"""
  - model_id: {model}
    model_version: v1
    application_tag: wave
    server_id: {model}
    endpoint: {site.endpoint}
    accept_unknown: true
    engine: {{kind: synthetic}}"""
        for model in ("one", "two")
    )
    head = "cluster_uuid: test\nexperiment_tag: e2e\nmodels:"
    server = site.start("both", "serve", site.write("both.yaml", head + first + second))
    server.wait_line("serve: ready")
    for model in ("one", "two"):
        robot = site.robot(
            f"robot-{model}",
            model_id=model,
            fps=30,
            robot={"joints": [f"joint_{i}" for i in range(6)]},
        )
        robot.wait_line(f"attached to server {model}")
    assert server.stop() == 0


def test_a_robot_without_rights_says_so_once(site):
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("no setpriv to put root's rights down")
    realtime = {"priority": 80, "wake_us": -1, "lock_memory": False}
    file = robot_file(site.endpoint, "robot-1", site.folder, realtime=realtime)
    path = site.write("robot.yaml", file)
    log = site.folder / "robot.log"
    with log.open("w") as out:
        robot = subprocess.Popen(
            [*(weak if os.geteuid() == 0 else []), BIN, "robot", str(path)],
            stderr=out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)),
        )
    site.kept.callback(robot.kill)
    wait_until(lambda: "edge: waiting" in log.read_text(), "it runs")
    robot.send_signal(signal.SIGINT)
    assert robot.wait(PATIENCE_S) == 0
    said = log.read_text().splitlines()
    refused = [line for line in said if "real-time priority" in line]
    assert len(refused) == 1 and "td-tick: real-time priority 80 refused" in refused[0]
