import re
from typing import Any

import numpy as np
import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from tests.ttsim.api.calls import operations, put


def tensor(values: Any, device: ttsim.Device | None, dtype: Any = ttsim.bfloat16, place: Any = None) -> ttsim.Tensor:
    return ttsim.Tensor(np.asarray(values, np.float32), dtype, device, ttsim.TILE_LAYOUT, place)


@pytest.fixture(params=["exact", "fast"])
def device(request: pytest.FixtureRequest) -> ttsim.Device:
    return ttsim.open_device(values=request.param)


@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
@pytest.mark.parametrize("axes", [2, 3, 4])
def test_small_integers_come_out_exactly(device, place, axes):
    rng = np.random.default_rng(1)
    first, second = rng.integers(-2, 3, (40, 70)), rng.integers(-1, 2, (70, 50))
    offset, leading = rng.integers(-3, 4, (1, 50)), (1,) * (axes - 2)
    given = [tensor(values.reshape(*leading, *values.shape), device, place=place) for values in (first, second)]
    product = ttsim.matmul(*given)
    assert product.shape == [*leading, 40, 50]
    assert product.to_numpy().reshape(40, 50).astype(int).tolist() == (first @ second).tolist()
    shifted = ttsim.linear(*given, bias=tensor(offset, device), activation="relu", memory_config=place)
    expected = np.maximum(first @ second + offset, 0)
    assert shifted.to_numpy().reshape(40, 50).astype(int).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("place", "turned"),
    [
        (ttsim.DRAM_MEMORY_CONFIG, (True, False)),
        (ttsim.DRAM_MEMORY_CONFIG, (False, True)),
        (ttsim.L1_MEMORY_CONFIG, (False, False)),
        (ttsim.L1_MEMORY_CONFIG, (True, True)),
    ],
)
@pytest.mark.parametrize(("first_batches", "second_batches"), [((2, 3), (1, 1)), ((2, 3), (2, 3)), ((1, 1), (2, 3))])
def test_batches_and_transposed_operands(device, place, first_batches, second_batches, turned):
    rng = np.random.default_rng(2)
    first, second = rng.integers(-2, 3, (*first_batches, 40, 70)), rng.integers(-1, 2, (*second_batches, 70, 50))
    given = [
        tensor(np.swapaxes(one, -1, -2) if swap else one, device, place=place)
        for one, swap in zip((first, second), turned, strict=True)
    ]
    options = {"transpose_a": turned[0], "transpose_b": turned[1], "memory_config": place}
    if place == ttsim.L1_MEMORY_CONFIG and first_batches == (1, 1):  # a program of single tiles
        with pytest.raises(ArgumentError, match="batch dimension 0 mismatch: a=1 vs b=2"):
            ttsim.matmul(*given, **options)
        return
    product = ttsim.matmul(*given, **options)
    assert product.shape == [2, 3, 40, 50]
    assert product.to_numpy().astype(int).tolist() == (first @ second).tolist()
    if place == ttsim.DRAM_MEMORY_CONFIG or not any(turned):
        offset = rng.integers(-3, 4, (1, 50))
        shifted = ttsim.linear(*given, bias=tensor(offset, device), **options)
        assert shifted.to_numpy().astype(int).tolist() == (first @ second + offset).tolist()


def test_the_output_has_as_many_axes_as_the_argument_that_has_most(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device)
    bias = tensor(np.ones((1, 1, 1, 32)), device)
    assert ttsim.matmul(first, tensor(np.ones((1, 1, 64, 32)), device)).shape == [1, 1, 32, 32]
    assert ttsim.linear(first, second, bias=bias).shape == [1, 1, 32, 32]
    assert ttsim.linear(first, second, bias=bias, memory_config=ttsim.L1_MEMORY_CONFIG).shape == [1, 1, 32, 32]


@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
def test_a_bias_of_as_many_rows_as_the_product(device, place):
    """A program adds the first row to every row of a tile; another operation adds each row to its own."""
    rng = np.random.default_rng(3)
    for rows in (32, 64):
        first, second, offset = (rng.integers(-2, 3, sides) for sides in ((rows, 64), (64, 32), (rows, 32)))
        x, y, bias = (tensor(values, device) for values in (first, second, offset))
        fused = rows == 32 and place == ttsim.DRAM_MEMORY_CONFIG
        product = ttsim.linear(x, y, bias=bias, memory_config=place, activation="relu")
        expected = np.maximum(first @ second + (offset[:1] if fused else offset), 0)
        assert product.to_numpy().astype(int).tolist() == expected.tolist()


