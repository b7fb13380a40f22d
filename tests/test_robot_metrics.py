# SPDX-License-Identifier: Apache-2.0
"""What a robot shows of itself: charts, and numbers for Prometheus."""

import socket
import urllib.request
import xml.etree.ElementTree as xml

from prometheus_client.parser import text_string_to_metric_families

CHARTS = {"overlaps", "queue", "roundtrip", "select", "trajectory"}


def test_a_run_is_drawn(site):
    site.serve()
    watch = site.watch()
    charts = site.folder / "charts"
    robot = site.robot(args=["--plot", charts])
    watch.wait_moving("robot-1")
    assert robot.stop() == 0
    assert {path.stem for path in charts.iterdir()} == CHARTS
    for path in charts.iterdir():
        assert xml.parse(path).getroot().tag.endswith("svg")
    robot.wait_line(f"five charts of this run are in {charts}")


def test_charts_that_cannot_be_written_are_an_error(site):
    site.serve()
    watch = site.watch()
    robot = site.robot(args=["--plot", "/proc/none"])
    watch.wait_moving("robot-1")
    assert robot.stop() == 1
    assert robot.lines("tendon robot: /proc/none: ")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def numbers(port):
    """Every sample by name and labels, as Prometheus itself reads the page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    return [sample for family in families for sample in family.samples]


def total(samples, name):
    return sum(sample.value for sample in samples if sample.name == name)


def test_prometheus_reads_every_number(site):
    site.serve()
    watch = site.watch()
    port = free_port()
    robot = site.robot(prometheus_port=port)
    watch.wait_moving("robot-1")
    samples = numbers(port)
    sent = total(samples, "tendon_edge_observations_sent_total")
    ended = total(samples, "tendon_edge_observations_ended_total")
    assert sent > 0
    assert sent == ended + total(samples, "tendon_edge_observations_pending")
    state = [s for s in samples if s.name == "tendon_edge_state" and s.value == 1]
    assert [s.labels["state"] for s in state] == ["STREAMING"]
    assert total(samples, "tendon_edge_installed_seconds_count") > 0
    assert robot.stop() == 0


def test_a_port_in_use_is_named(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        robot = site.robot(prometheus_port=port)
        assert robot.ended() == 1
    assert robot.lines(f"127.0.0.1:{port}")
