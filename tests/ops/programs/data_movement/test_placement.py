"""Which program deals shards anew: mirrors tt-metal's to_memory_config and the checks of its Reshard."""

from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.placement import move_up, resharding, tilized, to_config, uploaded_rows

SPEC = load_spec("wormhole_n150")
SCHEMES = {one.name[0]: one for one in TensorMemoryLayout if one.name.endswith("_SHARDED")}
CORES = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(0, 0))])


def shards(scheme, width):
    return MemoryConfig(SCHEMES[scheme], BufferType.L1, ShardSpec(CORES, (32, width)))


def rows(scheme, width, data_format=BFLOAT16, layout=Layout.ROW_MAJOR):
    return TensorSpec((1, 1, 32, width), data_format, layout, shards(scheme, width))


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (("H", 24), ("H", 24), "Reshard"),
        (("H", 23), ("H", 24), "Reshard"),
        (("B", 16), ("B", 32), "Reshard"),
        (("B", 12), ("B", 32), "Copy"),
        (("B", 79), ("H", 472), "Copy"),
        (("B", 80), ("H", 472), None),
        (("W", 32), ("B", 32), "Reshard"),
        (("W", 20), ("B", 20), "Copy"),
    ],
)
def test_rows_are_dealt_anew(before, after, name):
    found = resharding(rows(*before), shards(*after), SPEC)
    assert (None if found is None else found.value) == name


def test_wider_numbers_fill_sixteen_bytes_sooner():
    assert resharding(rows("B", 12, FLOAT32), shards("H", 48), SPEC) is None


def test_what_l1_aligns_is_a_figure_of_the_device():
    """8 columns of bfloat16 fill 16 bytes, and not 32."""
    coarse = SPEC.replace(l1_alignment_bytes=32)
    found = [resharding(rows("B", 8), shards("B", 16), spec) for spec in (SPEC, coarse)]
    assert [one and one.value for one in found] == ["Reshard", "Copy"]


@pytest.mark.parametrize(("width", "name"), [(8, "Copy"), (16, "Reshard")])
def test_rows_in_dram_fill_what_dram_aligns(width, name):
    """8 columns of bfloat16 fill 16 bytes, and pages of this DRAM are multiples of 32."""
    place = replace(shards("B", width), buffer_type=BufferType.DRAM)
    given = TensorSpec((1, 1, 32, width), BFLOAT16, Layout.ROW_MAJOR, place)
    assert resharding(given, shards("B", 32), SPEC).value == name


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (replace(shards("B", 32), buffer_type=BufferType.DRAM), "We don't support DRAM block sharding"),
        (shards("H", 64), "Shard width 64 must match physical width 32 for height sharded"),
        (
            MemoryConfig(SCHEMES["W"], BufferType.DRAM, ShardSpec(first_cores(40, 8, 8), (32, 32))),
            "Invalid shard grid: ",
        ),
    ],
)
def test_a_result_is_refused_its_place_when_all_else_has_run(place, line):
    builder = PlanBuilder(SPEC, {"input": rows("H", 32, layout=Layout.TILE)})
    result = builder.run(
        "Work",
        CopyTensor(Conversion.COPY),
        [builder.tensor("input")],
        output=PlanTensor("y", rows("H", 32, layout=Layout.TILE)),
    )
    to_config(builder, result, place, "placed")
    first, last = builder.steps
    text = last.text if isinstance(last, Refuse) else last.refused
    assert first.name == "Work"
    assert text.startswith(line)


@pytest.mark.parametrize(("place", "buffers"), [(L1_MEMORY_CONFIG, (4096, 2048)), (shards("H", 32), (0, 0))])
def test_pages_that_are_moved_up_go_through_buffers_of_their_own(place, buffers):
    """A tile of a core twice, or all of its tiles where both places overlap."""
    given = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.TILE, place)
    builder = PlanBuilder(SPEC, {"input": given})
    move_up(builder, builder.tensor("input"))
    (step,) = builder.steps
    sizes = (sum(one.size_bytes for one in made) for made in (step.circular_buffers, step.overlapping))
    assert tuple(sizes) == buffers


def test_tiles_are_always_dealt_anew_at_once():
    found = resharding(rows("B", 32, layout=Layout.TILE), shards("H", 64), SPEC)
    assert found is not None
    assert found.value == "Reshard"


@pytest.mark.parametrize(("channels", "name"), [(128, "Pad"), (120, "InterleavedToSharded"), (160, "Pad")])
def test_rows_on_the_host_are_padded_on_the_device_if_their_channels_are_whole_shards(channels, name):
    """Five columns of cores with 32 channels each; 100 rows are no whole shards of 32."""
    builder = PlanBuilder(SPEC, {"input": TensorSpec((1, 1, 100, channels), BFLOAT16, Layout.ROW_MAJOR)})
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(4, 3))])
    place = MemoryConfig(SCHEMES["B"], BufferType.L1, ShardSpec(grid, (32, 32)))
    made = uploaded_rows(builder, builder.tensor("input"), place, place, "sharded")
    plan = builder.finish({"sharded": made.name})
    assert [step.name for step in plan.steps if isinstance(step, Operation)] == [f"{name}DeviceOperation"]


def test_rows_of_height_shards_are_padded_across_and_down_before_they_become_tiles():
    """Five cores share 144 rows, then 160, of which each takes a tile."""
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(4, 0))])
    place = MemoryConfig(SCHEMES["H"], BufferType.L1, ShardSpec(grid, (32, 96)))
    given = TensorSpec((1, 1, 144, 80), BFLOAT16, Layout.ROW_MAJOR, place, (1, 1, 144, 96))
    builder = PlanBuilder(SPEC, {"input": given})
    made = tilized(builder, builder.tensor("input"), "tiles")
    plan = builder.finish({"tiles": made.name})
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == ["Pad", "Pad", "Tilize"]
    dealt = [plan.tensors[name].memory_config.shard_spec for name in ("tiles.across", "tiles.down", "tiles")]
    assert [one and one.shape for one in dealt] == [(29, 96), (32, 96), (32, 96)]
