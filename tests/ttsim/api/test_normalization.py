"""Normalizations: numbers, memory and errors."""

import numpy as np
import pytest

import ttsim as ttnn


def on_device(device, values, dtype=ttnn.bfloat16, memory_config=None):
    return ttnn.from_numpy(
        np.asarray(values, np.float32), dtype, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory_config
    )


def sharded(kind, shape, across, down):
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(across - 1, down - 1))])
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout[kind], ttnn.BufferType.L1, ttnn.ShardSpec(cores, shape))


def normalized(x, weight, bias, *, rms):
    centered = x if rms else x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("place", [None, sharded("BLOCK_SHARDED", (32, 64), 2, 2)])
def test_rows_are_normalized(values, rms, place):
    """70 columns, of which the last tile has 6."""
    rng = np.random.default_rng(7)
    x, weight, bias = rng.normal(1, 2, (1, 1, 40, 70)), rng.normal(size=(1, 70)), rng.normal(size=(1, 70))
    with ttnn.open_device(spec="wormhole_n150", values=values) as device:
        tensors = [on_device(device, array) for array in (weight, bias)]
        source = on_device(device, x, memory_config=place)
        function = ttnn.rms_norm if rms else ttnn.layer_norm
        result = function(
            source, epsilon=1e-5, weight=tensors[0], bias=tensors[1], residual_input_tensor=source
        ).to_numpy()
        expected = normalized(
            2 * source.to_numpy().astype(float), *(tensor.to_numpy().astype(float) for tensor in tensors), rms=rms
        )
    assert np.abs(result.astype(float) - expected).max() < (0.06 if rms else 0.04)


def test_float32_keeps_the_bits_of_an_operand(device):
    rng = np.random.default_rng(7)
    x = rng.normal(3, 1, (32, 64))
    result = ttnn.layer_norm(on_device(device, x, ttnn.float32)).to_numpy()
    assert result.dtype == np.float32
    assert np.abs(result - normalized(x, 1, 0, rms=False)).max() < 2.0**-7  # TF32 operands


def test_inplace_writes_into_the_input(device):
    rng = np.random.default_rng(7)
    x = on_device(device, rng.normal(size=(64, 128)), memory_config=sharded("BLOCK_SHARDED", (32, 64), 2, 2))
    config = ttnn.LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(2, 2), subblock_w=2, block_h=1, block_w=2, inplace=True
    )
    result = ttnn.layer_norm(x, program_config=config)
    assert result.buffer_address() == x.buffer_address()
    assert np.array_equal(result.to_numpy(), x.to_numpy())


HEIGHT = sharded("HEIGHT_SHARDED", (32, 128), 2, 1)


@pytest.mark.parametrize(
    ("function", "arguments", "line"),
    [
        ("layer_norm", {"weight": (64, 128)}, "Gamma tensor height must equal tile height (32), got: 64"),
        ("layer_norm", {"bias": (1, 120)}, "Input and beta padded widths must match and beta logical width must be"),
        ("layer_norm", {"residual_input_tensor": (1, 128)}, "Input and residual logical and padded shapes must match"),
        ("rms_norm", {"memory_config": HEIGHT, "place": HEIGHT}, "Height sharded inputs are not supported."),
        ("rms_norm", {"program_config": {"use_welford": True}}, "Welford's algorithm is not supported for RMSNorm"),
        (
            "layer_norm",
            {"program_config": {"use_welford": True}, "columns": 8192},
            "Reciprocal tensor not provided for Welford layernorm",
        ),
    ],
)
def test_errors_begin_as_those_of_the_real_library(device, function, arguments, line):
    named = dict(arguments)
    source = on_device(device, np.ones((64, named.pop("columns", 128))), memory_config=named.pop("place", None))
    for name in ("weight", "bias", "residual_input_tensor"):
        if name in named:
            named[name] = on_device(device, np.ones(named[name]))
    if "program_config" in named:
        named["program_config"] = ttnn.LayerNormDefaultProgramConfig(**named["program_config"])
    with pytest.raises(ttnn.TTSimError) as refused:
        getattr(ttnn, function)(source, **named)
    assert str(refused.value).startswith(line)


def test_the_numbers_were_never_compared(device):
    with ttnn.profile(device) as profile:
        ttnn.layer_norm(on_device(device, np.ones((32, 64))))
    report = profile.report()
    assert report.calls[0].operations[0].name == "LayerNormDeviceOperation"
    assert report.calls[0].operations[0].cycles > 1000


