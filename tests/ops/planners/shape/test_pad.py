"""Which programs put a number around a tensor."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import BufferType
from device.plan import Operation, Refuse
from ops.op_models import load_spec
from ops.planners.shape.pad import plan_pad
from tests.build import place, programs, tensor_spec

SPEC = load_spec("wormhole_n150")
NONE = (0, 0)
CONVERTED = [name for program in ("FillPad", "Pad") for name in ("Typecast", program, "Typecast")]


def padded(source, *padding, to=None, value=1.5):
    """The plan of a tensor whose last axes are padded; the others are not."""
    tensor = tensor_spec(source)
    around = (*[NONE] * (len(tensor.shape) - len(padding)), *padding)
    return plan_pad(tensor, around, value, SPEC, place=to and place(to))


@pytest.mark.parametrize(
    ("source", "padding", "to", "wanted", "shape", "after"),
    [
        ("1x8", [NONE], "l1", [], (1, 8), "dram"),  # no padding is the tensor wherever it is wanted
        # tiles are filled where they are and seen anew
        ("1x1x30x24 tile", [(0, 2), (0, 8)], None, ["FillPad"], (1, 1, 32, 32), "dram"),
        ("1x1x30x24 tile", [(0, 1), NONE, NONE], None, ["FillPad", "Pad"], (1, 2, 30, 24), "dram"),
        # block floats are converted around each program
        ("1x1x32x24 bfloat8_b tile", [(0, 32), NONE], None, CONVERTED, (1, 1, 64, 24), "dram"),
        # HEIGHT shards grow across and then down
        ("1x1x64x32 height/32x32/2", [(2, 0), (0, 16)], None, ["Pad", "Pad"], (1, 1, 66, 48), "height/33x48/2"),
        ("1x1x64x32 height/32x32/2", [(0, 16)], "l1", ["Pad"], (1, 1, 64, 48), "l1"),
        # more axes than the program knows are padded one by one
        ("2x3x1x64x64", [(1, 0), NONE, NONE, NONE, (0, 32)], None, ["Pad"] * 2, (3, 3, 1, 64, 96), "dram"),
        ("2x3x1x60x60 tile", [(0, 1)] * 3 + [(0, 4)] * 2, None, ["FillPad", "Pad"] * 3, (3, 4, 2, 64, 64), "dram"),
        ("2x3x1x64x64", [(1, 1), NONE, (0, 32)], None, ["Pad"], (2, 3, 3, 64, 96), "dram"),
        ("50 tile", [(0, 5)], None, ["FillPad"], (55,), "dram"),  # vectors in tiles, within their last tile
    ],
)
def test_programs_and_places(source, padding, to, wanted, shape, after):
    plan = padded(source, *padding, to=to)
    result = plan.tensors[plan.results["output"]]
    assert (programs(plan), result.shape, result.memory_config) == (wanted, shape, place(after))


def test_the_last_program_alone_writes_into_the_place():
    plan = padded("3x1x4x32x32 tile", (0, 5), (0, 5), NONE, NONE, (0, 29), to="l1", value=0.0)
    result = [step.outputs[0].buffer.buffer_type for step in plan.steps if isinstance(step, Operation)]
    assert result == [BufferType.DRAM, BufferType.DRAM, BufferType.L1]


@pytest.mark.parametrize(
    ("source", "padding", "text"),
    [
        ("1x1x64x32 tile", [(1, 0)], r"^ttnn.pad: on device tile padding does not support front"),
        ("1x1x64x32 height/32x32/2", [(1, 0)], r"^Output row-major shard width 33 gives page size 66 bytes"),
        ("2x64x64 uint8 tile", [(0, 40)], "^Cannot pad tilized tensor with specified format"),
        ("2x64x64 bfloat4_b tile", [(0, 40)], "^Cannot pad tilized tensor with specified format"),
        ("2x64x60 uint8 tile", [(0, 40)], "^Unsupported datatype DataType::UINT8"),
        ("2x64x60 uint8", [(0, 40)], "^Cannot pad RM tensor with specified format"),
    ],
)
def test_what_is_refused(source, padding, text):
    with pytest.raises(DeviceError, match=text):
        padded(source, *padding)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("dram", "MeshBuffer must be large enough to hold the tensor."),
        ("height/32x64/2", "Shard width 64 must match physical width 96 for height sharded"),
        ("width/32x32/2", "Changing the last dimension of a sharded tensor is not supported"),
    ],
)
def test_vectors_in_tiles_are_filled_before_they_are_refused(where, text):
    """The program that fills the padding may find no room first."""
    plan = padded(f"64 tile {where}", (0, 1), value=0.0)
    filled, refused = plan.steps
    assert (programs(plan), filled.name) == (["FillPad"], "FillPadDeviceOperation")
    assert isinstance(refused, Refuse)
    assert refused.text.startswith(text)


@pytest.mark.parametrize(
    ("source", "padding", "cores"),
    [
        ("1x1x40x16 height/1x16/64", [(0, 16)], 40),  # wider rows
        ("1x1x40x16 height/1x16/64", [(2, 0), NONE], 64),  # more rows
        ("1x1x40x16 tile height/32x32/64", [(0, 16)], 2),
    ],
)
def test_the_cores_of_programs_that_pad_shards(source, padding, cores):
    """Forty rows on 64 cores: only the program that adds rows runs on cores without data."""
    (program,) = [step for step in padded(source, *padding, value=0.0).steps if isinstance(step, Operation)]
    assert {buffer.cores.num_cores() for buffer in program.circular_buffers} == {cores}
