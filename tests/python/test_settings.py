# SPDX-License-Identifier: Apache-2.0
"""Where settings come from, and who is told when one is wrong."""

import json

import numpy as np
import pytest
import tendon
from arms import Arm, settings
from tendon._description import join
from tendon.settings import Settings, endpoint, identity, render


def test_a_file_and_arguments_are_joined(site):
    fields = settings(site)
    path = site.write("arm.yaml", fields | {"fps": 50, "urgency": 0.25})
    given = {"fps": 100, "task": "bow"}
    joined = join(Arm(), path, given).fields
    names = ("cluster_uuid", "client_uuid", "task", "fps", "urgency")
    assert [joined[name] for name in names] == [
        fields["cluster_uuid"],
        fields["client_uuid"],
        "bow",
        100,
        "0.25",
    ]
    arm = Arm()
    arm.start(path, **given)
    arm.close()


def test_a_field_that_is_wrong_is_traced_to_who_gave_it(site):
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in settings(site).items()]
    path = site.folder / "arm.yaml"
    path.write_text("# a robot\n" + "\n".join([*lines, "jpeg_quality: 101"]))
    for given, says in (
        ({}, rf"{path}:{len(lines) + 2}: jpeg_quality: must be 1 to 100"),
        ({"jpeg_quality": 90, "urgency": 2}, "argument urgency: must be 0 to 1"),
        ({"jpeg_quality": 90, "urgencey": 1}, "argument urgencey: "),
    ):
        with pytest.raises(tendon.Invalid, match=says):
            Arm().start(path, **given)


def test_a_folder_alone_is_where_to_record(tmp_path):
    for folder in (tmp_path, str(tmp_path)):
        made = join(Arm(), None, {"record": folder})
        assert made.fields["record"] == {"dir": str(tmp_path)}
    made = join(Arm(), None, {"record": {"codec": "h264"}})
    assert made.fields["record"] == {"codec": "h264"}


def test_a_field_that_is_missing_is_named():
    with pytest.raises(tendon.Invalid, match="cluster_uuid"):
        Arm().start()


@pytest.mark.parametrize(
    ("text", "says"),
    [("- a", "must be a map"), ("a: 1\na: 2", ":2: a twice"), ("a: [", "arm.yaml")],
)
def test_a_file_that_is_no_settings_is_refused(tmp_path, text, says):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    with pytest.raises(tendon.Invalid, match=says):
        Arm().start(path)
    with pytest.raises(tendon.Invalid, match="No such file"):
        Arm().start(tmp_path / "none.yaml")


def test_a_version_stays_as_it_is_written(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text("model_version: 1.10\nfps: 30\nclient_uuid: 'no'\ntask: off\n")
    made = Settings()
    made.add_file(path)
    assert made.text() == (
        '"model_version": 1.10\n"fps": 30\n"client_uuid": "no"\n"task": "off"\n'
    )


def test_what_cannot_be_a_setting_is_named():
    assert render({"a": [1, True, None, np.float32(0.5)]}, "x") == (
        '{"a": [1, true, null, 0.5]}'
    )
    with pytest.raises(TypeError, match="x.a: a setting cannot be a set"):
        render({"a": {1}}, "x")


def test_an_endpoint_may_be_an_address():
    assert endpoint("tcp://gpu:7447") == "tcp/gpu:7447"
    assert endpoint("unixsock-stream//tmp/s") == "unixsock-stream//tmp/s"


def test_arguments_go_before_variables_and_those_before_the_file(monkeypatch, tmp_path):
    (tmp_path / "tendon.yaml").write_text("cluster: c\nexperiment: c\nclient_uuid: c\n")
    monkeypatch.setenv("TENDON_CLUSTER", "b")
    monkeypatch.setenv("TENDON_EXPERIMENT", "b")
    found = identity({"cluster": "a"}, ("cluster", "experiment", "client_id"))
    assert found == {"cluster": "a", "experiment": "b", "client_id": "c"}


def test_what_is_missing_is_named_with_where_it_could_be():
    with pytest.raises(
        tendon.Invalid,
        match="missing: server: as an argument, in TENDON_SERVER or as server in"
        " tendon.yaml; client_id: ",
    ):
        identity({}, ("server", "client_id"))


def test_a_folder_file_with_another_field_is_refused(tmp_path):
    (tmp_path / "tendon.yaml").write_text("\nclustre: c\n")
    with pytest.raises(tendon.Invalid, match="tendon.yaml:2: clustre: not known"):
        identity({}, ())
