# SPDX-License-Identifier: Apache-2.0
"""Robots and servers that come and go in any order."""

import signal

import pytest
from tendon_process import free_endpoint, wait_until


@pytest.mark.parametrize("robot_mode", ["client", "peer"])
@pytest.mark.parametrize("server_mode", ["peer", "router"])
def test_robot_may_start_before_its_server(site, server_mode, robot_mode):
    robot = site.robot(mode=robot_mode)
    robot.wait_line("waiting: no server answers for synthetic/v1/wave")
    site.serve(mode=server_mode)
    site.watch().wait_moving("robot-1")
    assert robot.stop() == 0


def test_robot_moves_on_when_its_server_is_killed_and_comes_back(site):
    endpoint = free_endpoint()
    server = site.serve(endpoint)
    robot = site.robot(endpoint=endpoint)
    robot.wait_line("attached to server gpu-1")
    server.kill()
    robot.wait_line("server gpu-1 is gone: holding, looking for one")
    site.serve(endpoint)
    watch = site.watch(endpoint)
    watch.wait_moving("robot-1")
    assert watch.count("robot-1", "entered_reconnecting") == 1
    assert robot.is_running()


def test_robot_holds_while_its_server_is_away(site):
    """Both are clients of a router, through which all of it can be seen."""
    site.router()
    watch = site.watch()
    server = site.serve(mode="client")
    robot = site.robot()
    watch.wait_moving("robot-1")
    server.kill()
    watch.wait_state("robot-1", "RECONNECTING")
    watch.wait_more("robot-1", "starved")
    fresh = watch.count("robot-1", "fresh")
    watch.wait_more("robot-1", "starved", 10)
    assert watch.count("robot-1", "fresh") == fresh
    site.serve(mode="client")
    watch.wait_moving("robot-1")
    assert robot.stop() == 0


def test_robot_finds_its_server_again_when_the_router_was_away(site):
    endpoint = free_endpoint()
    router = site.router(endpoint)
    site.serve(endpoint, mode="client")
    robot = site.robot(endpoint=endpoint)
    robot.wait_line("attached to server gpu-1")
    router.kill()
    robot.wait_line("is gone: holding, looking for one")
    site.router(endpoint)
    site.watch(endpoint).wait_moving("robot-1")


def test_robot_leaves_a_server_that_stops_answering(site):
    """Stopped is worse than dead: its connections stay."""
    site.router()
    watch = site.watch()
    first = site.serve(name="first", mode="client", server_id="first")
    robot = site.robot()
    watch.wait_moving("robot-1")
    site.serve(name="second", mode="client", server_id="second")
    first.process.send_signal(signal.SIGSTOP)
    robot.wait_line("attached to server second")
    watch.wait_moving("robot-1")
    first.process.send_signal(signal.SIGCONT)
    first.wait_line("robot-1 left")
    watch.wait_moving("robot-1")
    assert len(robot.lines("attached to server")) == 2


def begin(site, watch):
    """A robot that plays chunks, and its boot."""
    robot = site.robot()
    robot.wait_line("attached to server gpu-1")
    boot = int((site.folder / "robot-1.boot").read_text())
    wait_until(
        lambda: watch.newest.get("robot-1", {}).get("boot") == boot,
        "no metrics of this start",
    )
    watch.wait_moving("robot-1")
    return robot, boot


def test_a_killed_robot_comes_back_as_another_start(site):
    """Of the same name and from the same file: a later boot tells them apart."""
    server, watch = site.serve(), site.watch()
    robot, first = begin(site, watch)
    robot.kill()
    robot, second = begin(site, watch)
    assert first < second
    for boot in (first, second):
        server.wait_line(f"server: robot-1 attached (boot {boot})")
    assert robot.stop() == 0


def test_a_killed_servers_socket_is_taken_over(site):
    site.serve().kill()
    assert (site.folder / "socket").is_socket()
    robot = site.robot()
    site.serve()
    site.watch().wait_moving("robot-1")
    assert robot.stop() == 0
