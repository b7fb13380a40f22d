# SPDX-License-Identifier: Apache-2.0
"""Routers that join each other, and addresses at which nobody answers."""

from tendon_process import free_endpoint


def test_robot_and_server_meet_over_two_routers(site):
    near, far = free_endpoint(), free_endpoint()
    site.router(near)
    joined = site.router(far, "--connect", near)
    server = site.serve(near, mode="client")
    watch = site.watch(far)
    robot = site.robot(endpoint=far)
    watch.wait_moving("robot-1")
    watch.wait_more("robot-1", "fresh", 300)
    assert watch.count("robot-1", "entered_reconnecting") == 0
    for process in (joined, server, robot):
        process.wait_line("net: link up")


def test_address_at_which_nobody_answers_is_named(site):
    there, nowhere = free_endpoint(), free_endpoint()
    site.router(there)
    server = site.serve(connect=[there, nowhere])
    server.wait_line(f"net: nobody answers at {nowhere} yet; going on trying")
    watch = site.watch()
    site.robot()
    watch.wait_moving("robot-1")


def test_router_names_another_that_is_not_there(site):
    nowhere = free_endpoint()
    router = site.router(None, "--connect", nowhere)
    router.wait_line(f"net: nobody answers at {nowhere} yet; going on trying")