def test_long_rows_that_are_tilized_take_their_weight_in_tiles(device):
    """8,192 columns do not fit L1 at once; 1,024 do, and then a weight in rows is as good."""
    for columns in (1024, 8192):
        x = ttnn.zeros((32, columns), device=device)
        weight = ttnn.ones((1, 1, columns // 32, 32), device=device)
        if columns == 1024:
            ttnn.layer_norm(x, weight=weight)
            continue
        with pytest.raises(
            ttnn.DeviceError, match=r"^The LayerNorm large-tensor path does not support row-major gamma"
        ):
            ttnn.layer_norm(x, weight=weight)


def test_rows_of_float32_want_a_dst_of_32_bits(device):
    """The real planner refuses rows alone, whose tiles are made on the way."""
    narrow = ttnn.WormholeComputeKernelConfig(fp32_dest_acc_en=False)
    rows = ttnn.zeros((1, 1, 50, 128), dtype=ttnn.float32, device=device)
    with pytest.raises(ttnn.DeviceError, match=r"^ROW_MAJOR float32 input requires fp32_dest_acc_en=True"):
        ttnn.layer_norm(rows, compute_kernel_config=narrow)
    for accepted in (ttnn.to_layout(rows, ttnn.TILE_LAYOUT), ttnn.zeros((1, 1, 50, 128), device=device)):
        assert ttnn.layer_norm(accepted, compute_kernel_config=narrow).shape == (1, 1, 50, 128)


@pytest.mark.parametrize("place", [None, sharded("BLOCK_SHARDED", (32, 64), 2, 2)])
def test_welford_takes_means_in_32_bits(device, place):
    """Shards of float32 read reciprocals."""
    x = np.random.default_rng(7).normal(3, 1, (1, 1, 64, 128))
    source = on_device(device, x, ttnn.float32, memory_config=place)
    program, named = ttnn.LayerNormDefaultProgramConfig(use_welford=True), {}
    if place is not None:
        program = ttnn.LayerNormShardedMultiCoreProgramConfig(
            compute_with_storage_grid_size=(2, 2), subblock_w=1, block_h=1, block_w=2, inplace=False, use_welford=True
        )
        named["recip_tensor"] = ttnn.create_layer_norm_reciprocals(device, place.shard_spec.grid, 64)
        assert named["recip_tensor"].to_numpy()[3, 3] == 0.25
    result = ttnn.layer_norm(source, program_config=program, **named).to_numpy()
    assert np.abs(result - normalized(x, 1, 0, rms=False)).max() < 2.0**-7  # TF32 operands


@pytest.mark.parametrize(("memory", "refused"), [("L1", False), ("DRAM", True)])
def test_reciprocals_are_read_in_l1(device, memory, refused):
    """Two passes over 8,192 columns do not fit."""
    x = ttnn.zeros((32, 8192), layout=ttnn.TILE_LAYOUT, device=device)
    place = getattr(ttnn, f"{memory}_MEMORY_CONFIG")
    table = ttnn.zeros((1, 8192), dtype=ttnn.float32, device=device, memory_config=place)
    named = {"program_config": ttnn.LayerNormDefaultProgramConfig(use_welford=True), "recip_tensor": table}
    if not refused:
        assert ttnn.layer_norm(x, **named).shape == (32, 8192)
        return
    with pytest.raises(ttnn.DeviceError, match=r"^DFB 'reciprocals' borrows memory from TensorParameter 'recip'"):
        ttnn.layer_norm(x, **named)


def test_welford_has_no_effect_with_a_dst_of_16_bits(device):
    x = on_device(device, np.random.default_rng(3).normal(size=(32, 128)))
    named = {"compute_kernel_config": ttnn.WormholeComputeKernelConfig(fp32_dest_acc_en=False)}
    program = ttnn.LayerNormDefaultProgramConfig(use_welford=True)
    result = ttnn.layer_norm(x, program_config=program, **named)
    assert np.array_equal(result.to_numpy(), ttnn.layer_norm(x, **named).to_numpy())


@pytest.mark.parametrize(("top", "rows", "refused"), [(4, 2, False), (4, 6, True), (0, 6, False)])
def test_cores_that_do_not_sum_begin_behind_whole_columns_of_those_that_do(device, top, rows, refused):
    """Of 4 x 3 cores below the first row 6 sum 6 rows, two whole columns, behind which the library finds no core."""
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, top), ttnn.CoreCoord(3, top + 2))])
    shards = ttnn.ShardSpec(cores, (32 * rows, 64), ttnn.ShardOrientation.COL_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
    x = ttnn.zeros((1, 1, 32 * rows, 768), layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)
    if not refused:
        ttnn.layer_norm(x)
        return
    with pytest.raises(ttnn.DeviceError, match=r"^Start core must be within grid size"):
        ttnn.layer_norm(x)


def test_a_number_is_normalized_by_itself(device):
    """3 over the root of 9 plus 7 is 0.75, times 2 plus 1; element-wise programs do so."""
    x, weight, bias = (on_device(device, value) for value in (3.0, 2.0, 1.0))
    assert ttnn.rms_norm(x, epsilon=7.0, weight=weight, bias=bias).to_numpy() == 2.5
    with pytest.raises(ttnn.DeviceError, match="does not support ROW_MAJOR"):
        ttnn.rms_norm(ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT))
    with pytest.raises(ttnn.DeviceError, match="not supported for 0D tensors"):
        ttnn.layer_norm(x)
