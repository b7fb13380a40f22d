# SPDX-License-Identifier: Apache-2.0
"""What `tendon robot` recorded goes to the Hub with LeRobot's own command, and is
what LeRobot and `datasets` read there."""

import shutil

import datasets
import pytest
from huggingface_hub import RepoCard
from lerobot.datasets import lerobot_dataset
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from test_recorded import record


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The Hub's place, as a folder: LeRobot runs up to the network."""
    place = tmp_path / "hub"

    class Api:
        def create_repo(self, repo_id, **_):
            assert repo_id == "me/cookies"

        def upload_folder(self, folder_path, ignore_patterns, **_):
            shutil.copytree(folder_path, place)
            assert ignore_patterns == ["images/"]

        def delete_tag(self, *_, **__):
            pass

        def create_tag(self, *_, tag, **__):
            assert tag == "v3.0"

    monkeypatch.setattr(lerobot_dataset, "HfApi", Api)
    monkeypatch.setattr(
        RepoCard, "push_to_hub", lambda card, **_: card.save(place / "README.md")
    )
    return place


def test_lerobot_uploads_a_recorded_run(site, hub):
    folder = site.folder / "cookies"
    record(site, folder)
    dataset = LeRobotDataset("me/cookies", root=folder)
    dataset.push_to_hub()
    there = LeRobotDataset("me/cookies", root=hub)
    assert len(there) == len(dataset)
    for i in range(len(there)):
        assert there[i]["action"].equal(dataset[i]["action"])
    card = (hub / "README.md").read_text()
    assert "data/*/*.parquet" in card and '"codebase_version": "v3.0"' in card
    files = sorted(map(str, hub.glob("data/*/*.parquet")))
    shown = datasets.load_dataset("parquet", data_files=files, split="train")
    assert shown["index"][:] == list(range(len(dataset)))
