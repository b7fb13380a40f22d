# SPDX-License-Identifier: Apache-2.0
"""A broken file: one line that says where and what, and nothing is started."""

import pytest
from scene import manifest, robot_file
from tendon_process import run

MANIFEST = """cluster_uuid: jupiter
experiment_tag: fabio2
models:
  - model_id: pi0
    model_version: v1
    application_tag: cookie
    endpoint: tcp/127.0.0.1:7447
    clients:
      - client_uuid: worker-1
    engine: {kind: synthetic}
"""
ROBOT = """cluster_uuid: jupiter
experiment_tag: fabio2
model_id: pi0
model_version: v1
application_tag: cookie
client_uuid: worker-1
endpoint: tcp/127.0.0.1:7447
robot: {kind: synthetic}
"""
CHUNK = "must be 1 to 64 of A-Z a-z 0-9 . _ -, not starting with '.'"


def changed(text, old, new):
    assert old in text
    return text.replace(old, new)


MANIFESTS = {
    "not YAML": (
        "models: [",
        ":2: not YAML: did not find expected node content",
    ),
    "empty": ("", ":1: the file is empty"),
    "no clients": (
        changed(MANIFEST, "clients:\n      - client_uuid: worker-1", "clients: []"),
        ":8: models[0].clients: lists nobody, name a client or set "
        "accept_unknown: true",
    ),
    "a client twice": (
        changed(MANIFEST, "worker-1\n", "worker-1\n      - client_uuid: worker-1\n"),
        ":10: models[0].clients: worker-1 is listed twice",
    ),
    "a wrong rate": (
        changed(MANIFEST, "    clients", "    fps: 0\n    clients"),
        ":8: models[0].fps: must be 1 to 1000, got 0",
    ),
    "a key that cannot be one": (
        changed(MANIFEST, "jupiter", "jupiter/*"),
        f":1: cluster_uuid: {CHUNK}, got jupiter/*",
    ),
    "an unknown strategy": (
        "scheduling: {strategy: fifo}\n" + MANIFEST,
        ":1: scheduling.strategy: must be deadline_aware, model_deadline, "
        "tiered_deadline, priority_tiered, batch_optimized, round_robin, got fifo",
    ),
    "a score that is cut short": (
        "scheduling:\n  score: 2 * (urgency\n" + MANIFEST,
        ":2: scheduling.score: column 13: ends here, where an operator or ')' "
        "should be",
    ),
    "an unknown engine": (
        changed(MANIFEST, "kind: synthetic", "kind: magic"),
        ":10: models[0].engine.kind: must be synthetic, worker, callback, native, "
        "got magic",
    ),
}
ROBOTS = {
    "a wrong version": (
        changed(ROBOT, "v1", "v/1"),
        f":4: model_version: {CHUNK}, got v/1",
    ),
    "an endpoint that is malformed": (
        changed(ROBOT, "tcp/127.0.0.1:7447", "127.0.0.1"),
        ":7: endpoint: must be protocol/address such as tcp/192.168.1.50:7447, "
        "got 127.0.0.1",
    ),
    "no robot": (
        changed(ROBOT, "robot: {kind: synthetic}", ""),
        ":1: robot: is missing, must be a map of fields",
    ),
    "a field nobody knows": (ROBOT + "speed: 3\n", ":9: speed: no such field"),
}


def check(tmp_path, command, text, expected):
    path = tmp_path / f"{command}.yaml"
    path.write_text(text)
    for extra in ([], ["--check"]):
        done = run(command, path, *extra)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == f"tendon {command}: {path}{expected}\n"


@pytest.mark.parametrize("case", MANIFESTS)
def test_broken_manifest_is_refused(tmp_path, case):
    check(tmp_path, "serve", *MANIFESTS[case])


@pytest.mark.parametrize("case", ROBOTS)
def test_broken_robot_file_is_refused(tmp_path, case):
    check(tmp_path, "robot", *ROBOTS[case])


@pytest.mark.parametrize("command", ["serve", "robot"])
def test_file_that_is_not_there_is_named(tmp_path, command):
    path = tmp_path / "none.yaml"
    done = run(command, path)
    assert done.returncode == 1
    assert done.stderr == f"tendon {command}: {path}: No such file or directory\n"


def test_the_files_of_these_tests_are_fine(site):
    path = site.write("manifest.yaml", manifest(site.endpoint))
    done = run("serve", path, "--check")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{path}: 1 model\ncpu: model_deadline\n")
    assert done.stdout.endswith("\nfine\n")
    path = site.write("robot.yaml", robot_file(site.endpoint, "r-1", site.folder))
    done = run("robot", path, "--check")
    assert (done.returncode, done.stdout) == (0, f"{path}: robot r-1, fine\n")
