"""How tensors of a convolution get to their places, and by which program shards are redistributed."""

from dataclasses import replace

import pytest

from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.placement import move_up, tilized, to_config
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("block/32x32/1x1 dram", "We don't support DRAM block sharding"),
        ("height/32x64/1", "Shard width 64 must match physical width 32 for height sharded"),
        ("width/32x32/40 dram", "Invalid shard grid: "),
        (None, "bad optional access"),  # shards of no shape
    ],
)
def test_a_result_is_refused_its_place_when_all_else_has_run(wanted, line):
    tensor = tensor_spec("32x32 tile height/32x32/1")
    builder = PlanBuilder(SPEC, {"input": tensor})
    op, read = CopyTensor(Conversion.COPY), builder.tensor("input")
    result = builder.run("Work", op, [read], PlanTensor("y", tensor))
    to_config(builder, result, replace(tensor.memory_config, shard_spec=None) if wanted is None else place(wanted), "z")
    first, last = builder.steps
    assert first.name == "Work"
    assert (last.text if isinstance(last, Refuse) else last.refused).startswith(line)


@pytest.mark.parametrize(("where", "sizes"), [("l1", [4096, 2048]), ("height/32x32/1", [0, 0])])
def test_pages_that_are_moved_up_go_through_buffers_of_their_own(where, sizes):
    """A tile of a core twice, or all of its tiles where both places overlap."""
    builder = PlanBuilder(SPEC, {"input": tensor_spec(f"32x32 tile {where}")})
    move_up(builder, builder.tensor("input"))
    (step,) = builder.steps
    buffers = step.circular_buffers, step.overlapping
    assert [sum(buffer.size_bytes for buffer in those) for those in buffers] == sizes


def test_rows_of_height_shards_are_padded_across_and_down_before_they_become_tiles():
    """Five cores share 144 rows, then 160, of which each takes a tile."""
    given = tensor_spec("1x1x144x80")
    given = type(given)(given.shape, given.data_format, given.layout, place("height/32x96/5"), (1, 1, 144, 96))
    builder = PlanBuilder(SPEC, {"input": given})
    result = tilized(builder, builder.tensor("input"), "tiles")
    plan = builder.finish({"tiles": result})
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == ["Pad", "Pad", "Tilize"]
    dealt = [plan.tensors[name].shards.shape for name in ("tiles.across", "tiles.down", "tiles")]
    assert dealt == [(29, 96), (32, 96), (32, 96)]
