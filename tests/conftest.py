# SPDX-License-Identifier: Apache-2.0
import pytest
from tendon_process import House


@pytest.fixture
def house():
    with House() as made:
        yield made


@pytest.fixture(scope="module")
def module_house():
    with House() as made:
        yield made