@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
def test_a_product_in_the_tensor_that_the_caller_gives(device, place):
    """Bias and activation are written over it, too; its data type and its memory are the product's."""
    rng = np.random.default_rng(4)
    first, second, offset = (rng.integers(-2, 3, sides) for sides in ((40, 64), (64, 32), (1, 32)))
    x, y, bias = (tensor(values, device, place=place) for values in (first, second, offset))
    target = tensor(np.zeros((40, 32)), device, ttsim.float32, place)
    result = ttsim.linear(x, y, bias=bias, activation="relu", optional_output_tensor=target)
    assert result is target
    assert target.to_numpy().astype(int).tolist() == np.maximum(first @ second + offset, 0).tolist()
    with pytest.raises(
        ArgumentError, match=r"^Type mismatch between optional output tensor DataType::FLOAT32 & output"
    ):
        ttsim.matmul(x, y, optional_output_tensor=target, dtype=ttsim.bfloat16)
    with pytest.raises(ArgumentError, match=r"^Memory config mismatch between optional output tensor"):
        ttsim.matmul(x, y, optional_output_tensor=target, memory_config=ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG)


def test_a_program_of_pairs_leaves_the_bias_to_another_operation(device):
    x, y, bias = (tensor(np.ones(sides), device) for sides in ((96, 64), (64, 32), (1, 32)))
    config = ttsim.MatmulMultiCoreReuseProgramConfig(
        compute_with_storage_grid_size=(1, 1),
        in0_block_w=1,
        out_subblock_h=1,
        out_subblock_w=1,
        per_core_M=3,
        per_core_N=1,
    )
    run = lambda: ttsim.linear(x, y, bias=bias, program_config=config)  # noqa: E731
    assert operations(run) == ["Matmul", "BinaryNg"]
    assert (run().to_numpy() == 65).all()


def test_rows_and_columns_are_vectors(device):
    rng = np.random.default_rng(5)
    row, columns, many = (rng.integers(-2, 3, sides) for sides in (64, (64, 40), (2, 40, 64)))
    x, y, z = (tensor(values, device) for values in (row, columns, many))
    assert ttsim.matmul(x, y).to_numpy().astype(int).tolist() == (row @ columns).tolist()
    assert ttsim.matmul(x, x).to_numpy().astype(int).tolist() == row @ row
    shifted = ttsim.linear(z, x, bias=tensor(np.arange(40), device))
    assert shifted.to_numpy().astype(int).tolist() == (many @ row + np.arange(40)).tolist()
    turned = ttsim.matmul(x, tensor(columns.T, device), transpose_b=True)
    assert turned.to_numpy().astype(int).tolist() == (row @ columns).tolist()
    with pytest.raises(ArgumentError, match="does not simulate vectors that are transposed"):
        ttsim.matmul(z, x, transpose_b=True)


def test_a_product_of_nothing_is_zeros_plus_a_bias(device):
    """No matmul runs, and no activation."""
    nothing, bias = np.zeros((3, 0)), tensor([[-1.0, 2.0]], device)
    first, second = tensor(nothing, device), tensor(nothing[:2], device)

    def call() -> Any:
        return ttsim.linear(first, second, bias=bias, transpose_b=True, activation="relu", dtype=ttsim.float32)

    assert operations(call) == ["BinaryNg"]
    assert call().to_list() == [[-1.0, 2.0]] * 3
    assert call().dtype is ttsim.float32
    assert ttsim.matmul(first, tensor(np.zeros(0), device)).to_list() == [0.0, 0.0, 0.0]


def test_a_matmul_adds_a_bias_of_as_many_numbers_as_it_has_columns_to_a_vector(device):
    """An activation is an operation of its own, behind the reshape that takes a column's axis away."""
    row, columns, offset = np.ones(64), np.arange(64 * 2).reshape(64, 2) % 5 - 2, np.array([1, 5])
    x, y, bias, one = (tensor(values, device) for values in (row, columns, offset, np.array([3])))
    wanted = row @ columns + offset
    fused = lambda: ttsim.linear(x, y, bias=bias)  # noqa: E731
    assert operations(fused) == ["Matmul"]
    assert fused().to_numpy().astype(int).tolist() == wanted.astype(int).tolist()
    assert operations(lambda: ttsim.linear(x, y, bias=one)) == ["Matmul", "BinaryNg"]
    result = ttsim.linear(x, y, bias=bias, activation="relu")
    assert result.to_numpy().astype(int).tolist() == np.maximum(wanted, 0).astype(int).tolist()
    behind = lambda: ttsim.linear(tensor(columns.T, device), x, activation="relu")  # noqa: E731
    assert operations(behind)[-3:] == ["Matmul", "ReshapeView", "Unary"]
    assert ttsim.linear(x, x, bias=one).shape == [1]


