# SPDX-License-Identifier: Apache-2.0
"""The package as `pip install ./python` makes it, on every Python that is here."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import tendon
from scripts import HERE
from sdk import BUILD, libav_of
from tendon_process import BIN, PATIENCE_S, ROOT

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TRY = HERE / "try_installed.py"


def pip(*args, **options):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *args]
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,  # a network may hang
        **options,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    env = os.environ | {"TENDON_BUILD": str(pathlib.Path(BIN).parent)}
    done = pip("wheel", "-q", "--no-deps", "-w", folder, ROOT / "python", env=env)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


def test_a_wheel_has_the_runtime_inside(wheel):
    machine = os.uname().machine
    assert wheel.name == f"tendon-{tendon.__version__}-py3-none-linux_{machine}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {
        "tendon/_native/libtendon.so",
        "tendon/_native/libtendon_formats.so",
        "tendon/_native/libtendon_video.so",
        "tendon/_native/tendon",
        "tendon/py.typed",
        "tendon/worker/__main__.py",
    } <= names


def interpreter(version):
    """On the PATH, or one of pyenv's."""
    found = sorted(
        pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")
    )
    candidates = [shutil.which(f"python{version}"), *reversed(found)]
    for path in filter(None, candidates):
        command = [path, "-c", "import ensurepip, venv"]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return path
    return None


@pytest.fixture
def no_libav(tmp_path):
    """The environment of a machine without libav: what is found cannot be loaded."""
    folder = tmp_path / "no-libav"
    folder.mkdir()
    for name in libav_of(BUILD / "libtendon_video.so"):
        (folder / name).touch()
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.parametrize("version", PYTHONS)
def test_it_works_without_libav_on(version, wheel, tmp_path, site, no_libav):
    python = interpreter(version)
    if not python:
        pytest.skip(f"no Python {version} here")
    env = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", env], check=True)
    own = env / "bin/python"
    done = pip("--python", own, "install", "-q", "--only-binary", ":all:", wheel)
    assert done.returncode == 0, done.stderr
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("TENDON", "PYTHON"))
    }
    done = subprocess.run(
        [own, TRY, site.endpoint, site.folder],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean | no_libav,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def ask(what, more=None):
        command = [env / "bin/tendon", what]
        return subprocess.run(
            command, capture_output=True, text=True, env=clean | (more or {})
        ).stdout

    assert ask("--version", no_libav).split()[1] == tendon.__version__
    assert "install FFmpeg, which it needs" in ask("doctor", no_libav)
    assert "av1 and h264 can be recorded" in ask("doctor")
    assert "ok    datasets       can be recorded and read" in ask("doctor", no_libav)


def test_a_tool_that_is_missing_is_named(tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "cmake").symlink_to(shutil.which("cmake"))
    env = {k: v for k, v in os.environ.items() if k != "TENDON_BUILD"}
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "-d", tmp_path / "out"],
        cwd=ROOT / "python",
        env=env | {"PATH": str(bin_folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "missing: ninja, cargo, cc;" in done.stderr
    assert "tools/setup --all installs them" in done.stderr


def test_a_missing_library_is_named(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import tendon; tendon.Server('t/1', cluster='c',"
            " experiment='e').model('m', print, version='v', application='a');"
            "from tendon import _library; _library.load()",
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "TENDON_BUILD": "/none"},
        capture_output=True,
        text=True,
    )
    assert "ImportError: libtendon.so is not in" in done.stderr


def test_versions_agree():
    text = (ROOT / "python/pyproject.toml").read_text()
    assert f'version = "{tendon.__version__}"' in text
