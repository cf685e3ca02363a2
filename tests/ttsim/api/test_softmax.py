"""Softmax as users call it: numbers against float64, refusals."""

import numpy as np
import pytest

import ttsim as ttnn

RANDOM = np.random.default_rng(5)
CORES = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])


def on(device, shape, dtype=ttnn.bfloat16, **options):
    return ttnn.from_numpy(RANDOM.standard_normal(shape), dtype, layout=ttnn.TILE_LAYOUT, device=device, **options)


def numbers(tensor):
    return tensor.to_numpy().astype(np.float64)


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def sharded(scheme, shape, orientation=ttnn.ShardOrientation.ROW_MAJOR):
    return ttnn.MemoryConfig(scheme, ttnn.BufferType.L1, ttnn.ShardSpec(CORES, shape, orientation))


def blocks(high, wide):
    return ttnn.SoftmaxShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(2, 1), subblock_w=1, block_h=high, block_w=wide
    )


@pytest.mark.parametrize(("dtype", "error"), [(ttnn.bfloat16, 0.008), (ttnn.float32, 1e-6), (ttnn.bfloat8_b, 0.02)])
@pytest.mark.parametrize(
    ("shape", "axis", "stable"), [((2, 3, 40, 70), -1, True), ((3, 50, 33), 1, True), ((4, 2, 32), 0, False)]
)
def test_numbers_are_those_of_float64(device, dtype, error, shape, axis, stable):
    x = on(device, shape, dtype)
    result = ttnn.softmax(x, axis, numeric_stable=stable)
    want = softmax(numbers(x), axis)
    assert (tuple(result.shape), result.dtype) == (shape, dtype)
    assert np.abs(numbers(result) - want).max() < error * want.max()


@pytest.mark.parametrize("stable", [True, False])
def test_a_narrow_dst_rounds_sums(device, stable):
    x = ttnn.zeros((1, 1, 32, 32 * 600), layout=ttnn.TILE_LAYOUT, device=device)
    config = ttnn.WormholeComputeKernelConfig(fp32_dest_acc_en=False)
    result = ttnn.softmax(x, compute_kernel_config=config, numeric_stable=stable)
    # ones are added up in steps of 16, of which a bfloat16 keeps none from 4096 on: 1 / 4096 instead of 1 / 19200
    assert numbers(result)[0, 0, 0, 0] == 1 / 4096


def test_a_mask_in_one_row_or_row_by_row(device):
    x, mask = on(device, (2, 3, 64, 70)), on(device, (2, 1, 32, 70))
    rows = ttnn.scale_mask_softmax(x, 0.5, mask)
    want = softmax(0.5 * numbers(x) + numbers(mask)[:, :, :1])
    assert np.abs(numbers(rows) - want).max() < 0.01 * want.max()
    causal = ttnn.scale_mask_softmax(x, 0.5, mask, is_causal_mask=True)
    want = softmax(0.5 * numbers(x) + np.tile(numbers(mask), (1, 1, 2, 1)))
    assert np.abs(numbers(causal) - want).max() < 0.01 * want.max()


def test_in_place_the_tensor_is_the_result(device):
    x = on(device, (1, 2, 32, 64))
    want = softmax(numbers(x))
    result = ttnn.softmax_in_place(x)
    assert np.array_equal(numbers(x), numbers(result))
    assert np.abs(numbers(x) - want).max() < 0.008 * want.max()


def test_shards_with_a_mask_of_all_heads(device):
    place = sharded(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, (64, 64))
    x, mask = on(device, (1, 2, 64, 64), memory_config=place), on(device, (1, 1, 64, 64))
    want = softmax(0.25 * numbers(x) + numbers(mask))
    ttnn.scale_causal_mask_hw_dims_softmax_in_place(x, 0.25, mask, program_config=blocks(2, 2))
    assert np.abs(numbers(x) - want).max() < 0.01 * want.max()


def test_a_strict_device_refuses_a_softmax_of_parts_of_rows(device):
    place = sharded(ttnn.TensorMemoryLayout.WIDTH_SHARDED, (32, 32))
    x = on(device, (1, 1, 32, 64), memory_config=place)
    with pytest.raises(ttnn.ArgumentError, match="shards hold 32 of 64 columns"):
        ttnn.softmax_in_place(x, program_config=blocks(1, 1))


