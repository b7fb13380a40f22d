# SPDX-License-Identifier: Apache-2.0
"""`tendon plan`: from a factory's description to a plan."""

import json
import re
import xml.etree.ElementTree as xml

import pytest
from tendon_process import ROOT, run

EXAMPLE = ROOT / "examples/factory.yaml"


def plan_of(text, tmp_path, *more):
    path = tmp_path / "factory.yaml"
    path.write_text(text)
    return run("plan", path, *more)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    files = folder / "plan.json", folder / "plan.svg"
    done = run("plan", EXAMPLE, "--out", files[0], "--picture", files[1], "--explain")
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(files[0].read_text()), xml.parse(files[1])


def test_a_plan_for_machines_names_a_server_for_every_stream(planned):
    _, plan, _ = planned
    ids = {server["id"] for server in plan["servers"]}
    assert len(plan["robots"]) == 32
    for robot in plan["robots"]:
        assert robot["streams"]
        for stream in robot["streams"]:
            assert stream["server"] in ids
            assert stream["tail_ms"] <= stream["deadline_ms"]
            assert 0 <= stream["phase"] < 1


def test_a_plan_for_people_says_what_binds_and_what_more_would_do(planned):
    text, plan, _ = planned
    assert "bound by" in text
    assert "one GPU more:" in text
    assert "one robot more:" in text
    assert "every robot meets its deadlines" in text
    for server in plan["servers"]:
        assert server["id"] in text


def test_the_picture_has_every_gpu(planned):
    _, plan, picture = planned
    words = {node.text for node in picture.getroot().iter() if node.text}
    assert {server["id"] for server in plan["servers"]} <= words


def test_what_if_says_what_would_move():
    done = run("plan", EXAMPLE, "--what-if", "robots=40")
    assert done.returncode == 0, done.stderr
    assert "with robots=40" in done.stdout
    assert "load another model" in done.stdout
    assert "without moving anything: " in done.stdout


@pytest.mark.parametrize(
    ("change", "again", "stopped"),
    [("unsafe=1", False, True), ("failing=0.02", True, False)],
)
def test_what_if_says_what_warnings_and_failures_lead_to(change, again, stopped):
    done = run("plan", EXAMPLE, "--what-if", change)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if change in line)
    counts = re.search(r"([0-9]+) tasks begun again, ([0-9]+) of 96 robots", line)
    assert (int(counts[1]) > 0) == again
    assert (int(counts[2]) > 0) == stopped


def test_planners_are_compared_in_simulation():
    done = run("plan", EXAMPLE, "--compare", "equal,weighted,dedicated")
    assert done.returncode == 0, done.stderr
    lines = done.stdout[done.stdout.index("simulated  ") :].splitlines()[1:5]
    names = [line.split()[0] for line in lines]
    assert names == ["tendon", "equal", "weighted", "dedicated"]
    qualified = [float(line.split()[2]) for line in lines]
    assert qualified[0] == max(qualified)


CLUSTER = (
    f"profiles: {ROOT}/profiles\nserver_cluster: {{num_servers: 2, gpu_type: %s}}\n"
)
REST = """
robot_fleet: [{task: job, num_robots: %s}]
job:
  pipeline: {action_period_ms: 200}
  components:
    system1: {model: %s, slo_ms: %s}
"""
GR00T = "nvidia/GR00T-N1.6-3B"

BAD = [
    ("an impossible SLO", "NVIDIA H200", (4, GR00T, 20), "allow at least"),
    ("a missing profile", "NVIDIA H200", (4, "nobody/model", 200), "nobody/model"),
    ("another GPU", "NVIDIA L4", (4, GR00T, 200), "NVIDIA H200"),
    ("zero robots", "NVIDIA H200", (0, GR00T, 200), "num_robots"),
]


@pytest.mark.parametrize(
    ("gpu", "rest", "says"), [row[1:] for row in BAD], ids=[r[0] for r in BAD]
)
def test_what_cannot_be_planned_is_named(tmp_path, gpu, rest, says):
    out = tmp_path / "plan.json"
    done = plan_of(CLUSTER % gpu + REST % rest, tmp_path, "--out", out)
    assert done.returncode == 1
    assert says in done.stderr
    assert not out.exists()


def test_a_corrupt_profile_is_named(tmp_path):
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    text = (ROOT / "profiles/gr00t-n1.6-h200.yaml").read_text()
    (profiles / "bad.yaml").write_text(text.replace("[45.8]", "[-1]"))
    cluster = CLUSTER.replace(f"{ROOT}/profiles", str(profiles)) % "NVIDIA H200"
    done = plan_of(cluster + REST % (4, GR00T, 200), tmp_path)
    assert done.returncode == 1
    assert "bad.yaml" in done.stderr


def routes(path):
    """Which server each robot asks."""
    return {
        (robot["name"], stream["component"]): stream["server"]
        for robot in json.loads(path.read_text())["robots"]
        for stream in robot["streams"]
    }


def renewed(tmp_path, before, after, *more):
    """Plans for so many robots, and from that plan for so many others."""
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    cluster = CLUSTER % "NVIDIA H200"
    made = plan_of(cluster + REST % (before, GR00T, 200), tmp_path, "--out", old)
    assert made.returncode == 0, made.stderr
    text = cluster + REST % (after, GR00T, 200)
    done = plan_of(text, tmp_path, "--from", old, "--out", new, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout, routes(old), routes(new)


def test_newcomers_are_admitted_and_nobody_moves(tmp_path):
    text, old, new = renewed(tmp_path, 4, 6)
    assert text.startswith("admitted: 2; nobody moves")
    assert len(new) == 6
    assert old.items() <= new.items()


def test_who_finds_no_room_gets_a_new_plan_that_says_why(tmp_path):
    text, old, new = renewed(tmp_path, 2, 32)
    assert text.startswith("a new plan: the old one is worth ")
    assert "GPUs load another model" in text
    assert len(new) == 32
    assert old.keys() <= new.keys()


def test_a_search_without_time_still_has_a_plan(tmp_path):
    text, _, _ = renewed(tmp_path, 8, 8, "--time-ms", 1, "--tolerance", 0.2)
    assert "every robot meets its deadlines" in text


def test_a_plan_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old")
    (tmp_path / "plan.json.new").symlink_to("/dev/full")
    done = run("plan", EXAMPLE, "--out", path)
    assert done.returncode == 1
    assert "plan.json: No space left on device" in done.stderr
    assert path.read_text() == "old"


def test_a_plan_file_that_is_none_is_named(tmp_path):
    path = tmp_path / "old.json"
    path.write_text('{"plan": 1, "planner": "magic"}')
    done = run("plan", EXAMPLE, "--from", path)
    assert done.returncode == 1
    assert "old.json: planner: must be" in done.stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--planner", "magic"),
        ("--what-if", "cats=3"),
        ("--what-if", "robots=4.5"),
        ("--what-if", "unsafe=2"),
        ("--from", "/nowhere/plan.json"),
        ("--tolerance", "2"),
        ("--time-ms", "soon"),
    ],
)
def test_wrong_options_are_refused(option):
    done = run("plan", EXAMPLE, *option)
    assert done.returncode != 0
    assert option[1] in done.stderr
