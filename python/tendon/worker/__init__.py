# SPDX-License-Identifier: Apache-2.0
"""Serves a Python callable as the model of a Tendon server.

`tendon serve` starts it with `engine: {kind: worker, python: "policy.py:infer"}`
in its manifest; by hand it is `python -m tendon.worker policy.py:infer`.

    import numpy as np

    def infer(obs):
        return np.repeat(obs["state"][None, :], 50, axis=0)

An observation is a dict: `state` and every named tensor as an array, every camera
as height x width x 3 bytes under its name, `task`, `client` and `metadata` (texts),
`seed`, `cursor`, `boot`, `episode` and `seq` (numbers), and `rtc`, which is None or
what is to be continued. Arrays are read-only views that are good until `infer`
returns: copy what is to stay.

An answer is rows of actions, or a dict of `actions` and whatever else the robot is
to have by name. docs/worker.md says what else a policy may do: take batches, work in
two halves, be told what is expected.
"""

#: What the server wants of the model, filled in before its module is imported:
#: model_id, model_version, device, pretrained_path, step_period_us, cameras,
#: states, actions, chunk, max_batch, results_kb. What the manifest leaves open is
#: empty or 0.
wanted = {}

_ring = None


def beat():
    """Says that a long call goes forward, so that it does not look like a hang."""
    if _ring:
        _ring.move()