@pytest.mark.parametrize("place", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG])
def test_a_vector_s_product_gets_the_axes_of_its_bias(device, place):
    x, w, bias = (tensor(np.full(shape, 0.5), device) for shape in ((64,), (64, 32), (1, 1, 32)))
    result = ttsim.linear(x, w, bias=bias, memory_config=place)
    assert result.shape == (1, 1, 32)
    assert set(result.to_numpy().ravel().tolist()) == {16.5}


def test_output_format_and_place(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device, ttsim.bfloat8_b)
    config = ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi4, fp32_dest_acc_en=True)
    output = ttsim.matmul(
        first, second, dtype=ttsim.float32, memory_config=ttsim.L1_MEMORY_CONFIG, compute_kernel_config=config
    )
    assert output.dtype == ttsim.float32
    assert output.memory_config() == ttsim.L1_MEMORY_CONFIG
    assert set(output.to_numpy().ravel().tolist()) == {64.0}
    assert ttsim.matmul(first, second).dtype == ttsim.bfloat16


@pytest.mark.parametrize(
    ("dtype", "kept"), [(ttsim.bfloat16, 1 + 2.0**-7), (ttsim.float32, 1 + 2.0**-7 + 2.0**-8 + 2.0**-9)]
)
def test_a_float32_bias_is_cut_to_what_dst_holds(device, dtype, kept):
    """Section G8 of the review: to bfloat16 for a 16-bit Dst, to TF32 for a 32-bit one."""
    zeros = tensor(np.zeros((32, 32)), device)
    offset = tensor(np.full((1, 32), 1 + 2.0**-7 + 2.0**-8 + 2.0**-9 + 2.0**-12), device, ttsim.float32)
    assert set(ttsim.linear(zeros, zeros, bias=offset, dtype=dtype).to_numpy().ravel().tolist()) == {kept}


@pytest.mark.parametrize("bias", [(1, 1), (32,), (2, 1, 32), (64, 1)])
def test_another_operation_adds_a_bias_that_a_program_can_not(device, bias):
    """By the rules of element-wise operations, which take a number, a column and batches."""
    rng = np.random.default_rng(6)
    first, second, offset = (rng.integers(-2, 3, sides) for sides in ((64, 64), (64, 32), bias))
    x, y, z = (tensor(values, device) for values in (first, second, offset))
    shifted = ttsim.linear(x, y, bias=z)
    assert shifted.to_numpy().astype(int).tolist() == (first @ second + offset).tolist()
    narrow = "Broadcasting rule violation at dimension index -1 (output rank 2), dim a: 32, dim b: 31"
    for place in (ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG):
        with pytest.raises(DeviceError, match=re.escape(narrow)):
            ttsim.linear(x, y, bias=tensor(np.ones((1, 31)), device), memory_config=place)


@pytest.mark.parametrize(
    ("sides", "rank", "axis"),
    [(((), (32, 32), (32, 32)), 0, 0), (((32,), (32, 32), (32, 32)), 1, 1), (((32, 32), (32, 32), (32,)), 1, 1)],
)
def test_addmm_of_fewer_axes(device, sides, rank, axis):
    with pytest.raises(ArgumentError, match=rf"^ShapeBase\[\] index out of range. {axis} not in \[-4, {rank}\)"):
        ttsim.addmm(*(tensor(np.ones(shape), device) for shape in sides))


def test_addmm_compares_rows_before_it_asks_for_columns(device):
    x = tensor(np.ones((32, 32)), device)
    with pytest.raises(ArgumentError, match=r"^input_tensor must have shape matching one of result of"):
        ttsim.addmm(tensor(np.ones(64), device), x, x)


@pytest.mark.parametrize("operation_later", [{"bias": True}, {"activation": "gelu"}])
def test_a_product_in_integers_is_planned_without_numbers(operation_later):
    """The library plans it, and refuses a bias and most functions behind it."""
    with ttsim.open_device(values="off", strict=False) as device:
        x, row = (tensor(np.ones((rows, 32)), device) for rows in (32, 1))
        assert ttsim.matmul(x, x, dtype=ttsim.int32).dtype is ttsim.int32
        named = {"bias": row, "memory_config": ttsim.L1_MEMORY_CONFIG} if "bias" in operation_later else operation_later
        with pytest.raises(
            (ArgumentError, DeviceError), match=r"^(Mixed dtype is not|Unary: UnaryOpType::GELU does not)"
        ):
            ttsim.linear(x, x, dtype=ttsim.int32, **named)
    for values, strict, line in (
        ("off", True, "matmul: dtype must be one of"),
        ("exact", False, "matmul into int32: "),
    ):
        with ttsim.open_device(values=values, strict=strict) as device:
            x = tensor(np.ones((32, 32)), device)
            with pytest.raises(ttsim.TTSimError, match=f"^{line}"):
                ttsim.matmul(x, x, dtype=ttsim.int32)


