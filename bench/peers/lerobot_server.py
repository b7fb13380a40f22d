# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own asynchronous policy server.

lerobot_server.py HOST PORT HEIGHT WIDTH POLICY: "still" costs nothing and answers
with 50 x 14 zeros, and the server does not round that up to the period that is its
default; "wave" is the policy of wave_policy.py."""

import logging
import os
import sys
import tempfile
from concurrent import futures

folder = tempfile.TemporaryDirectory(prefix="td-")  # goes with us
os.chdir(folder.name)  # where it keeps its logs
logging.disable()

import grpc
import torch
import wave_policy
from lerobot.async_inference import policy_server
from lerobot.async_inference.configs import PolicyServerConfig
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.transport import services_pb2_grpc
from lerobot.utils.constants import OBS_STATE

CHUNK = torch.zeros(1, 50, 14)


def still(_):
    return CHUNK


def wave(observation):
    rows = wave_policy.infer({"state": observation[OBS_STATE][0].numpy()})
    return torch.from_numpy(rows)[None]


POLICIES = {"still": (still, {"inference_latency": 0}), "wave": (wave, {})}


class Config:
    def __init__(self, height, width):
        frame = PolicyFeature(FeatureType.VISUAL, (3, height, width))
        names = ("observation.images.cam0", "observation.images.cam1")
        self.image_features = dict.fromkeys(names, frame)


class Policy:
    """In the place of a policy class."""

    def __init__(self, config, predict):
        self.config, self.predict_action_chunk = config, predict

    def from_pretrained(self, _):
        return self

    def to(self, _):
        return self


def as_it_is(value):
    return value


if __name__ == "__main__":
    host, port, height, width, name = sys.argv[1:]
    predict, options = POLICIES[name]
    policy = Policy(Config(int(height), int(width)), predict)
    policy_server.get_policy_class = lambda _: policy
    policy_server.make_pre_post_processors = lambda *_, **__: (as_it_is, as_it_is)
    config = PolicyServerConfig(host=host, port=int(port), **options)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services_pb2_grpc.add_AsyncInferenceServicer_to_server(
        policy_server.PolicyServer(config), server
    )
    server.add_insecure_port(f"{host}:{port}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()
