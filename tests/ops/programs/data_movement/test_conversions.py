"""Which program brings a tensor to another layout or place by itself, what it makes, what it refuses."""

from functools import partial

import pytest

from device.errors import DeviceError
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.programs.data_movement.conversions import copied, in_other_layout, tilized_by, unpadded_by, untilized_by
from ops.programs.data_movement.copy import Conversion
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def planned(write, source, spec=SPEC, **arguments):
    """The one step of a plan that makes "output" of a tensor, and the tensor."""
    builder = PlanBuilder(spec, {"input": tensor_spec(source)})
    result = write(builder, builder.tensor("input"), name="output", **arguments)
    (step,) = builder.finish({"output": result}).steps
    return step, result.spec


def copy(builder, source, *, conversion, **more):
    return copied(builder, Conversion(conversion), source, **more)


padded = partial(planned, partial(tilized_by, whole=False))
tilized = partial(planned, partial(tilized_by, whole=True))


@pytest.mark.parametrize(
    ("source", "asked", "after", "views"),
    [
        ("50x64 width/50x32/2", "width/64x64/1", "width/64x32/2", [None, "output", None]),  # stays on its two cores
        ("50x48 width/50x24/2", "width/64x64/1", "width/64x64/1", [None, None]),  # 48 columns become 64
        ("50x64 height/25x64/2", "height/64x64/1", "height/64x64/1", [None, None]),  # other schemes as asked for
        ("50x100 width/50x64/3", "width/64x32/4", "width/64x64/3", [None, "output", None]),  # 100 columns fill 128
    ],
)
def test_width_shards_stay_where_only_rows_are_padded(source, asked, after, views):
    step, result = padded(source, place=place(asked))
    assert result.memory_config == place(after)
    assert [buffer.view_of for buffer in step.circular_buffers] == views


def test_rows_of_a_vector_are_padded_in_its_width_shards():
    _, result = padded("100 width/1x64/2", place=place("width/32x32/4"), padded_shape=(32, 128))
    assert result.memory_config == place("width/32x32/4")  # in two axes
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(64, 16\) must be tile \{32, 32\} sized!"):
        padded("50x64 width/50x16/4", place=place("width/64x64/1"))
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(20, 64\) must be tile"):
        planned(in_other_layout, "40x64 height/20x64/2", layout=TILES, place=place("dram"))


@pytest.mark.parametrize(
    ("source", "name", "data_format"),
    [
        ("64x64 rows", "Tilize", BFLOAT16),
        ("50x64 rows", "TilizeWithValPadding", BFLOAT16),
        ("64x64 tile", "UntilizeCodegen", BFLOAT16),
        ("64x64 float32 tile", "Untilize", None),  # has no program of its own
        ("64x64 tile height/32x64/2", "Untilize", BFLOAT16),  # nor have shards
        ("64x64 bfloat8_b tile", "UntilizeCodegen", BFLOAT16),  # no rows of block floats
        ("50x64 tile", "UntilizeWithUnpadding", BFLOAT16),
    ],
)
def test_a_program_for_each_change_of_layout(source, name, data_format):
    before, other = tensor_spec(source), TILES if "rows" in source else ROWS
    step, spec = planned(in_other_layout, source, layout=other)
    assert step.name == f"{name}DeviceOperation"
    assert (spec.shape, spec.layout, spec.memory_config) == (before.shape, other, before.memory_config)
    assert spec.data_format == data_format or before.data_format


def test_one_core_takes_no_shards_and_no_program_that_was_generated():
    step, _ = tilized("64x64 height/32x64/2", place=place("height/32x64/2"), on_one_core=True)
    assert (step.refused or "").partition("\n")[0] == "Multicore must be enabled for sharded input"
    step, _ = planned(untilized_by, "64x64 tile", target=tensor_spec("64x64"), on_one_core=True)
    assert (step.name, step.op.on_one_core) == ("UntilizeDeviceOperation", True)
    step, _ = planned(untilized_by, "96x64 tile height/64x64/2", target=tensor_spec("96x64"), on_one_core=True)
    assert step.refused.startswith("Uneven input shard height 64 for tensor height 96 not supported for single core")


@pytest.mark.parametrize(("columns", "aligned_bytes", "refused"), [(24, 16, False), (20, 16, True), (24, 32, True)])
def test_rows_of_shards_that_are_padded_lie_on_what_l1_aligns(columns, aligned_bytes, refused):
    """Three shards of 24 columns are 48 bytes a row, of 20 columns 40."""
    spec = SPEC.replace(l1_alignment_bytes=aligned_bytes)
    step, _ = padded(f"50x{3 * columns} width/50x{columns}/3", spec, place=place("dram"))
    assert (step.refused is not None, bool(step.circular_buffers)) == (refused, not refused)
    assert not refused or step.refused.startswith(
        f"Input row-major shard width {columns} gives page size {2 * columns} bytes, which must be aligned to "
        f"{aligned_bytes} bytes L1 SRAM buffer alignment requirement\n"
    )


@pytest.mark.parametrize(
    ("conversion", "source", "target", "text"),
    [
        ("Tilize", "64x32", "64x32 tile", None),
        ("Tilize", "64x40", "64x64 tile", "Input tensor width (40) must be divisible by tile width (32)"),
        ("Tilize", "40x64", "64x64 tile", "Input tensor height (40) must be divisible by tile height (32)"),
        ("TilizeWithValPadding", "50x64 uint8", "50x64 uint8 tile", "Can only tilize bfloat16/float32 or int32/"),
        ("Copy", "64x64", "64x64 float32", "Only tile layout supports dtype conversion"),
        ("Untilize", "64x64 tile height/32x64/2", "64x60 height/32x60/2", "Output shard row size 120 bytes must be"),
        ("Reshard", "1x4 height/1x4/1", "1x4 height/1x4/1", "DataflowBufferSpec 'shard' has num_entries = 0."),
        ("Reshard", "6x280 width/6x40/7", "6x280 block/1x48/8x8", "unordered_map::at"),
    ],
)
def test_what_else_is_refused(conversion, source, target, text):
    step, _ = planned(copy, source, conversion=conversion, target=tensor_spec(target))
    assert step.refused is text or step.refused.startswith(text)
    assert bool(step.circular_buffers) is (text is None)


def test_what_is_kept_stands_in_the_op():
    """Rows of tiles are cut to their shape; a copy of all keeps all."""
    step, spec = planned(unpadded_by, "64x64 tile", shape=(40, 50), place=place("dram"))
    assert (spec.shape, step.op.kept) == ((40, 50), (40, 50))
    result = tensor_spec("64x64 bfloat8_b tile l1")
    step, _ = planned(copy, "64x64 tile", conversion="Copy", target=result)
    assert (step.name, step.op.kept, step.op.formats) == ("CopyDeviceOperation", None, (BFLOAT16, BFLOAT8_B))
