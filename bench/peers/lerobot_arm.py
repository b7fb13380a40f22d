# SPDX-License-Identifier: Apache-2.0
"""The simulated robot of stamped_arm.py over a network: through LeRobot's own
asynchronous client, or through ours.

lerobot_arm.py ours|theirs ADDRESS HEIGHT WIDTH SECONDS: each with its defaults, at
30 Hz, for chunks of 50. A block restarts the client and watches it for SECONDS.
Its numbers are the share of ticks with a new action in percent, the p50 and p99 of
how old those were in milliseconds, and the kB a second that the network carried,
both ways."""

import contextlib
import logging
import os
import pathlib
import sys
import tempfile
import threading
import time

folder = tempfile.TemporaryDirectory(prefix="td-")  # goes with us
os.chdir(folder.name)  # where LeRobot keeps its logs
logging.disable()

from blocks import hold_signals, quantile, run_blocks
from lerobot.async_inference.configs import RobotClientConfig
from lerobot.async_inference.robot_client import RobotClient
from stamped_arm import StampedArm, StampedArmConfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from tendon.lerobot.robot import LeRobotRobot

FPS = 30
ROWS = 50
SETTLE_S = 2
PATIENCE_S = 60


def carried_bytes():
    """Over every cable of this network, both ways."""
    lines = pathlib.Path("/proc/self/net/dev").read_text().splitlines()[2:]
    cards = (line.split(":") for line in lines)
    words = [numbers.split() for name, numbers in cards if name.strip() != "lo"]
    return sum(int(each[0]) + int(each[8]) for each in words)


def watch(arm, seconds):
    if not arm.moved.wait(PATIENCE_S):
        sys.exit("no action came")
    time.sleep(SETTLE_S)
    arm.take_ages()
    begin, before = time.perf_counter(), carried_bytes()
    time.sleep(seconds)
    took = time.perf_counter() - begin
    ages_s, carried = sorted(arm.take_ages()), carried_bytes() - before
    if not ages_s:
        sys.exit("no action came any more")
    fresh = min(1, len(ages_s) / (took * FPS))
    p50_s, p99_s = quantile(ages_s, 0.5), quantile(ages_s, 0.99)
    return 100 * fresh, 1e3 * p50_s, 1e3 * p99_s, carried / took / 1e3


@contextlib.contextmanager
def theirs(address, config):
    client = RobotClient(
        RobotClientConfig(
            policy_type="act",
            pretrained_name_or_path="wave",
            robot=config,
            actions_per_chunk=ROWS,
            server_address=address,
        )
    )
    if not client.start():
        sys.exit("no server")
    threads = [
        threading.Thread(target=client.receive_actions, daemon=True),
        threading.Thread(target=client.control_loop, args=("",), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield client.robot
    finally:
        client.shutdown_event.set()
        for thread in threads:
            thread.join()
        client.stop()


@contextlib.contextmanager
def ours(address, config):
    arm = StampedArm(config)
    with LeRobotRobot(arm) as robot:
        robot.start(
            cluster_uuid="bench",
            experiment_tag="python",
            model_id="still",
            model_version="v1",
            application_tag="still",
            client_uuid="arm",
            endpoint=address,
            fps=FPS,
            actions_per_chunk=ROWS,
            boot_file=f"{folder.name}/boot",
            shared_memory=False,  # the other network is on this machine, too
            realtime={"lock_memory": False},  # torch alone has a gigabyte
        )
        yield arm


if __name__ == "__main__":
    name, address, height, width, seconds = sys.argv[1:]
    drive = {"ours": ours, "theirs": theirs}[name]
    config = StampedArmConfig(
        id="arm",
        calibration_dir=pathlib.Path(folder.name),
        height=int(height),
        width=int(width),
    )

    def block():
        with drive(address, config) as arm:
            return watch(arm, float(seconds))

    hold_signals()
    run_blocks(block)
