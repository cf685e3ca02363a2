"""The circular buffers of element-wise programs, against those of ttnn 0.81.1 on devices without kernels."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.eltwise.buffers import activation_buffers, added_row_buffers

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("rows", "matrix_format", "row_format", "sizes"),
    [
        (64, BFLOAT16, FLOAT32, [4096, 8192, 8192, 4096]),
        (64, BFLOAT8_B, BFLOAT16, [2176, 4096, 4096, 2176]),
        (2, FLOAT32, BFLOAT16, [8192, 4096, 4096, 8192]),
        (1, BFLOAT16, BFLOAT16, [4096, 4096, 4096]),  # nothing to spread
    ],
)
def test_adding_a_row(rows, matrix_format, row_format, sizes):
    matrix = TensorSpec((1, 1, rows, 64), matrix_format, Layout.TILE)
    row = TensorSpec((1, 1, 1, 64), row_format, Layout.TILE)
    buffers = added_row_buffers(matrix, row, SPEC)
    assert [one.size_bytes for one in buffers] == sizes
    assert {str(one.cores) for one in buffers} == {"{[0-0 - 7-7]}"}


def test_a_function_packs_to_the_format_of_its_result():
    argument, result = (TensorSpec((1, 1, 64, 64), one, Layout.TILE) for one in (BFLOAT16, BFLOAT8_B))
    assert [one.size_bytes for one in activation_buffers(argument, result, SPEC)] == [4096, 2176]
