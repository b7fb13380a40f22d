# SPDX-License-Identifier: Apache-2.0
"""Our own server with the policy of wave_policy.py.

tendon_server.py TENDON ENDPOINT HEIGHT WIDTH"""

import sys

from blocks import hold_signals, wait_for_end
from serving import manifest, serve
from wave_policy import JOINTS

if __name__ == "__main__":
    program, endpoint, height, width = sys.argv[1:]
    hold_signals()
    text = manifest(endpoint, "wave_policy.py:infer", JOINTS, int(height), int(width))
    with serve(program, text):
        wait_for_end()