def test_wrong_calls_are_refused(device):
    first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device)
    with pytest.raises(DeviceError, match="Operand to matmul must be on device"):
        ttsim.matmul(first.cpu(), second)
    with pytest.raises(ArgumentError, match=r"^Invalid optional output tensor\noptional_output_tensor: give a tensor"):
        ttsim.linear(first, second, optional_output_tensor=first)
    with pytest.raises(ArgumentError, match=r"^ttnn.matmul: Both arguments to matmul need to be at least 1D, but got"):
        ttsim.matmul(first, tensor(np.ones(()), device))
    with pytest.raises(ArgumentError, match=r"^Unknown unary op: RELU\nactivation: one of abs, "):
        ttsim.matmul(first, second, activation="RELU")
    with pytest.raises(TypeError, match="there is no 'bias'"):
        ttsim.matmul(first, second, bias=second)
    with pytest.raises(TypeError, match="input_tensor_a is given twice"):
        ttsim.matmul(first, second, input_tensor_a=first)
    with pytest.raises(TypeError, match="came without a name"):
        ttsim.matmul(first, second, second)


def blocks(program="MatmulMultiCoreReuseMultiCast", **fields):
    """A program config of single tiles, with other fields."""
    plain = {"in0_block_w": 1, "out_subblock_h": 1, "out_subblock_w": 1, "per_core_M": 1, "per_core_N": 1}
    return getattr(ttsim, f"{program}ProgramConfig")(**plain | fields)


GRID = {"compute_with_storage_grid_size": (2, 2)}
ONE_AXIS = "MatmulMultiCoreReuseMultiCast1D"
TUNED = [  # where the first operand lies and its shards, the call, cores and shards of the output in ttnn 0.81.1
    (
        "BLOCK",
        (2, 2),
        {"program_config": blocks(**GRID, transpose_mcast=False, per_core_N=2)},
        "{[0-0 - 1-1]}",
        (32, 64),
    ),
    (
        "HEIGHT",
        (2, 1),
        {"program_config": blocks(ONE_AXIS, **GRID, fuse_batch=True, mcast_in0=False, per_core_N=4)},
        "{[0-0 - 1-0]}",
        (32, 128),
    ),
    (
        "WIDTH",
        (2, 1),
        {"program_config": blocks(ONE_AXIS, **GRID, fuse_batch=True, mcast_in0=True, per_core_M=2, out_block_h=1)},
        "{[0-0 - 1-1]}",
        (64, 32),
    ),
    ("HEIGHT", (2, 1), {}, "{[0-0 - 1-0]}", (32, 128)),
    ("WIDTH", (2, 1), {}, "{[0-0 - 1-0]}", (64, 64)),
    ("BLOCK", (2, 2), {}, "{[0-0 - 1-1]}", (32, 64)),
    (None, None, {"core_grid": ttsim.CoreGrid(x=2, y=2)}, "{[0-0 - 1-1]}", (32, 64)),
]


@pytest.mark.parametrize(("scheme", "cores", "named", "out_cores", "out_shard"), TUNED)
def test_tuned_calls(device, scheme, cores, named, out_cores, out_shard):
    """64x64 by 64x128 of ones: shards follow from the program, and each element is the sum of 64."""
    place, out = ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_BLOCK_SHARDED_MEMORY_CONFIG
    if scheme is not None:
        out = getattr(ttsim, f"L1_{scheme}_SHARDED_MEMORY_CONFIG")
        grid = ttsim.CoreGrid(x=cores[0], y=cores[1])
        place = ttsim.create_sharded_memory_config((64, 64), grid, getattr(ttsim.ShardStrategy, scheme))
    first = ttsim.to_memory_config(tensor(np.ones((64, 64)), device), place)
    product = ttsim.matmul(first, tensor(np.ones((64, 128)), device), memory_config=out, **named)
    shards = product.memory_config().shard_spec
    assert (str(shards.grid), tuple(shards.shape)) == (out_cores, out_shard)
    assert set(product.to_numpy().ravel().tolist()) == {64.0}


def test_an_activation_of_the_config_and_of_the_call(device):
    first, second = tensor(np.ones((32, 32)), device), tensor(-np.ones((32, 32)), device)
    config = blocks(**GRID, transpose_mcast=False, fused_activation=ttsim.UnaryOpType.RELU)
    assert set(ttsim.matmul(first, second, program_config=config).to_numpy().ravel().tolist()) == {0.0}
    shards = ttsim.create_sharded_memory_config((32, 32), ttsim.CoreGrid(x=1, y=1), ttsim.ShardStrategy.HEIGHT)
    with pytest.raises(ArgumentError, match="Sharded matmul run with UnaryOpType::RELU activation"):
        ttsim.matmul(ttsim.to_memory_config(first, shards), second, activation="relu")


