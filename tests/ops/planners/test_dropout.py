"""Dropout: buffers as ttnn 0.81.1 plans them, refusals in its words, and the numbers that are known."""

import re

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from ops.planners.dropout import DropoutArguments, plan_dropout
from tests.build import N150, place, tensor_spec


def planned(source, target=None, where=None):
    call = DropoutArguments(probability=0.5, scale=2.0, seed=1, place=None if where is None else place(where))
    return plan_dropout(tensor_spec(source), call, N150, target=None if target is None else tensor_spec(target))


@pytest.mark.parametrize(
    "source", ["64x64 tile", "64x64 tile height/32x64/2", "640x640 tile", "64x64 tile height/32x64/2 dram"]
)
def test_two_tiles_are_on_their_way_in_and_out(source):
    (step,) = planned(source).steps
    assert [(buffer.size_bytes, buffer.view_of) for buffer in step.circular_buffers] == [(4096, None)] * 2


@pytest.mark.parametrize(
    ("source", "options", "first"),
    [
        (
            "64x64 tile float32",
            {},
            "Dropout operation requires input and output data types to match. Input data type",
        ),
        ("64x64", {}, "Dropout operation requires tensor to be in Tile layout when working with non-sharded input"),
        (
            "64x64 tile",
            {"where": "height/32x64/2"},
            "Dropout operation requires Input and Output memory layout to",
        ),
        ("64x64 tile", {"target": "64x32 tile"}, "When preallocated output tensor is used, Dropout operation requires"),
        ("64x64 tile", {"target": "64x64"}, "Dropout operation requires output tensor to be in Tile layout when"),
    ],
)
def test_refusals(source, options, first):
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        planned(source, **options)


def test_elements_vanish_at_random_so_that_only_all_have_numbers():
    with ttsim.open_device() as device:
        x = ttsim.ones((32, 32), layout=ttsim.TILE_LAYOUT, device=device)
        assert np.array_equal(ttsim.experimental.dropout(x, 0.0, 1.25, seed=3).to_numpy(), np.full((32, 32), 1.25))
        with pytest.raises(ttsim.NotSimulatedError, match="chooses at random which elements vanish"):
            ttsim.experimental.dropout(x, 0.2, 1.25, seed=3)
