import pytest
from hypothesis import given, settings, strategies as st

from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.device_spec import catalog_names, load_spec
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder
from ops.programs.matmul.buffers import buffers_bytes
from ops.programs.matmul.op import MatmulProblem, MatmulProgram
from ops.programs.patch_matmul.gather import bundle_count
from ops.programs.patch_matmul.op import Patches, PixelMatmul, Precision, slicing_of
from ops.programs.patch_matmul.plan import (
    gathering_config,
    patch_matmul_work,
    pixel_matmul_work,
    run_patch_matmul,
    run_pixel_matmul,
    sections_spec,
)
from ops.window import axis_of_windows

SPEC = load_spec("wormhole_n150")


def patches_of(size, channels, taps=3, groups=1, others=64):
    axis = axis_of_windows(input_length=size, outputs=size, kernel=taps, start=-1, dilation=1)
    return Patches(
        batch=1, axes=(axis, axis), channels=channels, groups=groups, bundles=bundle_count(groups, channels, others)
    )


def ops(size, channels, others, data_format=FLOAT32, spec=SPEC):
    patches, slicing = patches_of(size, channels, others=others), slicing_of(data_format, Precision.IEEE)
    common = {"slicing": slicing, "out_format": data_format, "spec": spec}
    return (
        patch_matmul_work(patches, out_channels=others, out_shape=(size, size), bias=True, **common),
        pixel_matmul_work(patches, channels=others, **common),
    )


def operations_of(op, spec=SPEC):
    """The device operations of a work, on tensors whose specs do not matter."""
    any_spec = TensorSpec((1, 1), FLOAT32, Layout.ROW_MAJOR)
    builder = PlanBuilder(spec, dict.fromkeys(("image", "weights", "bias", "result"), any_spec))
    image, weights, bias, result = (builder.tensor(name) for name in ("image", "weights", "bias", "result"))
    if isinstance(op, PixelMatmul):
        run_pixel_matmul(builder, op, [image, weights], "sums")
    else:
        run_patch_matmul(builder, op, [image, weights, bias], result)
    return builder.steps


@pytest.mark.parametrize("name", catalog_names())
@given(st.integers(1, 200), st.integers(1, 600), st.integers(1, 600), st.sampled_from([FLOAT32, BFLOAT16]))
@settings(max_examples=20, deadline=None)
def test_circular_buffers_fit_into_l1(name, size, channels, others, data_format):
    spec = load_spec(name)
    patch, pixel = ops(size, channels, others, data_format, spec)
    operations = [*operations_of(patch, spec), *operations_of(pixel, spec)]
    device = Machine(spec)
    for operation in operations:
        assert all(buffer.size_bytes > 0 for buffer in operation.circular_buffers)
        device.make_program(operation.name, operation.circular_buffers, {})


def test_idle_bands_of_cores_sum_positions_of_their_own():
    _, pixel = ops(64, 16, 16)
    assert pixel.sections > 1
    operations = operations_of(pixel)
    assert [operation.name for operation in operations] == ["PixelMatmulDeviceOperation", "ReduceDeviceOperation"]
    assert sections_spec(pixel).data_format == FLOAT32
    assert operations[0].circular_buffers[0].cores.num_cores() <= SPEC.grid.cores


GRID = GridSpec(cols=8, rows=8)
L1_BYTES = 500_000


def problem(m, k, n):
    return MatmulProblem(
        m_tiles=m, k_tiles=k, n_tiles=n, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=FLOAT32, bias=False,
        fp32_dest=True, packer_l1_acc=False,
    )  # fmt: skip


@given(st.integers(1, 3000), st.integers(1, 300), st.integers(1, 100), st.booleans())
def test_blocks_divide_shares_and_fit(m, k, n, rows):
    config = gathering_config(problem(m, k, n), GRID, l1_bytes=L1_BYTES, rows=rows)
    assert config.per_core_m * GRID.cores >= m or config.program is not MatmulProgram.MCAST_IN1
    assert config.per_core_m % config.out_block_h == 0
    assert config.per_core_n % config.out_block_w == 0
    assert config.out_block_h % config.out_subblock_h == 0
    assert config.out_block_w % config.out_subblock_w == 0
    blocks = (config.out_block_h, config.out_block_w, config.in0_block_w)
    assert buffers_bytes(problem(m, k, n), *blocks) < L1_BYTES or blocks[:2] == (1, 1)
