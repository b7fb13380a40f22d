# SPDX-License-Identifier: Apache-2.0
"""Every policy through our adapter is what it is in LeRobot's own hands."""

import shutil

import numpy as np
import pytest
import tiny
import torch
from lerobot.policies import factory
from lerobot.policies.utils import prepare_observation_for_inference
from tendon.lerobot.checkpoint import NoPolicy
from tiny import CAMERAS, FLOW, JOINTS, KINDS, ROWS, observation


@pytest.fixture(scope="session")
def open_policy(checkpoint):
    made = {}

    def get(kind, **wanted):
        key = (kind, tuple(wanted))
        if key not in made:
            folder = {"pretrained_path": str(checkpoint(kind)), "device": "cpu"}
            made[key] = tiny.Policy(folder | wanted)
        return made[key]

    return get


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="session")
def local(checkpoint):
    """LeRobot alone: pipeline, predict_action_chunk, pipeline."""
    made = {}

    def get(kind, obs):
        if kind not in made:
            folder = checkpoint(kind)
            policy = factory.get_policy_class(kind).from_pretrained(folder)
            pipelines = factory.make_pre_post_processors(policy.config, str(folder))
            made[kind] = (policy, *pipelines)
        policy, before, after = made[kind]
        frames = {f"observation.images.{name}": obs[name].copy() for name in CAMERAS}
        arrays = {"observation.state": obs["state"].copy()} | frames
        batch = before(
            prepare_observation_for_inference(arrays, torch.device("cpu"), obs["task"])
        )
        if kind == "diffusion":  # which takes as many as it was trained with
            steps = policy.config.n_obs_steps
            keys = [key for key in batch if key.startswith("observation")]
            batch = {key: torch.stack([batch[key]] * steps, dim=1) for key in keys}
        torch.manual_seed(obs["seed"])
        chunk = policy.predict_action_chunk(batch)
        rows = [after(chunk[:, row]) for row in range(chunk.shape[1])]
        return torch.stack(rows, dim=1)[0].numpy()

    return get


def numbers(chunks):
    return [chunk.numpy() for chunk in chunks]


def test_one_is_what_lerobot_gives_bit_for_bit(kind, open_policy, local):
    for number in range(2):
        obs = observation(number)
        (chunk,) = numbers(open_policy(kind)([obs]))
        assert chunk.shape == (ROWS, len(JOINTS))
        np.testing.assert_array_equal(chunk, local(kind, obs))


def test_a_batch_is_what_each_is_alone(kind, open_policy, local):
    tasks = ("pick the red cube", "fold the towel", "pick the blue cube")
    batch = [observation(number, task) for number, task in enumerate(tasks)]
    chunks = numbers(open_policy(kind)(batch))
    for obs, chunk in zip(batch, chunks, strict=True):
        np.testing.assert_allclose(chunk, local(kind, obs), atol=1e-5, rtol=0)