def test_batches_of_rows_of_their_own(device):
    first, second = np.arange(4 * 64 * 32).reshape(4, 64, 32) % 7, np.arange(4 * 32 * 32).reshape(4, 32, 32) % 5
    config = blocks("MatmulMultiCoreReuse", **GRID, per_core_M=2)
    compute = ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi4, fp32_dest_acc_en=True)
    operands = [tensor(side, device) for side in (first, second)]
    product = ttsim.matmul(*operands, program_config=config, compute_kernel_config=compute, dtype=ttsim.float32)
    assert np.array_equal(product.to_numpy(), first @ second)


def test_columns_in_banks_of_dram(device):
    """A tile row of 512 columns by weights in all banks, whose shards hold padding as well."""
    banks = device.dram_grid_size().x
    share = -(-768 // banks // 32) * 32
    spec = ttsim.ShardSpec(ttsim.num_cores_to_corerangeset(banks, ttsim.CoreCoord(banks, 1), True), (512, share))
    place = ttsim.MemoryConfig(ttsim.TensorMemoryLayout.WIDTH_SHARDED, ttsim.BufferType.DRAM, spec)
    weight = ttsim.to_memory_config(tensor(np.ones((512, 768)), device), place)
    shards = ttsim.create_sharded_memory_config((32, 512), ttsim.CoreGrid(x=8, y=1), ttsim.ShardStrategy.WIDTH)
    first = ttsim.to_memory_config(tensor(np.ones((32, 512)), device), shards)
    config = ttsim.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2, per_core_M=1, per_core_N=3)
    product = ttsim.matmul(first, weight, program_config=config, memory_config=ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG)
    assert tuple(product.memory_config().shard_spec.shape) == (32, 96)
    assert set(product.to_numpy().ravel().tolist()) == {512.0}


def product_in_banks(device, cores, depth, wide, block):
    """The product of a row of tiles in WIDTH shards, so many tiles wide, by weights in all banks of DRAM."""
    banks = device.dram_grid_size().x
    first = put(device, f"0 tile width/32x{wide * 32}/{cores}", np.ones((32, depth * 32)))
    second = put(device, f"0 tile width/{depth * 32}x64/{banks}x1 dram", np.ones((depth * 32, banks * 64)))
    config = ttsim.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=block, per_core_M=1, per_core_N=2)
    return ttsim.matmul(first, second, program_config=config, memory_config=ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG)


def test_blocks_of_several_shards_are_put_together_beside_banks(device):
    assert set(product_in_banks(device, 4, 4, 1, 2).to_numpy().ravel().tolist()) == {128.0}
    with pytest.raises(ArgumentError, match=r"^in0 block count 2 x shards per block 2 must cover the 8 storage cores"):
        product_in_banks(device, 8, 4, 1, 2)


def test_addmm(device):
    ones = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 32)), device)
    added = tensor(np.full((32, 32), 3.0), device)
    assert set(ttsim.addmm(added, *ones, alpha=0.5, beta=2).to_numpy().ravel().tolist()) == {38.0}
    target = tensor(np.zeros((32, 32)), device)
    assert ttsim.addmm(added, *ones, alpha=0.5, beta=2, optional_output_tensor=target) is target
    assert set(target.to_numpy().ravel().tolist()) == {38.0}
    with pytest.raises(ArgumentError, match="alpha parameter cannot be 0"):
        ttsim.addmm(added, *ones, alpha=0.0)


def test_a_config_prints_and_changes_as_in_ttnn():
    config = blocks(ONE_AXIS, **GRID, fuse_batch=True, mcast_in0=True, fused_activation=(ttsim.UnaryOpType.GELU, True))
    config.per_core_N = 4
    assert repr(config) == (
        "MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=2-2,in0_block_w=1,out_subblock_h=1,"
        "out_subblock_w=1,out_block_h=1,out_block_w=1,per_core_M=1,per_core_N=4,fuse_batch=1,fused_activation="
        "UnaryWithParam(op_type=UnaryOpType::GELU, params=[1]),mcast_in0=1,gather_in0=0,hop_cores={},"
        "num_global_cb_receivers=1,untilize_out=0,allowed_worker_cores=std::nullopt,stream_in1=0)"
    )
    with pytest.raises(TypeError):
        config.in0_block_w = "two"
    config.gather_in0 = True
    assert "does not simulate gather_in0" in config.argument().unsimulated


