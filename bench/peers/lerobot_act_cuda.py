# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own ACT on a GPU, with weights that mean nothing.

lerobot_act_cuda.py FOLDER ROUNDS COMPILED: writes the checkpoint to FOLDER. A block
is ROUNDS batches of each size, each from bytes in pinned host memory to actions in
the robot's units there; its numbers are their p50 in microseconds: as LeRobot ships
it, then, where COMPILED is 1, with torch.compile's mode of the least overhead."""

import os
import pathlib
import sys
import time

from blocks import hold_signals, quantile, run_blocks

# Only what a block says goes to the reader; libraries say more.
_said = os.dup(1)
_log = os.open(f"{sys.argv[1]}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(_log, 1)
os.dup2(_log, 2)
hold_signals()

import torch
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from lerobot_act import FRAME, STATE, STATES, make, stats

HEIGHT, WIDTH = 480, 640
BATCHES = (1, 4, 16)
SIZES = (BATCHES, (1, 4))  # as it is, compiled


class Asked:
    def __init__(self, folder, compiled):
        policy, *processors = make(HEIGHT, WIDTH)
        for each in (policy, *processors):
            each.save_pretrained(folder)
        policy.config.device = "cuda"
        self.policy = policy.cuda()
        self.before, self.after = make_act_pre_post_processors(policy.config, stats())
        self.models = [policy.model]
        if compiled:
            mode = "reduce-overhead"
            self.models.append(torch.compile(policy.model, mode=mode, dynamic=False))
        size = (max(BATCHES), HEIGHT, WIDTH, 3)
        self.frames = torch.randint(0, 256, size, dtype=torch.uint8).pin_memory()
        self.states = torch.randn(max(BATCHES), STATES).pin_memory()

    def answer(self, model, batch):
        frames = self.frames[:batch].cuda(non_blocking=True).permute(0, 3, 1, 2)
        obs = {STATE: self.states[:batch], FRAME: frames.float() / 255}
        self.policy.model = model
        return self.after(self.policy.predict_action_chunk(self.before(obs))).cpu()

    def cases(self):
        for model, batches in zip(self.models, SIZES, strict=False):
            for batch in batches:
                yield model, batch


def main():
    asked = Asked(pathlib.Path(sys.argv[1]), sys.argv[3] == "1")
    rounds = int(sys.argv[2])

    def p50_us(case):
        for _ in range(5):  # the first compiles
            asked.answer(*case)
        took_s = []
        for _ in range(rounds):
            start_s = time.perf_counter()
            asked.answer(*case)
            took_s.append(time.perf_counter() - start_s)
        return 1e6 * quantile(sorted(took_s), 0.5)

    os.dup2(_said, 1)
    run_blocks(lambda: [p50_us(case) for case in asked.cases()])


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        os.write(_said, f"{type(error).__name__}: {error}\n".encode())
        raise
