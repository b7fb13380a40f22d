# SPDX-License-Identifier: Apache-2.0
"""Our statistics of datasets beside LeRobot's own, on the same values."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

compute_stats = pytest.importorskip("lerobot.datasets.compute_stats")
pytestmark = pytest.mark.skipif(
    "TENDON_BIN" not in os.environ, reason="needs the programs beside TENDON_BIN"
)

TYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "bool": "bool"}
CLOSE = 1e-5


def ask(*words, values=b""):
    program = pathlib.Path(os.environ["TENDON_BIN"]).parent / "dataset_stats"
    done = subprocess.run(
        [program, *map(str, words)], input=values, capture_output=True, check=True
    )
    return done.stdout.decode().split("\n")[:-1]


def statistics(*words, values):
    lines = (line.split() for line in ask(*words, values=values))
    return {name: np.array(rest, dtype=float) for name, *rest in lines}


def check(ours, theirs):
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        expected = np.asarray(value, dtype=float).ravel()
        np.testing.assert_allclose(
            ours[name], expected, rtol=0, atol=CLOSE, err_msg=name
        )


def episodes_of(dtype, channels, lengths, seed):
    random = np.random.default_rng(seed)
    for length in lengths:
        values = random.normal(
            random.uniform(-90, 90), random.uniform(0.1, 60), (length, channels)
        )
        yield (values > 0) if dtype == "bool" else values.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [1, 2, 7])
def test_columns_of_episodes_and_their_sum(dtype, channels):
    for seed, lengths in enumerate(
        [(1,), (2,), (9,), (300,), (1801,), (50, 1, 700, 3)]
    ):
        episodes = list(episodes_of(dtype, channels, lengths, seed))
        features = {"x": {"dtype": dtype, "shape": (channels,)}}
        total = None
        for episode in episodes:
            stats = compute_stats.compute_episode_stats({"x": episode}, features)
            total = compute_stats.aggregate_stats([total, stats]) if total else stats
        values = b"".join(episode.tobytes() for episode in episodes)
        check(
            statistics("column", TYPES[dtype], channels, *lengths, values=values),
            total["x"],
        )


@pytest.mark.parametrize("length", [1, 2, 99, 100, 101, 500, 1777, 20_000, 400_000])
def test_the_same_frames_are_looked_at(length):
    assert list(map(int, ask("samples", length))) == compute_stats.sample_indices(
        length
    )


@pytest.mark.parametrize(
    "size", [(48, 64), (299, 200), (300, 200), (480, 640), (1080, 1920)]
)
def test_the_same_pixels_are_looked_at(size):
    step = int(ask("step", *size)[0])
    picture = np.arange(size[0] * size[1]).reshape(1, *size)
    seen = compute_stats.auto_downsample_height_width(picture)
    assert np.array_equal(picture[:, ::step, ::step], seen)


@pytest.mark.parametrize("length", [1, 30, 130])
def test_pictures_of_an_episode(length, tmp_path):
    from PIL import Image

    random = np.random.default_rng(length)
    base = random.integers(0, 200, (320, 480, 3))
    frames = [
        (base + random.integers(0, 56) + i % 3).astype(np.uint8) for i in range(length)
    ]
    paths = [str(tmp_path / f"frame-{i:06d}.png") for i in range(length)]
    for frame, path in zip(frames, paths, strict=True):
        Image.fromarray(frame).save(path, compress_level=1)
    features = {"observation.images.front": {"dtype": "video", "shape": (320, 480, 3)}}
    theirs = compute_stats.compute_episode_stats(
        {"observation.images.front": paths}, features
    )

    step = int(ask("step", 320, 480)[0])
    seen = [frames[int(i)][::step, ::step] for i in ask("samples", length)]
    pixels = seen[0].shape[0] * seen[0].shape[1]
    values = b"".join(picture.tobytes() for picture in seen)
    ours = statistics("pictures", pixels, len(seen), values=values)
    check(ours, theirs["observation.images.front"])
