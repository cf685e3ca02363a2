"""Which programs ttnn.reshape runs."""

import pytest

from device.errors import DeviceError
from device.plan import Refuse
from ops.op_models import load_spec
from ops.planners.shape.reshape import plan_reshape, plan_squeeze
from tests.build import place, programs, tensor_spec

SPEC = load_spec("wormhole_n150")
HIGH, GATHERED = "1x1x64x32 height/32x32/2", ["ShardedToInterleaved", "ReshapeView"]
FILLED = ["Typecast", "ReshapeView", "FillPad", "Typecast"]


@pytest.mark.parametrize(
    ("source", "shape", "where", "filler", "wanted", "after"),
    [
        # pages that stay keep their buffer
        ("2x3x8x16", (6, 8, 16), None, None, [], "dram"),
        ("2x32x64x16 tile", (1, 1, 4096, 16), None, None, [], "dram"),
        # another memory takes a program
        ("1x1x64x32", (1, 2, 32, 32), "l1", None, ["ReshapeView"], "l1"),
        ("1x1x64x32", (1, 1, 64, 32), "l1", None, ["Copy"], "l1"),
        ("1x1x33x32 tile", (1, 1, 33, 32), "l1", None, ["ReshapeView"], "l1"),
        # shards of rows are left and made again
        (HIGH, (1, 1, 32, 64), None, None, [*GATHERED, "InterleavedToSharded"], "height/16x64/2"),
        # no block has rows of 64 bytes
        ("1x1x64x64 block/64x32/2", (1, 1, 512, 8), None, None, GATHERED, "l1"),
        ("1x1x64x64 tile height/32x64/2", (1, 1, 128, 32), None, None, ["ReshapeView"], "height/64x32/2"),
        # BLOCK shards of whole tiles that somebody asks for stay
        ("1x1x64x64 tile", (1, 1, 128, 32), "block/64x32/1x2", None, ["ReshapeView"], "block/64x32/1x2"),
        # block floats move as bfloat16, and ragged ones are filled
        ("1x1x64x64 bfloat8_b tile", (1, 1, 128, 32), None, None, ["Typecast", "ReshapeView", "Typecast"], "dram"),
        ("1x1x33x64 bfloat8_b tile", (1, 1, 66, 32), None, None, FILLED, "dram"),
        ("1x1x33x64 tile", (1, 1, 66, 32), None, 1.0, ["ReshapeView", "FillPad"], "dram"),
    ],
)
def test_programs_and_places(source, shape, where, filler, wanted, after):
    plan = plan_reshape(tensor_spec(source), shape, SPEC, place=where and place(where), filler=filler)
    result = plan.results["output"]
    assert (programs(plan), result == "input") == (wanted, not wanted)
    assert (plan.tensors[result].shape, plan.tensors[result].memory_config) == (shape, place(after))


@pytest.mark.parametrize(
    ("source", "before", "text"),
    [
        ("1x1x8x16 uint16 height/4x16/2", ["ShardedToInterleaved"], "Can only work with bfloat16/float32 or int32/"),
        ("1x1x8x16 height/4x16/2", ["ShardedToInterleaved", "ReshapeView"], "Shard page size must currently have L1"),
    ],
)
def test_programs_before_a_refusal_run(source, before, text):
    """They may find no room first."""
    plan = plan_reshape(tensor_spec(source), (1, 1, 32, 4), SPEC)
    assert programs(plan) == before
    assert isinstance(plan.steps[-1], Refuse)
    assert plan.steps[-1].text.startswith(text)


@pytest.mark.parametrize(
    ("text", "source", "shape"),
    [
        (r"^Attempting to reshape between two shapes with different", "1x4", (1, 5)),
        (r"^Shard page size must be aligned to 16B", "1x1x8x12 height/4x12/2", (1, 1, 4, 24)),
        (r"^Changing the last dimension of a sharded tensor", "1x1x8x30 block/8x16/2", (8, 30)),
        (r"^Shard height 9 must match physical height 8", "1x1x8x28 width/8x32/2", (8, 28)),
    ],
)
def test_what_is_refused(text, source, shape):
    with pytest.raises(DeviceError, match=text):
        plan_reshape(tensor_spec(source), shape, SPEC)


def test_squeezed_rows_keep_the_padding_of_their_shards():
    plan = plan_squeeze(tensor_spec("1x8x30 block/8x16/2"), [0], SPEC)
    result = plan.tensors[plan.results["output"]]
    assert (programs(plan), result.shape, result.padded_shape) == ([], (8, 30), (8, 32))
