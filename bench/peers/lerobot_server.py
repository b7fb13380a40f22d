# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own asynchronous policy server with a policy that costs nothing.

lerobot_server.py PORT HEIGHT WIDTH: it answers with 50 x 14 float32."""

import logging
import os
import sys
import tempfile
from concurrent import futures

os.chdir(tempfile.mkdtemp(prefix="td-"))  # where it keeps its logs
logging.disable()

import grpc
import torch
from lerobot.async_inference import policy_server
from lerobot.async_inference.configs import PolicyServerConfig
from lerobot.configs import FeatureType, PolicyFeature
from lerobot.transport import services_pb2_grpc

CHUNK = torch.zeros(1, 50, 14)


class Config:
    def __init__(self, height, width):
        frame = PolicyFeature(FeatureType.VISUAL, (3, height, width))
        names = ("observation.images.cam0", "observation.images.cam1")
        self.image_features = dict.fromkeys(names, frame)


class Still:
    """In the place of a policy class."""

    def __init__(self, config):
        self.config = config

    def from_pretrained(self, _):
        return self

    def to(self, _):
        return self

    def predict_action_chunk(self, _):
        return CHUNK


def as_it_is(value):
    return value


if __name__ == "__main__":
    port, height, width = map(int, sys.argv[1:])
    policy = Still(Config(height, width))
    policy_server.get_policy_class = lambda _: policy
    policy_server.make_pre_post_processors = lambda *_, **__: (as_it_is, as_it_is)
    config = PolicyServerConfig(host="127.0.0.1", port=port, inference_latency=0)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services_pb2_grpc.add_AsyncInferenceServicer_to_server(
        policy_server.PolicyServer(config), server
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()
