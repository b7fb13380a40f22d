# SPDX-License-Identifier: Apache-2.0
"""Robots and servers that come and go in any order."""

import signal

import pytest
from tendon_process import free_endpoint, wait_until


@pytest.mark.parametrize("robot_mode", ["client", "peer"])
@pytest.mark.parametrize("server_mode", ["peer", "router"])
def test_robot_may_start_before_its_server(house, server_mode, robot_mode):
    robot = house.robot(mode=robot_mode)
    robot.wait_line("waiting: no server answers for synthetic/v1/wave")
    house.serve(mode=server_mode)
    house.watch().wait_moving("robot-1")
    assert robot.stop() == 0


def test_robot_moves_on_when_its_server_is_killed_and_comes_back(house):
    endpoint = free_endpoint()
    server = house.serve(endpoint)
    robot = house.robot(endpoint=endpoint)
    robot.wait_line("attached to server gpu-1")
    server.kill()
    robot.wait_line("server gpu-1 is gone: holding, looking for one")
    house.serve(endpoint)
    watch = house.watch(endpoint)
    watch.wait_moving("robot-1")
    assert watch.count("robot-1", "entered_reconnecting") == 1
    assert robot.is_running()


def test_robot_holds_while_its_server_is_away(house):
    """Both are clients of a router, through which all of it can be seen."""
    house.router()
    watch = house.watch()
    server = house.serve(mode="client")
    robot = house.robot()
    watch.wait_moving("robot-1")
    server.kill()
    watch.wait_state("robot-1", "RECONNECTING")
    watch.wait_more("robot-1", "starved")
    fresh = watch.count("robot-1", "fresh")
    watch.wait_more("robot-1", "starved", 10)
    assert watch.count("robot-1", "fresh") == fresh
    house.serve(mode="client")
    watch.wait_moving("robot-1")
    assert robot.stop() == 0


def test_robot_finds_its_server_again_when_the_router_was_away(house):
    endpoint = free_endpoint()
    router = house.router(endpoint)
    house.serve(endpoint, mode="client")
    robot = house.robot(endpoint=endpoint)
    robot.wait_line("attached to server gpu-1")
    router.kill()
    robot.wait_line("is gone: holding, looking for one")
    house.router(endpoint)
    house.watch(endpoint).wait_moving("robot-1")


def test_robot_leaves_a_server_that_stops_answering(house):
    """Stopped is worse than dead: its connections stay."""
    house.router()
    watch = house.watch()
    first = house.serve(name="first", mode="client", server_id="first")
    robot = house.robot()
    watch.wait_moving("robot-1")
    house.serve(name="second", mode="client", server_id="second")
    first.process.send_signal(signal.SIGSTOP)
    robot.wait_line("attached to server second")
    watch.wait_moving("robot-1")
    first.process.send_signal(signal.SIGCONT)
    first.wait_line("robot-1 left")
    watch.wait_moving("robot-1")
    assert len(robot.lines("attached to server")) == 2


def begin(house, watch):
    """A robot that plays chunks, and its boot."""
    robot = house.robot()
    robot.wait_line("attached to server gpu-1")
    boot = int((house.folder / "robot-1.boot").read_text())
    wait_until(
        lambda: watch.newest.get("robot-1", {}).get("boot") == boot,
        "no metrics of this start",
    )
    watch.wait_moving("robot-1")
    return robot, boot


def test_a_killed_robot_comes_back_as_another_start(house):
    """Of the same name and from the same file: a later boot tells them apart."""
    server, watch = house.serve(), house.watch()
    robot, first = begin(house, watch)
    robot.kill()
    robot, second = begin(house, watch)
    assert first < second
    for boot in (first, second):
        server.wait_line(f"server: robot-1 attached (boot {boot})")
    assert robot.stop() == 0


def test_a_killed_servers_socket_is_taken_over(house):
    house.serve().kill()
    assert (house.folder / "socket").is_socket()
    robot = house.robot()
    house.serve()
    house.watch().wait_moving("robot-1")
    assert robot.stop() == 0
