# SPDX-License-Identifier: Apache-2.0
"""How a robot's program ends: by Ctrl-C, by an exception, or by just ending."""

import json
import signal

import pytest
from arms import settings
from scripts import Script

ROBOT = """
    import json, logging, sys, time
    from arms import Arm
    logging.basicConfig(level="INFO")

    class Mine(Arm):
        def read(self):
            print("reads")
            return super().read()

        def write(self, action):
            if not self.written:
                print("moves")
            super().write(action)
            {body}

    given = json.loads(sys.argv[1])
    {run}
    print("after")
"""


@pytest.fixture
def script(site):
    def begin(run, body="pass"):
        text = ROBOT.format(run=run, body=body)
        return Script(site, "robot", text, json.dumps(settings(site)))

    return begin


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(site, script, number):
    site.serve()
    robot = script("Mine().run(**given)")
    robot.wait_line("moves")
    assert robot.stop(number) == 0
    assert robot.lines("after") and not robot.lines("Traceback")


def test_ctrl_c_ends_it_while_there_is_no_server(script):
    robot = script("Mine().run(**given)")
    robot.wait_line("reads")
    assert robot.stop(signal.SIGINT) == 0


def test_what_it_raised_is_raised_in_the_end(site, script):
    site.serve()
    robot = script("Mine().run(**given)", "raise OSError('the bus is gone')")
    robot.wait_line("write failed: OSError: the bus is gone")
    assert robot.stop(signal.SIGINT) == 1
    assert not robot.lines("after")
    assert robot.text().count("OSError: the bus is gone\n") == 3  # log, trace, end


def test_a_second_ctrl_c_does_not_wait_for_a_method(site, script):
    site.serve()
    robot = script("Mine().run(**given)", "print('blocks'); time.sleep(30)")
    robot.wait_line("blocks")
    robot.process.send_signal(signal.SIGINT)
    robot.wait_line("interrupted")
    robot.stop(signal.SIGINT)
    assert robot.lines("KeyboardInterrupt")


def test_a_program_may_end_without_closing(site, script):
    site.serve()
    robot = script("arm = Mine(); arm.start(**given); arm.moved.wait()")
    assert robot.ended() == 0, robot.text()
    assert robot.lines("after") and not robot.lines("Traceback")