def test_a_program_that_no_measured_row_ran_has_no_error_bar():
    """The library's own choice for the same operands is measured."""
    reuse = ttsim.MatmulMultiCoreReuseProgramConfig(
        compute_with_storage_grid_size=ttsim.CoreCoord(8, 8), in0_block_w=1, out_subblock_h=1, out_subblock_w=1,
        per_core_M=1, per_core_N=1,
    )  # fmt: skip
    shares = []
    with ttsim.open_device(values="off") as device:
        a, b = (
            ttsim.zeros((1, 1, rows, 32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device) for rows in (64, 32)
        )
        for config in (reuse, None):
            with ttsim.profile(device) as profile:
                ttsim.matmul(a, b, program_config=config)
            shares.append(profile.report().calls[0].total.error.unmeasured_share)
    assert shares == [1.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "scheme", "program"),
    [(32, "WIDTH", "MatmulMultiCoreReuseMultiCast1D"), (64, "BLOCK", "MatmulMultiCoreReuseMultiCast")],
)
def test_shards_of_the_output_lie_on_cores_of_the_grid(rows, scheme, program):
    """The shards' cores have 6 columns, and the call's grid has 4."""
    with ttsim.open_device(values="off") as device:
        first, second = (tensor(np.zeros((rows if side else 64, 64)), device) for side in (1, 0))
        cores = ttsim.CoreRangeSet({ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(5, 3))})
        layout = getattr(ttsim.TensorMemoryLayout, f"{scheme}_SHARDED")
        shards = ttsim.ShardSpec(cores, [32, 32], ttsim.ShardOrientation.ROW_MAJOR)
        place = ttsim.MemoryConfig(layout, ttsim.BufferType.L1, shards)
        said = f"^{program}ProgramConfig: output shard grid .* must lie within extent 4-4\n"
        with pytest.raises(ArgumentError, match=said):
            ttsim.matmul(first, second, core_grid=ttsim.CoreGrid(x=4, y=4), memory_config=place)


@pytest.mark.parametrize(
    ("name", "value"),
    [("softplus", 2.125), ("selu", 2.1), ("mish", 1.945), ("gelu_approx", 1.96), ("sigmoid_approx", 0.88)],
)
def test_activations_by_names_of_their_own(device, name, value):
    product = ttsim.matmul(tensor(np.full((32, 32), 2.0), device), tensor(np.eye(32), device), activation=name)
    assert np.allclose(product.to_numpy(), value, rtol=0.02)


def test_a_program_fuses_few_functions():
    with ttsim.open_device(values="off") as device:
        x = tensor(np.ones((64, 64)), device)
        with pytest.raises(ArgumentError, match=r"^Unsupported UnaryOpType for fused activation: UnaryOpType::MISH"):
            ttsim.matmul(x, x, activation="mish", core_grid=ttsim.CoreGrid(x=2, y=2))


def test_a_program_of_pairs_deals_its_own_shards_to_the_given_cores():
    """A shard of the output is what a core computes, whatever shape the caller gives."""
    with ttsim.open_device(values="off") as device:
        first, second = (tensor(np.ones((4, *sides)), device) for sides in ((128, 32), (32, 128)))
        config = blocks("MatmulMultiCoreReuse", compute_with_storage_grid_size=(8, 3), per_core_M=4, per_core_N=4)
        place = ttsim.create_sharded_memory_config(
            (256, 128), ttsim.CoreGrid(x=4, y=1), ttsim.ShardStrategy.HEIGHT, use_height_and_width_as_shard_shape=True
        )
        shards = ttsim.matmul(first, second, program_config=config, memory_config=place).memory_config().shard_spec
        assert (tuple(shards.shape), shards.orientation) == ((128, 128), ttsim.ShardOrientation.COL_MAJOR)
        few = ttsim.create_sharded_memory_config(
            (256, 128), ttsim.CoreGrid(x=2, y=1), ttsim.ShardStrategy.HEIGHT, use_height_and_width_as_shard_shape=True
        )
        with pytest.raises(DeviceError, match=r"^Number of shards along height 4 must not exceed number of cores 2"):
            ttsim.matmul(first, second, program_config=config, memory_config=few)


def test_a_bias_is_looked_at_before_the_program_and_after_the_output():
    with ttsim.open_device(values="off") as device:
        first, second = tensor(np.ones((32, 64)), device), tensor(np.ones((64, 64)), device)
        wide = tensor(np.ones((1, 65)), device)
        config = blocks(ONE_AXIS, **GRID, fuse_batch=True, mcast_in0=True, in0_block_w=0)
        with pytest.raises(ArgumentError, match=r"^Unsupported bias shape: padded last dimension of bias, 96, not"):
            ttsim.linear(first, second, bias=wide, program_config=config)
        place = ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG
        with pytest.raises(DeviceError, match=r"^Shard width 32 must match physical width 64"):
            ttsim.linear(first, second, bias=wide, program_config=config, memory_config=place)