def test_a_scale_is_what_float32_holds(device):
    x = on(device, (1, 1, 32, 64))
    with pytest.raises(ttnn.ArgumentTypeError, match=r"not 0\.1; float32 holds 0\.10000000149011612"):
        ttnn.scale_mask_softmax(x, 0.1)
    mask = on(device, (1, 1, 1, 64))
    assert ttnn.scale_mask_softmax(x, 0.10000000149011612, mask).shape == x.shape


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x, m: ttnn.softmax(x, 4),
            r"Dimension out of range \(expected to be in range of \[-4, 3\], but got 4\)",
        ),
        (lambda x, m: ttnn.softmax_in_place(x, 2), "Invalid dimension: 2. Currently softmax inplace supports dim -1"),
        (
            lambda x, m: ttnn.scale_mask_softmax(x, 0.1, m),
            r"ttnn.scale_mask_softmax\(\): incompatible function arguments",
        ),
        (
            lambda x, m: ttnn.scale_causal_mask_hw_dims_softmax_in_place(x, 2, m),
            r"ttnn.scale_causal_mask_hw_dims_softmax_in_place\(\): incompatible function arguments",
        ),
        (lambda x, m: ttnn.scale_mask_softmax(x, 0.5), "Scale value must not be set when mask is not present"),
        (
            lambda x, m: ttnn.scale_mask_softmax(x, 0.5, m),
            r"Mask height must be 1 or input tensor tile height \(32\), got: 64",
        ),
        (
            lambda x, m: ttnn.softmax_in_place(x, program_config=blocks(1, 2)),
            "output_mem_config must have a shard_spec when using SoftmaxShardedMultiCoreProgramConfig",
        ),
        (
            lambda x, m: ttnn.scale_causal_mask_hw_dims_softmax_in_place(x, 0.5, m),
            "Scale causal mask HW dims softmax not supported in default program config",
        ),
        (lambda x, m: ttnn.softmax(ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), 0), "Inputs to softmax must be tilized"),
        (
            lambda x, m: ttnn.softmax(ttnn.typecast(x, ttnn.int32)),
            "Input tensor must be FLOAT32, BFLOAT16, or BFLOAT8_B, got: DataType::INT32",
        ),
    ],
)
def test_an_error_begins_as_that_of_the_real_library(device, call, text):
    with pytest.raises(ttnn.TTSimError, match=f"^{text}"):
        call(on(device, (1, 2, 64, 64)), on(device, (1, 1, 64, 64)))


@pytest.mark.parametrize("mask", [(1, 1, 32, 32), (1, 1, 0, 64)])
def test_a_causal_mask_of_other_columns_has_no_known_numbers(device, mask):
    """The real planner accepts the first; kernels read tiles as if each row of the mask had 64 columns."""
    with pytest.raises(ttnn.NotSimulatedError, match=r"of a mask \[\d, 1, \d+, \d+\] for \[1, 2, 64, 64\]"):
        ttnn.scale_mask_softmax_in_place(on(device, (1, 2, 64, 64)), 0.5, on(device, mask), is_causal_mask=True)


def test_a_matrix_takes_a_causal_mask_of_four_axes(device):
    """Row i sees the first i + 1 columns, all of which are zero."""
    mask = np.where(np.tri(32), 0.0, -np.inf)[None, None]
    causal = ttnn.from_numpy(mask, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    matrix = ttnn.zeros((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    result = ttnn.scale_mask_softmax_in_place(matrix, 1.0, causal, is_causal_mask=True)
    assert result.to_numpy()[[0, 1, 3], 0].tolist() == [1.0, 0.5, 0.25]


@pytest.mark.parametrize("shape", [(), (2, 0, 32)])
def test_no_program_makes_the_softmax_of_a_number_or_of_no_elements(device, shape):
    """Ones, or the scale; the result of the functions that scale lies in DRAM, and nothing is asked of a mask."""
    x, mask = on(device, shape, memory_config=ttnn.L1_MEMORY_CONFIG), on(device, (5, 7))
    one, scaled = ttnn.softmax(x), ttnn.scale_mask_softmax(x, 0.5, mask)
    assert (one.memory_config(), scaled.memory_config()) == (ttnn.L1_MEMORY_CONFIG, ttnn.DRAM_MEMORY_CONFIG)
    assert np.array_equal(numbers(one), np.ones(shape))
    assert np.array_equal(numbers(scaled), np.full(shape, 0.5))
    written = ttnn.scale_mask_softmax_in_place(x, 0.25, mask)
    assert np.array_equal(numbers(written), np.full(shape, 0.25))
    assert ttnn.softmax_in_place(x).memory_config() == ttnn.L1_MEMORY_CONFIG


def test_a_number_has_one_axis_for_softmax(device):
    with pytest.raises(ttnn.DeviceError, match=r"^Dimension out of range \(expected to be in range of \[-1, 0\], but"):
        ttnn.softmax(on(device, ()), 1)
