"""JUnit XML, annotations and JSON hold any name, and are the same for the same file."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.ttsim.study.check.checked import file_of, found
from ttsim.study.check.outputs import annotations, as_json, junit, table
from ttsim.study.check.verdicts import Verdict

ODD = "a<b>&\"'\x00\x1b[31m\ud800\ufffe\n% ,:日本"


def odd(folder, name=ODD):
    """A file whose entry has a name with all that formats escape; one figure is above, one holds, one does not run."""
    file = file_of(folder, "cycles = 1\ntime_ns = 7\ndram_bytes = 1", halo=7)
    above, holds, other = (replace(finding, budget=replace(finding.budget, name=name)) for finding in found(file))
    return file, [above, holds, replace(other, verdict=Verdict.DOES_NOT_RUN, report=None, measured=None, error=name)]


def test_junit_is_well_formed_and_counts(tmp_path):
    file, findings = odd(tmp_path)
    text = junit(file, findings)
    root = ElementTree.fromstring(text.encode())
    (suite,) = root
    for element in (root, suite):
        assert [element.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    above, holds, broken = suite
    assert above.get("classname") == ODD.replace("\x00", "\\x00").replace("\x1b", "\\x1b").replace(
        "\ud800", "\\ud800").replace("\ufffe", "\\ufffe")  # fmt: skip
    assert (above.get("name"), above.get("file"), above.get("line")) == ("cycles", str(file.path), "2")
    properties = {item.get("name"): item.get("value") for item in above.iter("property")}
    assert properties == {"budget": "1", "measured": "7", "band": "2 %", "error expected": "5.0 %"}
    assert above.find("failure").get("type") == "above"
    assert "cycles is 7, 600.00 % above the budget of 1" in above.find("failure").text
    assert [child.tag for child in holds] == ["properties"]
    large = junit(file, [replace(findings[0], limit=12345, measured=Fraction(2345678, 1000))])
    values = [item.get("value") for item in ElementTree.fromstring(large.encode()).iter("property")]
    assert values[:2] == ["12345", "2345.678"]
    assert broken.find("error").get("message").startswith("dram_bytes has the budget 1, and the entry does not run: a<")
    assert text == junit(file, findings)


def test_annotations_escape_what_commands_end_at(tmp_path, monkeypatch):
    file, findings = odd(tmp_path, "50%,a:b\r\nc")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    first, last = annotations(file, findings).splitlines()
    path = str(file.path)
    assert first.startswith(
        f"::error file={path},line=2,title=50%25%2Ca%3Ab%0D%0Ac%3A cycles::cycles is 7, 600.00 %25 ab"
    )
    assert last.endswith("and the entry does not run: 50%25,a:b%0D%0Ac")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    assert f"file={tmp_path.name}/budgets.toml," in annotations(file, findings)


def test_json_has_every_figure(tmp_path):
    file = file_of(tmp_path, 'name = "net"\ncycles = 6\noperations = ["HaloDeviceOperation"]', halo=7)
    document = json.loads(as_json(file, found(file)))
    (entry,) = document["budgets"]
    assert {name: entry[name] for name in ("name", "line", "device", "band_percent", "error_share", "error")} == {
        "name": "net", "line": 2, "device": "wormhole_n150", "band_percent": 2.0, "error_share": 0.05, "error": None,
    }  # fmt: skip
    assert (entry["operations"], entry["untimed_operations"]) == (["HaloDeviceOperation"], 0)
    cycles, operations = entry["figures"]
    share = pytest.approx(1 / 6)
    assert cycles == {"figure": "cycles", "budget": 6, "measured": 7, "share": share, "verdict": "above", "changes": []}
    assert (operations["budget"], operations["verdict"]) == (["HaloDeviceOperation"], "holds")


def test_the_table_has_a_line_for_each_figure_and_no_characters_that_steer(tmp_path):
    file, findings = odd(tmp_path)
    lines = table(file, findings, None).splitlines()
    assert lines[-1] == "one budget, 3 figures: 1 holds, 1 above, 1 of entries that do not run"
    assert len(lines) == 1 + 3 + 2 + 1
    assert lines[4].startswith(f"{file.path}:2: a<b>&\"'\\x00\\x1b[31m\\ud800")
    assert "\x1b" not in "".join(lines)
    narrow = table(file._replace(path=Path("b")), findings[:2], 70).splitlines()
    assert "device" not in narrow[0]
    assert max(map(len, narrow)) <= 74  # a name of 40 columns
