# SPDX-License-Identifier: Apache-2.0
import signal

import pytest
from sdk import Sdk
from tendon_process import Site, run


def pytest_configure():
    """A shell that starts us with `&` has Ctrl-C ignored, by our children too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def swept():
    """Some tests kill: what the dead could not remove goes with the next start."""
    yield
    run("doctor")


@pytest.fixture
def site(swept):
    with Site() as made:
        yield made


@pytest.fixture(scope="module")
def module_site(swept):
    with Site() as made:
        yield made


@pytest.fixture(scope="session")
def sdk(tmp_path_factory):
    return Sdk(tmp_path_factory.mktemp("sdk"))
