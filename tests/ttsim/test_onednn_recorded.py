"""oneDNN's own tests of deconvolutions: shapes that it accepts, paddings that it refuses."""

import json
import re

import numpy as np

import ttsim
from ttsim import onednn


def cases(recordings, kind):
    """The conformance cases of a kind by their names."""
    listed = json.loads(recordings("oracle/deconvolution/cases.json").read_text(encoding="utf-8"))["cases"]
    return {case["id"]: case for case in listed if case["kind"] == kind}


def planned_shape(case):
    given = {name: value for name, value in case["attrs"].items() if name not in ("weights_format", "weights_shape")}
    arrays = [np.broadcast_to(np.float32(0), shape) for shape in case["inputs"]]
    if case["op"] == "ConvTransposeBackwardWeights":
        arrays.append(np.array(case["attrs"]["weights_shape"], np.int32))
    format_name = case["attrs"].get("weights_format", "XOI")
    return list(onednn.OPERATIONS[case["op"]].call(arrays, {**given, "weights_format": format_name}).shape)


def test_shapes_of_onednn_s_own_tests(recordings):
    listed = cases(recordings, "shape")
    assert {name: planned_shape(case) for name, case in listed.items()} == {
        name: case["expect_shape"] for name, case in listed.items()
    }


def refusal(case):
    """What a call is refused for, "" if it is not."""
    axes = len(case["attrs"]["pads_begin"])
    pads = {name: case["attrs"][name] for name in ("pads_begin", "pads_end")}
    given = {"strides": [1] * axes, "dilations": [1] * axes, **pads}
    src = np.zeros((1, *[5] * axes, 1), np.float32)
    arrays = [src, np.zeros((*[3] * axes, 1, 1), np.float32)]
    if case["op"] == "ConvTransposeBackwardWeights":
        sizes = [7 - sum(both) for both in zip(given["pads_begin"], given["pads_end"], strict=True)]
        arrays = [src, np.zeros((1, *sizes, 1), np.float32), np.array([*[3] * axes, 1, 1], np.int32)]
    try:
        onednn.OPERATIONS[case["op"]].call(arrays, given)
    except ttsim.ArgumentError as error:
        match = re.search(r"pads_(begin|end) must be at least 0", str(error))
        return "padding" if match else str(error)
    return ""


def test_padding_of_onednn_s_own_tests(recordings):
    listed = cases(recordings, "validate")
    assert {name: refusal(case) for name, case in listed.items()} == {
        name: "" if case["expect_ok"] else "padding" for name, case in listed.items()
    }
