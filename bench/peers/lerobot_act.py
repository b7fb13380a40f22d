# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own ACT on the CPU, with weights that mean nothing.

lerobot_act.py FOLDER HEIGHT WIDTH THREADS ROUNDS: writes the checkpoint to FOLDER,
with a frame, a state and the answer beside it. A block is ROUNDS chunks, each from
bytes in memory to actions in the robot's units; its number is their p50 in
milliseconds."""

import pathlib
import sys
import time

from blocks import hold_signals, quantile, run_blocks

hold_signals()

import numpy as np
import torch
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors

STATES = 14
FRAME = "observation.images.top"
STATE = "observation.state"


def config_of(height, width):
    joints = PolicyFeature(FeatureType.STATE, (STATES,))
    frame = PolicyFeature(FeatureType.VISUAL, (3, height, width))
    return ACTConfig(
        input_features={STATE: joints, FRAME: frame},
        output_features={"action": PolicyFeature(FeatureType.ACTION, (STATES,))},
        pretrained_backbone_weights=None,
        device="cpu",
        push_to_hub=False,
    )


def stats():
    joints = {"mean": np.zeros(STATES), "std": np.ones(STATES)}
    colours = {"mean": np.full((3, 1, 1), 0.45), "std": np.full((3, 1, 1), 0.225)}
    return {STATE: joints, "action": joints, FRAME: colours}


def make(height, width):
    """As it is without training, the batch norms too: their map is large, which the
    first projection makes small again."""
    torch.manual_seed(1)
    config = config_of(height, width)
    policy = ACTPolicy(config).eval()
    policy.model.encoder_img_feat_input_proj.weight.data /= 100
    return policy, *make_act_pre_post_processors(config, stats())


class Asked:
    def __init__(self, folder, height, width):
        self.policy, self.before, self.after = make(height, width)
        for each in (self.policy, self.before, self.after):
            each.save_pretrained(folder)
        random = np.random.default_rng(1)
        self.frame = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        self.state = random.normal(size=STATES).astype(np.float32)
        for name, array in (("frame.u8", self.frame), ("state.f32", self.state)):
            (folder / name).write_bytes(array.tobytes())
        (folder / "answer.f32").write_bytes(self.answer().tobytes())

    def answer(self):
        frame = torch.from_numpy(self.frame).permute(2, 0, 1).contiguous()
        obs = {STATE: torch.from_numpy(self.state), FRAME: frame.float() / 255}
        chunk = self.policy.predict_action_chunk(self.before(obs))
        return self.after(chunk).numpy()


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    height, width, threads, rounds = map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    path.mkdir()
    asked = Asked(path, height, width)

    def block():
        took_s = []
        for _ in range(rounds):
            start_s = time.perf_counter()
            asked.answer()
            took_s.append(time.perf_counter() - start_s)
        return (1e3 * quantile(sorted(took_s), 0.5),)

    run_blocks(block)
