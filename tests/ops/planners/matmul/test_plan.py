"""Plans of matmul and linear against ttnn 0.81.1 without a device, on an 8x8 grid."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Free, Operation
from device.spec.device_spec import load_spec
from ops.planners.matmul import MatmulArguments, plan_matmul, with_defaults

SPEC = load_spec("wormhole_n150")
FREE = SPEC.l1.bytes - SPEC.l1.base_bytes


def matrix(*shape, data_format=BFLOAT16, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, data_format, Layout.TILE, place)


def call(**changes):
    good = MatmulArguments(
        first=matrix(64, 96), second=matrix(96, 128), bias=None, out_format=None, memory_config=DRAM_MEMORY_CONFIG
    )
    return replace(good, **changes)


def plan(**changes):
    return plan_matmul(call(**changes), SPEC, free_l1_bytes=FREE)


def operations(made):
    return [step.name.removesuffix("DeviceOperation") for step in made.steps if isinstance(step, Operation)]


@pytest.mark.parametrize(
    ("changes", "sizes", "cores"),
    [
        ({}, [4096, 4096, 2048], "{[0-0 - 3-1]}"),
        ({"first": matrix(33, 50), "second": matrix(50, 70)}, [4096, 4096, 2048], "{[0-0 - 2-1]}"),
        ({"bias": matrix(1, 128)}, [4096, 4096, 2048, 2048], "{[0-0 - 3-1]}"),
        ({"first": matrix(64, 96, data_format=FLOAT32)}, [8192, 4096, 4096], "{[0-0 - 3-1]}"),
        (
            {"first": matrix(64, 96, place=L1_MEMORY_CONFIG), "second": matrix(96, 128, place=L1_MEMORY_CONFIG)},
            [4096, 4096, 4096],
            "{[0-0 - 0-7]}",
        ),
        ({"first": matrix(2048, 1024), "second": matrix(1024, 1024)}, [131072, 65536, 65536], "{[0-0 - 7-7]}"),
    ],
)
def test_buffers(changes, sizes, cores):
    made = plan(**changes).steps[0].circular_buffers
    assert [one.size_bytes for one in made] == sizes
    assert {str(one.cores) for one in made} == {cores}


@pytest.mark.parametrize(
    ("changes", "sizes", "cores"),
    [
        # A narrow output: a second operand of one K block stays, unless each batch has its own.
        ({"first": matrix(2, 32, 64), "second": matrix(1, 64, 64)}, [8192, 4096, 2048], "{[0-0 - 1-0]}"),
        ({"first": matrix(2, 32, 64), "second": matrix(2, 64, 64)}, [8192, 8192, 2048], "{[0-0 - 1-0]}"),
        # Cores that split both axes buffer both.
        ({"first": matrix(2, 64, 32), "second": matrix(1, 32, 64)}, [4096, 4096, 2048], "{[0-0 - 1-1]}"),
        # A first operand of all batches is held whole.
        ({"first": matrix(1, 64, 96), "second": matrix(2, 96, 320)}, [6144, 40960, 20480], "{[0-0 - 1-0]}"),
        # Tiles of all batches are dealt together.
        (
            {"first": matrix(2, 3, 64, 64, place=L1_MEMORY_CONFIG), "second": matrix(1, 1, 64, 64)},
            [4096, 4096, 4096],
            "{[0-0 - 2-7]}",
        ),
        # Tiles that the program turns go through a buffer of their own, behind the bias in its own format.
        (
            {
                "first": matrix(1024, 64, data_format=BFLOAT8_B),
                "second": matrix(1024, 320),
                "transpose_a": True,
                "bias": matrix(1, 320, data_format=FLOAT32),
            },
            [8704, 32768, 2176, 4096, 8192, 8704],
            "{[0-0 - 4-1]}",
        ),
    ],
)
def test_buffers_of_batches_and_transposed_operands(changes, sizes, cores):
    made = plan(**changes).steps[0].circular_buffers
    assert [one.size_bytes for one in made] == sizes
    assert {str(one.cores) for one in made} == {cores}


def test_single_tiles_are_transposed_beforehand():
    made = plan(first=matrix(96, 64, place=L1_MEMORY_CONFIG), second=matrix(32, 96), transpose_a=True, transpose_b=True)
    assert operations(made) == ["Transpose", "Transpose", "Matmul"]
    assert [str(one.cores) for one in made.steps[0].circular_buffers] == ["{[0-0 - 0-5]}"] * 2
    assert made.tensors["input.transposed"].memory_config == L1_MEMORY_CONFIG
    assert made.tensors["weight.transposed"].memory_config == DRAM_MEMORY_CONFIG
    assert made.steps[-2:] == (Free("weight.transposed"), Free("input.transposed"))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"first": matrix(97, 64), "second": matrix(97, 128), "transpose_a": True},
            "Attempting to reshape between two shapes with different volumes",
        ),
        ({"first": matrix(96, 64), "transpose_a": True}, "MeshBuffer must be large enough to hold the tensor."),
        ({"second": matrix(128, 96), "transpose_b": True}, "Broadcast error: Invalid dimension"),
        ({"first": matrix(1, 64, 96), "second": matrix(2, 96, 128)}, "bmm (non-bcast matmul) expects input tensors of"),
    ],
)
def test_what_single_tiles_can_not_do(changes, line):
    with pytest.raises(ArgumentError) as refused:
        plan(bias=matrix(1, 128), memory_config=L1_MEMORY_CONFIG, **changes)
    assert str(refused.value).startswith(line)


def test_a_bias_is_added_afterwards_if_anything_is_in_l1():
    assert operations(plan(bias=matrix(1, 128))) == ["Matmul"]
    for changes in (
        {"first": matrix(64, 96, place=L1_MEMORY_CONFIG)},
        {"second": matrix(96, 128, place=L1_MEMORY_CONFIG)},
        {"memory_config": L1_MEMORY_CONFIG},
    ):
        assert operations(plan(bias=matrix(1, 128), **changes)) == ["Matmul", "BinaryNg"]


def test_an_activation_is_an_operation_of_its_own():
    made = plan(activation=("relu", ()))
    assert operations(made) == ["Matmul", "Unary"]
    assert made.steps[-1] == Free("output")
    assert made.tensors[made.results["output"]].shape == (64, 128)


def test_defaults_of_the_compute_config():
    """Source: the library's documentation of HiFi4 with 32-bit sums on Wormhole, and its choice of attributes."""
    wide, block = matrix(64, 96, data_format=FLOAT32), matrix(64, 96, data_format=BFLOAT8_B)
    plain = with_defaults(call(), SPEC)
    assert (plain.fidelity_phases, plain.fp32_dest, plain.packer_l1_acc) == (2, False, True)
    floats = call(first=wide, second=matrix(96, 128, data_format=FLOAT32))
    assert with_defaults(floats, SPEC).fidelity_phases == 3
    assert with_defaults(floats, load_spec("blackhole_p150")).fidelity_phases == 4
    assert with_defaults(call(first=wide), SPEC).fp32_dest
    assert with_defaults(call(first=block), SPEC).fidelity_phases == 2
    assert with_defaults(call(first=block, second=matrix(96, 128, data_format=BFLOAT8_B)), SPEC).fidelity_phases == 1
    assert with_defaults(call(fidelity_phases=4, packer_l1_acc=False), SPEC).packer_l1_acc is False