@pytest.mark.parametrize(
    ("sides", "in_rows", "places", "named", "line"),
    [
        ((64, 64, 7), "second", "DRAM L1", {}, "per_core_N must be greater than 0!"),
        ((7, 64, 64), "first", "L1 DRAM", {}, "per_core_M must be greater than 0!"),
        ((16, 64, 64), "first", "L1 DRAM", {}, "Inputs to matmul must be tilized"),  # no side 8 times the other
        ((7, 64, 7), "both", "DRAM DRAM", {}, "per_core_N must be greater than 0!"),
        ((7, 64, 7), "both", "L1 DRAM", {}, "Inputs to matmul must be tilized"),
        ((64, 7, 64), "both", "DRAM DRAM", {}, "in0_block_w must be greater than 0!"),
        ((64, 7, 64), "both", "DRAM L1", {}, "Inputs to matmul must be tilized"),
        ((64, 7, 32), "first", "DRAM DRAM", {}, "Inputs to matmul must be tilized"),  # a column of tiles
        # Shards of the output hold the tiles that rows fill.
        (
            (1, 128, 100),
            "second",
            "DRAM DRAM",
            {"memory_config": ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG},
            "Shard width 96 must match physical width 128 for height sharded",
        ),
        (
            (64, 64, 40),
            "second",
            "DRAM DRAM",
            {"core_grid": ttsim.CoreGrid(x=2, y=2)},
            "The last two dimensions of the",
        ),
        (
            (64, 64, 64),
            "both",
            "DRAM DRAM",
            {"core_grid": ttsim.CoreGrid(x=2, y=2)},
            "Inputs to matmul must be tilized",
        ),
    ],
)
def test_rows_of_less_than_a_tile_have_no_blocks(sides, in_rows, places, named, line):
    """A program is chosen before layouts are looked at, by whole tiles of the operands as they lie."""
    rows, depth, columns = sides
    with ttsim.open_device(values="off") as device:
        first, second = (
            ttsim.zeros(
                shape,
                ttsim.bfloat16,
                layout=ttsim.ROW_MAJOR_LAYOUT if in_rows in (name, "both") else ttsim.TILE_LAYOUT,
                device=device,
                memory_config=getattr(ttsim, f"{place}_MEMORY_CONFIG"),
            )
            for name, shape, place in zip(
                ("first", "second"), ((rows, depth), (depth, columns)), places.split(), strict=True
            )
        )
        with pytest.raises((ArgumentError, DeviceError), match=f"^{re.escape(line)}"):
            ttsim.matmul(first, second, **named)


ROWS = ttsim.ROW_MAJOR_LAYOUT
L1_HIGH, L1_WIDE = ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG, ttsim.L1_WIDTH_SHARDED_MEMORY_CONFIG


def zeros(sides, device, place=ttsim.DRAM_MEMORY_CONFIG, layout=ttsim.TILE_LAYOUT):
    return ttsim.Tensor(np.zeros(sides, np.float32), ttsim.bfloat16, device, layout, place)


def test_a_target_in_l1_is_written_where_dram_is_given(device):
    """The library takes DRAM, its default, for no place at all."""
    target = zeros((32, 96), device, ttsim.L1_MEMORY_CONFIG)
    operands = zeros((32, 64), device), zeros((64, 96), device)
    given = {"optional_output_tensor": target, "memory_config": ttsim.DRAM_MEMORY_CONFIG}
    assert ttsim.matmul(*operands, **given).memory_config() == ttsim.L1_MEMORY_CONFIG


@pytest.mark.parametrize(("turned_a", "turned_b"), [(True, False), (False, True), (True, True)])
def test_a_target_of_operands_that_are_transposed_ahead_is_refused(device, turned_a, turned_b):
    """The library transposes their shapes once more, as it does beside a bias; a program of DRAM alone does not."""
    first, second = ((64, 32) if turned_a else (32, 64)), ((96, 64) if turned_b else (64, 96))
    call = {"transpose_a": turned_a, "transpose_b": turned_b, "optional_output_tensor": zeros((32, 96), device)}
    with pytest.raises(ArgumentError, match=r"^Invalid optional output tensor\n"):
        ttsim.matmul(zeros(first, device), zeros(second, device, ttsim.L1_MEMORY_CONFIG), **call)
    ttsim.matmul(zeros(first, device), zeros(second, device), **call)


def reuse_config(**changes):
    fields = {"in0_block_w": 1, "out_subblock_h": 1, "out_subblock_w": 1, "per_core_M": 1, "per_core_N": 3}
    return ttsim.MatmulMultiCoreReuseProgramConfig(compute_with_storage_grid_size=(8, 8), **fields | changes)


