"""Device operations and buffers of prod, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_BLOCK_SHARDED_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32
from device.plan import Allocate, Free, Operation
from ops.op_models import load_spec
from ops.planners.product import ProductArguments, plan_product, plan_product_into
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def planned(shape, dim, data_format=BFLOAT16, layout=TILES, *, keeps=False):
    return plan_product(TensorSpec(shape, data_format, layout), ProductArguments(dim=dim, keeps=keeps), SPEC)


@pytest.mark.parametrize(
    ("call", "shape", "expected"),
    [
        (((2, 3, 64, 96), 1), (2, 64, 96), [("ProdNc", 4096, 4096)]),
        (((2, 3, 64, 96), 0, FLOAT32), (3, 64, 96), [("ProdNc", 8192, 8192)]),
        (((64, 96), None), (), [("ProdAll", 4096, 4096)]),
        (((64, 96), None, BFLOAT8_B), (), [("ProdAll", 2176, 8192), ("Typecast", 8192, 2176)]),
        (
            ((2, 3, 64, 96), -1),
            (2, 3, 64),
            [
                ("Permute", 4096, 32, 4096),
                ("ProdNc", 4096, 4096),
                ("Permute", 4096, 32),
                ("Transpose", 4096, 4096),
                ("ReshapeView", 1536, 2048, 2048),
            ],
        ),
        (((2, 2, 2, 64, 96), 0), (2, 2, 64, 96), [("Permute", 4096), ("ProdNc", 4096, 4096), ("Permute", 4096)]),
    ],
)
def test_device_operations(call, shape, expected):
    plan = planned(*call)
    found = [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]
    assert (plan.tensors[plan.results["output"]].shape, found) == (shape, expected)


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (((64, 96), 2), "Dimension for prod is out of range (expected to be in range of [-2, 1])"),
        (
            ((2, 64, 96), 0, INT32),
            "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32 or BFLOAT8_B but",
        ),
        (((70,), 0, BFLOAT16, ROWS), "To be tilizable output tensor shape Shape([96]) must be divisible by tile size"),
    ],
)
def test_refusals(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        planned(*call)


def test_shards_lie_on_cores_of_the_program():
    call = ProductArguments(dim=0, keeps=True, place=place("height/32x64/1x2"))
    plan = plan_product(tensor_spec("2x64x64 tile"), call, SPEC)  # four tiles of the result on the first column
    assert plan.tensors[plan.results["output"]].memory_config == call.place
    with pytest.raises(DeviceError, match=re.escape("Prod_nc output shard grid {[0-0 - 1-0]} must be contained in")):
        plan_product(tensor_spec("2x64x64 tile"), replace(call, place=place("height/32x64/2x1")), SPEC)


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("64x96 tile int32", "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32, BFLOAT8_B or B"),
        ("64x96 tile width/64x32/3", "Memory layout must be INTERLEAVED, got: TensorMemoryLayout::WIDTH_SHARDED"),
    ],
)
def test_the_product_of_all_elements_is_refused_beside_its_room(source, first):
    call = ProductArguments(dim=None, place=place("dram"))
    room, operation = plan_product(tensor_spec(source), call, SPEC).steps[:2]
    assert isinstance(room, Allocate)
    assert (room.tensor, operation.inputs) == ("room", ("input", "room"))
    assert operation.refused.startswith(first)


def test_the_product_of_all_elements_lies_in_shards_that_its_room_fits():
    plan = plan_product(tensor_spec("64x96 tile"), ProductArguments(dim=None, place=place("width/32x128/8")), SPEC)
    room = next(step for step in plan.steps if isinstance(step, Allocate))
    assert room.buffer.size_bytes == 32 * 2048
    assert plan.tensors[plan.results["output"]].memory_config == place("width/32x128/8")


def test_the_host_reads_the_room_and_writes_the_product_back():
    source = tensor_spec("50x96 tile")
    steps = plan_product(source, ProductArguments(dim=None, place=None), SPEC).steps
    fill, room, multiply, upload, free = steps
    assert [step.name for step in (fill, multiply)] == ["FillPadDeviceOperation", "ProdAllDeviceOperation"]
    assert room.buffer.size_bytes == 32 * 2048
    assert (upload.tensor, upload.source, upload.buffer.size_bytes) == ("product", "room", 2048)
    assert free == Free("room")


def test_shards_that_do_not_hold_the_room_are_refused():
    with pytest.raises(DeviceError, match=r"^Shard width 96 must match physical width 1024 for height sharded"):
        plan_product(tensor_spec("64x96 tile"), ProductArguments(dim=None, place=place("height/32x96/2")), SPEC)


def test_tiles_of_the_shards_of_a_vector_are_looked_at_first():
    source = TensorSpec((64,), BFLOAT16, ROWS, place("l1 width/1x32/2"))
    with pytest.raises(DeviceError, match=re.escape("Physical shard shape (1, 32) must be tile {32, 32} sized!")):
        plan_product(source, ProductArguments(dim=None, keeps=False), SPEC)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (place("width/128x32/4"), "Shard height 128 must match physical height"),
        (L1_BLOCK_SHARDED_MEMORY_CONFIG, "bad optional access"),
    ],
)
def test_the_place_of_the_result_is_looked_at_before_formats(where, message):
    source = TensorSpec((1, 2, 64, 64), INT32, TILES)
    with pytest.raises(DeviceError, match=message):
        plan_product(source, ProductArguments(dim=1, place=where, keeps=False), SPEC)


def test_rows_of_many_axes_are_seen_without_the_padding_of_their_shards():
    source = TensorSpec((2, 1, 4, 2, 64, 8), BFLOAT16, Layout.ROW_MAJOR, place("width/1024x32/1"))
    with pytest.raises(DeviceError, match="Shard height 4096 must match physical height 1024 for width sharded"):
        plan_product(source, ProductArguments(dim=None, keeps=False), SPEC)


def test_products_along_two_axes_go_into_the_caller_s_tensor():
    source, target = tensor_spec("2x3x50x64 tile"), tensor_spec("1x1x50x64 tile")
    plan = plan_product_into(source, (0, 1), SPEC, target=target)
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == ["FillPad", "ProdNc", "ProdNc"]
    assert plan.results["output"] == "target"


@pytest.mark.parametrize(
    ("source", "dims", "target", "first"),
    [
        ("2x3x32x32 tile", (-1,), "1x3x32x32 tile", "dim should be 0 - 3"),
        ("3x32x32 tile", (0,), "1x32x32 tile", "rank should be 4, got rank: 3"),
        ("2x3x32x32 tile", (0, 2), "1x3x32x32 tile", "Unsupported dim 2 for prod nc op"),
        ("2x3x32x32 tile", (3,), "2x3x32x32 tile", "Dimension (3) must be either 0 or 1"),
        ("2x3x32x32 tile", (0,), "1x1x32x32 tile", "Input and output shapes must match at dimension 1, got input: 3"),
        ("2x3x32x32 tile", (0,), "1x3x32x32 tile float32", "Error - prod requires input and output dtypes to match"),
        ("2x3x16x64", (0,), "1x3x16x64", "Height and width in tiles must be non-zero (Ht=0, Wt=2)"),
        (
            "2x3x32x32 height/24x32/8",
            (0,),
            "1x3x32x32",
            "Prod_nc input shard height=24 must be tile-height-aligned",
        ),
    ],
)
def test_what_is_not_multiplied_into_a_tensor(source, dims, target, first):
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        plan_product_into(tensor_spec(source), dims, SPEC, target=tensor_spec(target))


def test_the_caller_s_tensor_holds_the_product():
    numbers = np.random.default_rng(1).choice([0.5, 1.0, -2.0], (2, 3, 5, 7))
    with ttsim.open_device() as device:
        x, out = (
            ttsim.from_numpy(values, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
            for values in (numbers, np.zeros((1, 1, 5, 7)))
        )
        assert ttsim.prod(x, out, dims=[0, 1]) is out
        assert np.array_equal(out.to_numpy(), np.prod(numbers, (0, 1), keepdims=True))
        assert ttsim.prod(ttsim.typecast(x, ttsim.bfloat8_b), out, dims=[]).dtype is ttsim.float32
        with pytest.raises(ttsim.ArgumentTypeError, match=r"^ttnn\.prod\(\): incompatible function arguments"):
            ttsim.prod(x, dims=[0])
