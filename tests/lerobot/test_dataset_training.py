# SPDX-License-Identifier: Apache-2.0
"""LeRobot trains on what `tendon robot` recorded, with the statistics in it."""

import itertools

import pytest
import torch
from lerobot.configs import FeatureType
from lerobot.datasets.dataset_metadata import LeRobotDatasetMetadata
from lerobot.datasets.factory import resolve_delta_timestamps
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.policies import factory
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.utils.feature_utils import dataset_to_policy_features
from test_recorded import record
from torch.utils.data import DataLoader

STEPS = 10
ROWS = 8
BATCH = 8


def small_act(meta):
    features = dataset_to_policy_features(meta.features)
    actions = {k: v for k, v in features.items() if v.type is FeatureType.ACTION}
    return ACTConfig(
        input_features={k: v for k, v in features.items() if k not in actions},
        output_features=actions,
        device="cpu",
        chunk_size=ROWS,
        n_action_steps=ROWS,
        dim_model=32,
        n_heads=4,
        dim_feedforward=64,
        n_encoder_layers=1,
        n_vae_encoder_layers=1,
        latent_dim=8,
        dropout=0.0,
        pretrained_backbone_weights=None,
    )


@pytest.fixture
def one_thread():
    """Threads that wait for one another are slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def trained(site, one_thread):
    """A dataset, and what a policy makes of it."""
    folder = site.folder / "cookies"
    record(site, folder)
    meta = LeRobotDatasetMetadata("me/cookies", root=folder)
    config = small_act(meta)
    dataset = LeRobotDataset(
        "me/cookies",
        root=folder,
        delta_timestamps=resolve_delta_timestamps(config, meta),
    )
    prepare, _ = factory.make_pre_post_processors(config, dataset_stats=meta.stats)
    torch.manual_seed(0)
    return dataset, ACTPolicy(config), prepare


def batches(dataset, **options):
    return DataLoader(dataset, batch_size=BATCH, **options)


def test_ten_steps_make_the_loss_smaller(trained):
    dataset, policy, prepare = trained
    policy.train()
    optimizer = torch.optim.AdamW(policy.get_optim_params(), lr=1e-3)
    before = {name: part.clone() for name, part in policy.named_parameters()}
    shuffled = itertools.chain.from_iterable(
        batches(dataset, shuffle=True, drop_last=True) for _ in itertools.count()
    )
    losses = []
    for batch in itertools.islice(shuffled, STEPS):
        loss, _ = policy.forward(prepare(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert len(losses) == STEPS
    assert all(torch.isfinite(torch.tensor(losses)))
    assert sum(losses[-3:]) < sum(losses[:3]), losses
    head = "model.action_head.weight"
    assert not torch.equal(before[head], policy.get_parameter(head))


def test_statistics_bring_every_channel_to_zero_and_one(trained):
    dataset, _, prepare = trained
    states = [prepare(batch)["observation.state"] for batch in batches(dataset)]
    moves = dataset.meta.stats["observation.state"]["std"] > 1e-3
    assert moves.any()
    states = torch.cat(states).double()[:, moves]
    assert states.mean(0).abs().max() < 1e-2
    assert (states.std(0, correction=0) - 1).abs().max() < 1e-2
