"""Calls in other forms: which parts of a line and of a call change."""

import ast
import re

import numpy as np
import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from tools.fuzz.queries import LargeDraft, Scene
from tools.random_calls.variations import other_tensor, varied

LINE = "t0 = ttsim.from_numpy(numbers(1, (3, 32, 64), 'few'), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, "
LINE += "memory_config=ttsim.DRAM_MEMORY_CONFIG)\n"
RESULT = TensorSpec((3, 32, 64), BFLOAT16, Layout.TILE)


@pytest.fixture(scope="module")
def state():
    scene = Scene.of("wormhole_n150", 32768)
    with scene.device:
        yield scene.state


def drafts(state, count):
    return [LargeDraft(np.random.default_rng(seed), state, 7) for seed in range(count)]


def forms(text, state, count):
    """Calls of a text in many forms, without their result's name, and all lines."""
    both = [varied(f"t7 = {text}", {"t0": LINE}, draft, lambda: RESULT) for draft in drafts(state, count)]
    return [call.strip().removeprefix("t7 = ") for call, _ in both], [lines for _, lines in both]


def test_a_tensor_of_another_format_layout_place_or_shape(state):
    lines = [other_tensor(LINE, draft) for draft in drafts(state, 300)]
    assert all(line.startswith("t0 = ttsim.from_numpy(numbers(1, ") for line in lines)
    shapes = {re.search(r"\((\d[\d, ]*)\), 'few'", line)[1] for line in lines}
    assert {"3, 32, 64", "1, 3, 32, 64", "32, 64", "1, 32, 64", "3, 64, 32"} <= shapes
    dtypes = {re.search(r"ttsim\.(\w+), layout", line)[1] for line in lines}
    assert {"bfloat16", "float32", "bfloat8_b", "int32"} <= dtypes
    assert all("TILE" in line for line in lines if "_b, layout" in line)  # block floats have no rows
    assert {True, False} == {"ROW_MAJOR_LAYOUT" in line for line in lines} == {"shards(" in line for line in lines}


def test_a_tensor_on_the_host_stays():
    line = "t0 = ttsim.from_numpy(numbers(1, (2, 3)), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT)\n"
    assert other_tensor(line, None) == line


def test_a_call_gets_arguments_that_it_leaves_out(state):
    calls, lines = forms("ttsim.relu(t0)", state, 200)
    assert "ttsim.relu(t0)" in calls
    assert "ttsim.relu(input_tensor=t0)" not in calls  # the first argument keeps its place
    added = {keyword.arg for call in calls for keyword in ast.parse(call).body[0].value.keywords}
    assert {"memory_config", "output_tensor", "sub_core_grids"} <= added
    written = [made["t7o"] for made in lines if "t7o" in made]
    assert len(written) == sum("output_tensor=t7o" in call for call in calls)
    assert sum("(3, 32, 64)" in line for line in written) > len(written) / 2


def test_numbers_of_configs_change_and_numbers_of_the_host_do_not(state):
    text = "ttsim.multiply(t0, ttsim.from_numpy(numbers(5, (3, 32, 64)), ttsim.bfloat16, device=device), use_legacy=4)"
    calls, _ = forms(text, state, 200)
    assert all("numbers(5, (3, 32, 64))" in call for call in calls)
    assert {"use_legacy=5", "use_legacy=3"} <= {found for call in calls for found in re.findall("use_legacy=.", call)}


def test_an_argument_by_its_name(state):
    calls, _ = forms("ttsim.transpose(t0, 1, 2)", state, 60)
    assert any(call.startswith("ttsim.transpose(t0, 1, dim2=2") for call in calls)
