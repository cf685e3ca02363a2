"""What profiles remember of a call: what its script gave, and the lines of the script that ran."""

from pathlib import Path

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.runtime.execution import remembered, texts
from ttsim.runtime.traces import CallSite, script_sites


@pytest.fixture
def device():
    with ttnn.open_device(l1_small_size=32768, values="off") as opened:
        yield opened


def test_a_convolution_is_told_as_its_script_wrote_it(device):
    x = ttnn.Tensor(np.zeros((1, 1, 16, 32), np.float32), ttnn.bfloat16).to(device)
    w = ttnn.Tensor(np.full((32, 16, 2, 2), 7, np.float32), ttnn.bfloat16)
    with ttnn.profile(device) as profile:
        ttnn.conv_transpose2d(
            stride=(2, 2), input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=16,
            batch_size=1, input_height=4, input_width=4, kernel_size=(2, 2), bias_tensor=None,
            conv_config=ttnn.Conv2dConfig(deallocate_activation=True),
        )  # fmt: skip
    (call,) = profile.calls
    text = dict(texts(call.given))
    names = "stride input_tensor weight_tensor device in_channels out_channels batch_size input_height input_width "
    assert list(text) == (names + "kernel_size bias_tensor conv_config").split()  # in its order, no default among them
    assert (text["stride"], text["in_channels"], text["bias_tensor"]) == ("(2, 2)", "32", "None")
    assert text["input_tensor"].startswith(
        "ttnn.Tensor(shape=Shape([1, 1, 16, 32]), dtype=DataType.BFLOAT16, layout=Layout.ROW_MAJOR, memory_config="
    )
    assert text["input_tensor"].endswith("is_allocated=True, device_id=0)")  # as it was when the call began
    assert "7" not in text["weight_tensor"]
    assert "deallocate_activation=1," in text["conv_config"]


def test_of_functions_that_call_each_other_the_scripts_counts(device):
    x = ttnn.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)
    with ttnn.profile(device) as profile:
        ttnn.linear(x, x, activation="relu")
        x + 1.0
    assert [list(dict(texts(call.given))) for call in profile.calls] == [["activation", "0", "1"], ["0", "1"]]
    assert device.given == ()


def test_nothing_is_kept_of_a_call_that_failed(device):
    x = ttnn.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)
    with pytest.raises(RuntimeError):
        ttnn.add(x, ttnn.Tensor(np.zeros((1, 1, 32, 31), np.float32), ttnn.bfloat16))
    assert device.given == ()


class Hostile:
    def __str__(self):
        raise ValueError

    __repr__ = __str__


def test_values_of_every_kind():
    given = {
        "array": np.zeros((2, 3), np.float32),
        "several": [1, (2,), {"a": np.zeros(4, np.int8)}],
        "long": "x" * 3000,
        "hostile": Hostile(),
    }
    text = dict(texts(given.items()))
    assert text["array"] == "numpy.ndarray(shape=[2, 3], dtype=float32)"
    assert text["several"] == "[1, (2,), {a: numpy.ndarray(shape=[4], dtype=int8)}]"
    assert len(text["long"]) < 100
    assert text["hostile"].endswith("Hostile")


def test_what_is_remembered_is_told_as_it_was(device):
    config = ttnn.Conv2dConfig(act_block_h_override=32)
    tensor = ttnn.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttnn.bfloat16).to(device)
    several, array = [1], np.zeros((2, 3), np.float32)
    given = {"config": config, "tensor": tensor, "both": (several, config), "array": array, "kind": ttnn.TILE_LAYOUT}
    before = texts(given.items())
    kept = remembered(given.items())
    config.act_block_h_override = 64
    several.append(2)
    ttnn.deallocate(tensor)
    array.resize((3, 2), refcheck=False)
    assert texts(kept) == before
    assert "is_allocated=True" in dict(before)["tensor"]
    assert dict(before)["both"].startswith("([1], Conv2dConfig(")
    assert texts(given.items()) != before
    assert not any(isinstance(one, ttnn.Tensor | np.ndarray) for _, one in kept)


def here() -> tuple[CallSite, ...]:
    return script_sites()


def test_the_lines_of_a_script_are_told_outermost_first() -> None:
    outer, inner = here()[-2:]
    assert (outer.file, inner.file) == (__file__, __file__)
    assert outer.line - inner.line == 4


def test_installed_packages_and_the_library_are_left_out() -> None:
    names = {Path(site.file).name for site in max([here()], key=lambda stack: len(stack))}
    assert "python.py" not in names  # of pytest, which runs this


def test_code_without_a_file_is_told() -> None:
    space = {"script_sites": script_sites}
    exec(compile("def f():\n    return script_sites()\nfound = f()", "<cell>", "exec"), space)
    assert space["found"][-2:] == (CallSite("<cell>", 3), CallSite("<cell>", 2))  # type: ignore[index]
