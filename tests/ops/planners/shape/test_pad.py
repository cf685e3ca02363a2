"""Which programs put a number around a tensor."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, UINT8
from device.plan import Operation, Refuse
from ops.op_models import load_spec
from ops.planners.shape.pad import plan_pad
from tests.shards import high, wide

SPEC = load_spec("wormhole_n150")
CORES = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(1, 0)))


def programs(shape, padding, layout=Layout.ROW_MAJOR, data_format=BFLOAT16, place=DRAM_MEMORY_CONFIG, to=None):
    plan = plan_pad(TensorSpec(shape, data_format, layout, place), padding, 1.5, SPEC, place=to)
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    return names, plan.tensors[plan.results["output"]]


def test_no_padding_is_the_tensor_wherever_it_is_wanted():
    assert programs((1, 8), ((0, 0), (0, 0)), to=L1_MEMORY_CONFIG)[1].memory_config == DRAM_MEMORY_CONFIG


def test_tiles_are_filled_where_they_are_and_seen_anew():
    names, result = programs((1, 1, 30, 24), ((0, 0), (0, 0), (0, 2), (0, 8)), Layout.TILE)
    assert (names, result.shape) == (["FillPad"], (1, 1, 32, 32))
    names, result = programs((1, 1, 30, 24), ((0, 0), (0, 1), (0, 0), (0, 0)), Layout.TILE)
    assert (names, result.shape, result.padded_shape) == (["FillPad", "Pad"], (1, 2, 30, 24), (1, 2, 32, 32))


def test_block_floats_are_converted_around_each_program():
    names, _ = programs((1, 1, 32, 24), ((0, 0), (0, 0), (0, 32), (0, 0)), Layout.TILE, BFLOAT8_B)
    assert names == ["Typecast", "FillPad", "Typecast", "Typecast", "Pad", "Typecast"]


def test_high_shards_grow_across_and_then_down():
    names, result = programs((1, 1, 64, 32), ((0, 0), (0, 0), (2, 0), (0, 16)), place=high((32, 32), 2))
    assert names == ["Pad", "Pad"]
    assert result.memory_config == high((33, 48), 2)
    names, result = programs(
        (1, 1, 64, 32), ((0, 0), (0, 0), (0, 0), (0, 16)), place=high((32, 32), 2), to=L1_MEMORY_CONFIG
    )
    assert (names, result.memory_config) == (["Pad"], L1_MEMORY_CONFIG)


@pytest.mark.parametrize(
    ("kind", "text", "given"),
    [
        (DeviceError, r"^ttnn.pad: on device tile padding does not support front", {"layout": Layout.TILE}),
        (
            DeviceError,
            r"^Output row-major shard width 33 gives page size 66 bytes",
            {"place": high((32, 32), 2)},
        ),
    ],
)
def test_what_is_refused(kind, text, given):
    with pytest.raises(kind, match=text):
        programs((1, 1, 64, 32), ((0, 0), (0, 0), (0, 0), (1, 0)), **given)


def test_more_axes_than_the_program_knows_are_padded_one_by_one():
    none = (0, 0)
    names, result = programs((2, 3, 1, 64, 64), ((1, 0), none, none, none, (0, 32)))
    assert (names, result.shape) == (["Pad", "Pad"], (3, 3, 1, 64, 96))
    names, result = programs((2, 3, 1, 60, 60), ((0, 1), (0, 1), (0, 1), (0, 4), (0, 4)), Layout.TILE)
    assert (names, result.shape) == (["FillPad", "Pad"] * 3, (3, 4, 2, 64, 64))
    assert programs((2, 3, 1, 64, 64), (none, none, (1, 1), none, (0, 32)))[0] == ["Pad"]


def test_vectors_in_tiles_are_padded_within_their_last_tile():
    names, result = programs((50,), ((0, 5),), Layout.TILE)
    assert (names, result.shape, result.padded_shape) == (["FillPad"], (55,), (32, 64))


def test_the_last_program_alone_writes_into_the_place():
    plan = plan_pad(
        TensorSpec((3, 1, 4, 32, 32), BFLOAT16, Layout.TILE),
        ((0, 5), (0, 5), (0, 0), (0, 0), (0, 29)),
        0.0,
        SPEC,
        place=L1_MEMORY_CONFIG,
    )
    made = [step.outputs[0].buffer.buffer_type for step in plan.steps if isinstance(step, Operation)]
    assert made == [BufferType.DRAM, BufferType.DRAM, BufferType.L1]


@pytest.mark.parametrize(
    ("columns", "layout", "data_format", "text"),
    [
        (64, Layout.TILE, UINT8, "Cannot pad tilized tensor with specified format"),
        (64, Layout.TILE, BFLOAT4_B, "Cannot pad tilized tensor with specified format"),
        (60, Layout.TILE, UINT8, "Unsupported datatype DataType::UINT8"),
        (60, Layout.ROW_MAJOR, UINT8, "Cannot pad RM tensor with specified format"),
    ],
)
def test_formats_that_are_not_padded(columns, layout, data_format, text):
    with pytest.raises(DeviceError, match=f"^{text}"):
        programs((2, 64, columns), ((0, 0), (0, 0), (0, 40)), layout, data_format)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (DRAM_MEMORY_CONFIG, "MeshBuffer must be large enough to hold the tensor."),
        (high((32, 64), 2), "Shard width 64 must match physical width 96 for height sharded"),
        (wide((32, 32), 2), "Changing the last dimension of a sharded tensor is not supported"),
    ],
)
def test_vectors_in_tiles_are_filled_before_they_are_refused(place, text):
    """The program that fills the padding may find no room first."""
    filled, refused = plan_pad(TensorSpec((64,), BFLOAT16, Layout.TILE, place), ((0, 1),), 0.0, SPEC).steps
    assert isinstance(filled, Operation)
    assert filled.name == "FillPadDeviceOperation"
    assert isinstance(refused, Refuse)
    assert refused.text.startswith(text)


@pytest.mark.parametrize(
    ("layout", "shard", "padding", "cores"),
    [
        (Layout.ROW_MAJOR, (1, 16), ((0, 0), (0, 16)), 40),
        (Layout.ROW_MAJOR, (1, 16), ((2, 0), (0, 0)), 64),
        (Layout.TILE, (32, 32), ((0, 0), (0, 16)), 2),
    ],
    ids=["wider rows", "more rows", "tiles"],
)
def test_the_cores_of_programs_that_pad_shards(layout, shard, padding, cores):
    """Forty rows on 64 cores: only the program that adds rows runs on cores without data."""
    source = TensorSpec((1, 1, 40, 16), BFLOAT16, layout, high(shard, 64))
    plan = plan_pad(source, ((0, 0), (0, 0), *padding), 0.0, SPEC)
    (program,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert {buffer.cores.num_cores() for buffer in program.circular_buffers} == {cores}
