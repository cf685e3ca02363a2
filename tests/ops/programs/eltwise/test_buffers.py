"""Circular buffers of element-wise programs, and whether they work where shards lie: as ttnn 0.81.1 without kernels."""

import pytest

from ops.builder import PlanBuilder, PlanTensor
from ops.programs.eltwise.op import lies_in_place, rescaled, unary_buffers, with_row
from tests.build import N150, tensor_spec


@pytest.mark.parametrize(
    ("rows", "matrix_format", "row_format", "sizes"),
    [
        (64, "bfloat16", "float32", [4096, 8192, 8192, 4096]),
        (64, "bfloat8_b", "bfloat16", [2176, 4096, 4096, 2176]),
        (2, "float32", "bfloat16", [8192, 4096, 4096, 8192]),
        (1, "bfloat16", "bfloat16", [4096, 4096, 4096]),  # nothing to spread
    ],
)
def test_adding_a_row(rows, matrix_format, row_format, sizes):
    matrix, row = tensor_spec(f"1x1x{rows}x64 {matrix_format} tile"), tensor_spec(f"1x1x1x64 {row_format} tile")
    builder = PlanBuilder(N150, {"bias": row})
    source = builder.allocate("x", matrix)
    result = with_row(builder, source, builder.tensor("bias"), row.data_format, "sum")
    _, step, freed = builder.finish({"output": result}).steps
    assert [buffer.size_bytes for buffer in step.circular_buffers] == sizes
    assert {str(buffer.cores) for buffer in step.circular_buffers} == {"{[0-0 - 7-7]}"}
    assert (freed.tensor, result.spec) == ("x", matrix)


def test_a_function_packs_to_the_format_of_its_result():
    ends = [PlanTensor(name, tensor_spec(f"64x64 {name} tile")) for name in ("bfloat16", "bfloat8_b")]
    assert [buffer.size_bytes for buffer in unary_buffers(*ends, N150)] == [4096, 2176]


@pytest.mark.parametrize(
    ("place", "in_place"),
    [
        ("2048x8 height/1024x8/2", True),
        ("2048x4 height/1024x4/2", False),  # 8 bytes: a row does not end where L1 is aligned
        ("2048x4 float32 height/1024x4/2", True),
        ("2048x3 float32 height/1024x3/2", False),
        ("32x32 height/16x32/2", False),  # rows are no whole tiles
        ("64x32 tile height/32x32/2", True),
        ("64x32 tile height/32x32/2 dram", False),
        ("96x32 tile height/64x32/2", False),  # the last shard is not full
        ("64x32 tile", False),
    ],
)
def test_functions_that_work_on_shards_where_they_lie(place, in_place):
    tensor = tensor_spec(place)
    assert lies_in_place(tensor, tensor, N150) is in_place
    views = [buffer.view_of for buffer in unary_buffers(PlanTensor("x", tensor), PlanTensor("y", tensor), N150)]
    assert views == (["x", "y"] if in_place else [None, None])


def test_both_ends_must_lie_alike():
    tensor = tensor_spec("64x32 tile height/32x32/2")
    for other in ("64x32 tile height/64x32/1", "64x32 tile width/64x32/1", "64x32 tile l1", "64x32 tile"):
        assert not lies_in_place(tensor, tensor_spec(other), N150)
        assert not lies_in_place(tensor_spec(other), tensor, N150)


@pytest.mark.parametrize(
    ("padded_shape", "shape"), [((1, 2, 64, 128), (64, 128)), ((1, 1, 64, 64), (32, 64)), ((1, 1, 32, 32), (32, 32))]
)
def test_shards_grow_as_a_result_does(padded_shape, shape):
    tensor = tensor_spec("1x1x64x64 tile height/32x64/2")
    shards = rescaled(tensor.shards, tensor, padded_shape)
    assert (shards.shape, shards.grid) == (shape, tensor.shards.grid)
