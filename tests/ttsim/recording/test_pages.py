"""A page and a timeline of a call that was profiled."""

import gzip
import json

import numpy as np

import ttsim as ttnn
from ttsim.recording.pages import page_files


def files(side: int = 8) -> dict[str, bytes]:
    with ttnn.open_device(device_id=0, spec="wormhole_n150", values="off", l1_small_size=32768) as device:
        x = ttnn.Tensor(np.zeros((1, 1, side * side, 32), np.float32), ttnn.bfloat16).to(device, ttnn.L1_MEMORY_CONFIG)
        w = ttnn.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttnn.bfloat16)
        with ttnn.profile(device) as made:
            ttnn.conv_transpose2d(
                input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
                input_height=side, input_width=side, kernel_size=(2, 2), stride=(2, 2))  # fmt: skip
        return page_files(made.network(), made.report(), made.ran, device.spec)


def test_a_call_has_a_page_and_a_timeline() -> None:
    found = files()
    assert b"HaloDeviceOperation" in found["html"]
    assert b"circular buffer" in found["html"]
    events = json.loads(gzip.decompress(found["trace.json.gz"]))["traceEvents"]
    names = {one["name"] for one in events if one["ph"] == "X"}
    assert {"HaloDeviceOperation", "Conv2dDeviceOperation"} <= names
    assert any(one["ph"] == "C" and one["args"]["circular buffers"] > 0 for one in events)


def test_the_page_has_the_call_as_python_under_its_first_operation() -> None:
    page = files()["html"].decode()
    assert "ttnn.conv_transpose2d,\n    device=device,\n    input_tensor=ttnn.TensorDescription((1, 1, 64, 32)" in page
    assert "stride=(2, 2)," in page
    assert "Not known: what a network should give" in page


def test_equal_calls_give_equal_bytes() -> None:
    assert files() == files()


def test_the_timeline_of_all_64_cores_is_small() -> None:
    packed = files(side=64)["trace.json.gz"]
    events = json.loads(gzip.decompress(packed))["traceEvents"]
    assert len({one["pid"] for one in events if one["ph"] == "X"}) == 1 + 64
    assert len(packed) < 2_000_000
