# SPDX-License-Identifier: Apache-2.0
"""LeRobot's names for our commands, where nobody else has them."""

import os
import subprocess
import sys

NAMES = ("lerobot-policy-server", "lerobot-robot-client")


def run(folder, command):
    return subprocess.run(
        [sys.executable, "-m", "tendon.lerobot", command, f"--folder={folder}"],
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_both_are_made_and_go_again(tmp_path):
    assert run(tmp_path, "link").returncode == 0
    assert run(tmp_path, "link").returncode == 0  # again is the same
    for name in NAMES:
        done = subprocess.run(
            [tmp_path / name, "--help"], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert "cluster_uuid" in done.stdout
    assert run(tmp_path, "unlink").returncode == 0
    assert not list(tmp_path.iterdir())


def test_a_name_that_somebody_has_is_left_alone(tmp_path):
    theirs = tmp_path / NAMES[0]
    theirs.write_text("#!/bin/sh\n")
    theirs.chmod(0o755)
    ended = run(tmp_path, "link")
    assert ended.returncode == 1
    assert "is somebody else's" in ended.stderr
    assert theirs.read_text() == "#!/bin/sh\n"
    assert (tmp_path / NAMES[1]).exists()
    run(tmp_path, "unlink")
    assert theirs.exists()
