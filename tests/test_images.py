# SPDX-License-Identifier: Apache-2.0
"""What a robot shows: images as the server wants them and the wire carries them."""

import io

import numpy as np
import PIL.Image
import PIL.JpegImagePlugin
import pytest
from outside_client import Client, array, tensor
from outside_server import Server
from scene import ROUTE, ROWS, STATUS, picture
from slow_link import SlowLink
from tendon_process import free_endpoint, wait_until

LARGE = {"cameras": {"front": {"height": 240, "width": 320}}}


def policy(obs):
    return np.repeat(array(obs["state"])[None, :], ROWS, axis=0)


@pytest.fixture
def server(site):
    """A stranger that takes images of 48 x 64, and looks at them."""
    site.router()
    return site.keep(Server(site.endpoint, ROUTE, STATUS, policy))


def newest_image(server):
    obs = wait_until(lambda: server.observations.get("robot-1"), "an observation")
    return obs["images"]["front"]


@pytest.mark.parametrize("codec", ["jpeg", "raw"])
def test_a_robot_sends_smaller_pictures_where_they_are_wanted(site, server, codec):
    site.robot(image_codec=codec, robot={"cameras": {"front": {}}})  # 480 x 640
    image = newest_image(server)
    if codec == "jpeg":
        assert PIL.Image.open(io.BytesIO(image)).size == (64, 48)
    else:
        assert image["shape"] == [48, 64, 3]
        assert np.frombuffer(image["data"], "|u1").std() > 10


@pytest.mark.parametrize(
    ("camera", "changes", "why"),
    [
        ({}, {"downscale": False}, "has 480x640, the server wants 48x64"),
        ({"height": 32}, {}, "a picture is never made larger"),
        ({"height": 96, "width": 96}, {}, "of another shape would be distorted"),
    ],
)
def test_a_picture_that_does_not_fit_is_refused(site, server, camera, changes, why):
    robot = site.robot(robot={"cameras": {"front": camera}}, **changes)
    assert robot.ended() == 1
    assert "expected_cameras.front" in robot.lines(why)[0]


@pytest.mark.parametrize(
    ("chroma", "sampling"), [("4:4:4", 0), ("4:2:2", 1), ("4:2:0", 2)]
)
def test_chroma_is_as_set(site, server, chroma, sampling):
    site.robot(jpeg_chroma=chroma)
    picture = PIL.Image.open(io.BytesIO(newest_image(server)))
    assert PIL.JpegImagePlugin.get_sampling(picture) == sampling


def test_auto_is_raw_with_a_server_on_this_machine(site):
    site.serve(engine=LARGE)
    robot = site.robot(image_codec="auto", robot=LARGE)
    robot.wait_line("images travel raw through shared memory (")


def test_auto_is_jpeg_with_a_server_without_shared_memory(site):
    site.serve(engine=LARGE, shared_memory=False)
    robot = site.robot(image_codec="auto", robot=LARGE)
    robot.wait_line("images travel as jpeg: there is no shared memory")


def test_raw_frames_cross_a_link_that_takes_long_for_one(site):
    """6 MB, more than what the sockets hold, at 25 MB/s: it is waited for."""
    size = {"height": 1080, "width": 1920}
    endpoint = free_endpoint()
    site.serve(endpoint, engine={"cameras": {"front": size}}, shared_memory=False)
    link = site.keep(SlowLink(endpoint, 25e6))
    robot = {"cameras": {"front": size | {"fps": 10}}}
    site.robot(endpoint=link.endpoint, image_codec="raw", robot=robot)
    site.watch(endpoint).wait_count("robot-1", "merged", 3)


def test_what_is_similar_is_left_out(site, server):
    watch = site.watch()
    site.robot(similarity={"enabled": True, "state": 1, "image": 255})
    watch.wait_count("robot-1", "similar", 5)
    watch.wait_moving("robot-1")  # for what must go does
    assert server.observations["robot-1"]["must_go"]


def test_each_camera_is_counted(site, server):
    watch = site.watch()
    site.robot()
    watch.wait_count("robot-1", "camera_taken/front", 5)
    watch.wait_moving("robot-1")
    assert watch.newest["robot-1"]["quantiles"]["skew_ms"]["count"] > 0


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1"])
def test_a_png_of_any_kind_is_decoded(site, mode):
    site.serve(engine={"check_images": True})
    png = {"codec": "png", "data": picture(48, 64, "png", mode)}
    cut = png | {"data": png["data"][:-20]}
    with Client(site.endpoint, ROUTE, "robot-1") as client:
        client.attach("gpu-1")
        for image, error in ((png, None), (cut, "FORMAT")):
            client.send(state=tensor(np.zeros(6)), images={"front": image})
            assert client.receive().get("error", {}).get("code") == error