def test_a_chunk_depends_on_nothing_that_was_before(kind, open_policy):
    policy = open_policy(kind)
    first = [policy([observation(number)])[0].numpy() for number in (0, 1, 2)]
    again = [policy([observation(number)])[0].numpy() for number in (2, 0, 1)]
    for number, chunk in zip((2, 0, 1), again, strict=True):
        np.testing.assert_array_equal(chunk, first[number])
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("kind", ("diffusion", *FLOW))
def test_noise_is_the_seeds(kind, open_policy):
    policy = open_policy(kind)
    one, same, other = (
        policy([observation(0, seed=seed)])[0].numpy() for seed in (7, 7, 2**64 - 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", FLOW)
def test_two_halves_make_the_whole(kind, open_policy):
    policy = open_policy(kind)
    assert policy.spec["prefix"]
    obs = observation(3)
    (whole,) = numbers(policy([obs]))
    (prefix,) = policy.prefix([obs])
    policy([observation(4)])  # what comes between changes nothing
    for _ in range(2):  # it can be decoded again
        (chunk,) = numbers(policy.decode([({"seed": obs["seed"]}, prefix)]))
        np.testing.assert_array_equal(chunk, whole)
    layers = sum(k.nbytes + v.nbytes for k, v, _ in prefix.layers)
    assert layers <= policy.prefix_bytes(prefix) < 2 * layers


@pytest.mark.parametrize("kind", FLOW)
def test_halves_of_several_make_each_whole(kind, open_policy):
    policy = open_policy(kind)
    batch = [observation(0), observation(1, "fold the red towel"), observation(2)]
    whole = numbers(policy(batch))
    prefixes = policy.prefix(batch[:2]) + policy.prefix(batch[2:])
    chunks = numbers(policy.decode(list(zip(batch, prefixes, strict=True))))
    for chunk, expected in zip(chunks, whole, strict=True):
        np.testing.assert_allclose(chunk, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ("pi0", "pi05"))
def test_relative_actions_are_added_to_their_own_state(kind, tmp_path):
    folder = tiny.make(kind, tmp_path / kind, use_relative_actions=True)
    policy = tiny.Policy({"pretrained_path": str(folder)})
    batch = [observation(0), observation(1)]
    whole = [policy([obs])[0].numpy() for obs in batch]
    prefixes = policy.prefix(batch)
    for i in (1, 0):
        (chunk,) = numbers(policy.decode([(batch[i], prefixes[i])]))
        np.testing.assert_allclose(chunk, whole[i], atol=1e-5, rtol=0)


def test_it_says_what_it_is(kind, open_policy):
    spec = open_policy(kind).spec
    assert spec["cameras"] == CAMERAS
    assert spec["chunk"] == ROWS
    assert spec["actions"] == [f"action_{i}" for i in range(6)]
    assert spec["states"] == spec["actions"]
    assert spec["tolerance"] == pytest.approx(1e-4 if kind == "diffusion" else 1e-5)
    assert spec["max_batch"] == 1


def test_the_manifest_names_the_joints(open_policy):
    joints = dict.fromkeys(JOINTS, "linear")
    spec = open_policy("act", actions=joints, chunk=5, max_batch=4).spec
    assert spec["actions"] == spec["states"] == joints
    assert (spec["chunk"], spec["max_batch"]) == (5, 4)


def test_a_manifest_that_names_too_few_is_refused(checkpoint):
    wanted = {"pretrained_path": str(checkpoint("act")), "actions": {"lift": "linear"}}
    with pytest.raises(NoPolicy, match="the manifest names 1, the policy has 6"):
        tiny.Policy(wanted)


def test_a_policy_that_resizes_takes_the_manifests_cameras(checkpoint):
    folder = str(checkpoint("pi0"))
    policy = tiny.Policy({"pretrained_path": folder, "cameras": {"wrist": (120, 160)}})
    assert policy.spec["cameras"] == {"wrist": (120, 160)}
    obs = observation(0) | {"wrist": np.zeros((120, 160, 3), np.uint8)}
    del obs["front"]
    assert policy([obs])[0].shape == (ROWS, len(JOINTS))


def test_names_come_from_the_dataset_it_was_trained_on(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint("act"), tmp_path / "act")
    (tmp_path / "data/meta").mkdir(parents=True)
    names = str(JOINTS).replace("'", '"')
    (tmp_path / "data/meta/info.json").write_text(
        f'{{"features": {{"action": {{"names": {names}}}}}}}'
    )
    (folder / "train_config.json").write_text(
        f'{{"dataset": {{"repo_id": "a/b", "root": "{tmp_path}/data"}}}}'
    )
    assert tiny.Policy({"pretrained_path": str(folder)}).spec["actions"] == JOINTS


def test_a_camera_has_the_name_that_goes_into_the_pipeline(checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint("smolvla"), tmp_path / "smolvla")
    old, new = (
        '"rename_map": {}',
        ('"rename_map": {"observation.images.top": "observation.images.front"}'),
    )
    tiny.edit(folder, "policy_preprocessor.json", old, new)
    policy = tiny.Policy({"pretrained_path": str(folder)})
    assert list(policy.spec["cameras"]) == ["top", "wrist"]
    obs = observation(0)
    obs["top"] = obs.pop("front")
    assert policy([obs])[0].shape == (ROWS, len(JOINTS))


def test_an_observation_that_lacks_a_camera_is_refused_by_name(open_policy):
    obs = observation(0)
    del obs["wrist"]
    with pytest.raises(KeyError, match="the policy wants wrist"):
        open_policy("act")([obs])


def broken(name):
    def breaks(folder):
        (folder / name).unlink()

    return breaks


def foreign(folder):
    (folder / "config.json").write_text('{"model_type": "llama"}')


def half_weights(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = dict(list(weights.items())[::2])
    save_file(kept, folder / "model.safetensors")


@pytest.mark.parametrize(
    "kind, breaks, message",
    [
        ("act", broken("config.json"), "is no policy: it has no config.json"),
        ("act", broken("model.safetensors"), "is no policy: it has no model.safetens"),
        ("act", broken("policy_preprocessor.json"), "it has no policy_preprocessor"),
        ("act", foreign, "config.json is of no policy"),
        ("act", half_weights, "has no weights that fit"),
        ("pi0", half_weights, "has no weights that fit"),
    ],
)
def test_a_folder_that_is_no_policy_is_refused(
    kind, breaks, message, checkpoint, tmp_path
):
    folder = shutil.copytree(checkpoint(kind), tmp_path / kind)
    breaks(folder)
    with pytest.raises(NoPolicy, match=message):
        tiny.Policy({"pretrained_path": str(folder)})


@pytest.mark.parametrize("path", ("", "/no/such/folder", "nowhere"))
def test_a_path_that_leads_nowhere_is_refused(path):
    with pytest.raises(NoPolicy):
        tiny.Policy({"pretrained_path": path})