def placed_shards(layout, shape, last, buffer=ttsim.BufferType.L1):
    cores = ttsim.CoreRangeSet({ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(*last))})
    return ttsim.MemoryConfig(layout, buffer, ttsim.ShardSpec(cores, shape, ttsim.ShardOrientation.ROW_MAJOR))


HIGH, WIDE, SQUARE = (ttsim.TensorMemoryLayout[f"{kind}_SHARDED"] for kind in ("HEIGHT", "WIDTH", "BLOCK"))
RANKS = "Batched (non-bcast) matmul requires inputs of the same rank, got a_shape rank: {} vs b_shape rank: {}".format
FRONT = "When in1 rank greater than in0 rank front dimensions need to be 1"


@pytest.mark.parametrize(
    ("first", "second", "call", "line"),
    [
        # The output comes before layouts, and the caller's tensor before that
        ([(32, 64)], [(2, 64, 96), ttsim.DRAM_MEMORY_CONFIG, ROWS], {}, FRONT),
        ([(1, 1, 32, 64)], [(2, 64, 96)], {"memory_config": L1_WIDE}, RANKS(4, 3)),
        ([(32, 64)], [(64, 96), ttsim.DRAM_MEMORY_CONFIG, ROWS], {"memory_config": L1_HIGH, "target": (32, 96)},
         "Memory config mismatch between optional output tensor"),
        ([(32, 64)], [(2, 64, 96)], {"target": (2, 32, 96)}, RANKS(2, 3)),
        # A program of pairs pairs single matrices, too
        ([(1, 1, 32, 64)], [(64, 96)], {"program_config": reuse_config()}, RANKS(4, 2)),
        ([(2, 32, 64)], [(64, 96)], {"program_config": reuse_config()},
         "MatmulMultiCoreReuseProgramConfig: Batch broadcasting is not supported for the chosen program config"),
        # Shards in DRAM count no blocks
        ([(1, 1, 96, 64), ttsim.L1_MEMORY_CONFIG],
         [(1, 1, 64, 64), placed_shards(SQUARE, (64, 32), (3, 0), ttsim.BufferType.DRAM)],
         {"program_config": reuse_config(per_core_M=3, per_core_N=2)},
         "MatmulMultiCoreReuseProgramConfig: Input B shard shape[1] (32) must equal padded shape[-1] (64)"),
        ([(2, 32, 64)], [(2, 64, 96), placed_shards(HIGH, (64, 96), (1, 0), ttsim.BufferType.DRAM)],
         {"program_config": reuse_config()}, "DFB 'in1' borrows memory from TensorParameter 'in1', but its TensorSpec"),
        ([(1, 2, 96, 64)], [(1, 2, 64, 96)],
         {"program_config": reuse_config(per_core_M=6), "memory_config": placed_shards(WIDE, (192, 96), (1, 0))},
         "MatmulMultiCoreReuseProgramConfig: Output memory layout must not be WIDTH_SHARDED"),
        # Cores that are given are asked first, and only rows of blocks without them serve batches
        ([(1, 1, 64, 32)], [(3, 1, 64, 96)], {"core_grid": ttsim.CoreGrid(x=4, y=7)},
         "The k dimension does not match between tensors"),
        ([(64, 32)], [(3, 64, 96)], {"core_grid": ttsim.CoreGrid(x=4, y=7)},
         "The k dimension does not match between tensors"),
        ([(2, 40, 40), ttsim.DRAM_MEMORY_CONFIG, ROWS], [(2, 40, 96)], {"core_grid": ttsim.CoreGrid(x=4, y=1)},
         "The last two dimensions of the first tensor and the last dimension of the second tensor must be a multiple"),
        ([(1, 40, 64)], [(2, 64, 40)], {"core_grid": ttsim.CoreGrid(x=7, y=4)},
         "bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch dimension 0 mismatch: a=1"),
        # A core with HEIGHT shards computes their rows, not those of the output
        ([(32, 128), placed_shards(HIGH, (32, 128), (0, 0))], [(32, 96)], {"transpose_a": True},
         "MatmulMultiCoreReuseMultiCast1DProgramConfig: Number of blocks exceeds number of cores: 4 blocks > 1 cores"),
    ],
)  # fmt: skip
def test_what_the_library_says_first_of_a_product(device, first, second, call, line):
    sides = call.get("target")
    call = {name: value for name, value in call.items() if name != "target"}
    more = {} if sides is None else {"optional_output_tensor": zeros(sides, device)}
    with pytest.raises(ArgumentError, match=f"^{re.escape(line)}"):
        ttsim.matmul(zeros(first[0], device, *first[1:]), zeros(second[0], device, *second[1:]), **call, **more)
