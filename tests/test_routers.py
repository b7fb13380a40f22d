# SPDX-License-Identifier: Apache-2.0
"""Routers that join each other, and addresses at which nobody answers."""

from tendon_process import free_endpoint


def test_robot_and_server_meet_over_two_routers(house):
    near, far = free_endpoint(), free_endpoint()
    house.router(near)
    joined = house.router(far, "--connect", near)
    server = house.serve(near, mode="client")
    watch = house.watch(far)
    robot = house.robot(endpoint=far)
    watch.wait_moving("robot-1")
    watch.wait_more("robot-1", "fresh", 300)
    assert watch.count("robot-1", "entered_reconnecting") == 0
    for process in (joined, server, robot):
        process.wait_line("net: link up")


def test_address_at_which_nobody_answers_is_named(house):
    there, nowhere = free_endpoint(), free_endpoint()
    house.router(there)
    server = house.serve(connect=[there, nowhere])
    server.wait_line(f"net: nobody answers at {nowhere} yet; going on trying")
    watch = house.watch()
    house.robot()
    watch.wait_moving("robot-1")


def test_router_names_another_that_is_not_there(house):
    nowhere = free_endpoint()
    router = house.router(None, "--connect", nowhere)
    router.wait_line(f"net: nobody answers at {nowhere} yet; going on trying")
