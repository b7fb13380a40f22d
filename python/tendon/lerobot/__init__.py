# SPDX-License-Identifier: Apache-2.0
"""LeRobot on both ends: its policies behind a server, its robots at the edge.

`tendon.lerobot.policy:Policy` runs a checkpoint in a worker, `tendon-policy-server`
serves one, and `tendon-robot-client` drives a robot of LeRobot's. docs/lerobot.md
tells how; LeRobot itself is not installed with this package.
"""
