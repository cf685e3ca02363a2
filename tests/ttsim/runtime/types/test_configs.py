from copy import copy
from typing import Any

import pytest

import ttsim
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B
from ops.planners.conv.arguments import ComputeConfig, ConvConfig, SliceConfig, SliceType
from ttsim import ArgumentTypeError, CoreCoord, CoreGrid, CoreRangeSet, ShardOrientation, ShardStrategy
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceHeight,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    Conv2dSliceConfig,
    MathFidelity,
    PaddingMode,
    UnaryOpType,
    UnaryWithParam,
    WormholeComputeKernelConfig,
    init_device_compute_kernel_config,
)
from ttsim.runtime.types.matmul_configs import MatmulMultiCoreReuseMultiCastProgramConfig
from ttsim.runtime.types.tensors import DataType


def test_defaults_print_as_in_the_real_library() -> None:
    assert repr(Conv2dConfig()) == (
        "Conv2dConfig(weights_dtype=std::nullopt,activation=std::nullopt,deallocate_activation=0,reallocate_halo_output=1,"
        "config_tensors_in_dram=0,act_block_h_override=0,act_block_w_div=1,reshard_if_not_optimal=0,"
        "override_sharding_config=0,shard_layout=std::nullopt,core_grid=std::nullopt,transpose_shards=0,"
        "output_layout=Layout::TILE,enable_act_double_buffer=0,enable_weights_double_buffer=0,full_inner_dim=0,"
        "enable_kernel_stride_folding=std::nullopt,enable_activation_reuse=0,force_split_reader=std::nullopt,"
        "override_output_sharding_config=0,padding_mode=PaddingMode::Zeros)"
    )
    assert repr(Conv2dSliceConfig(slice_type=Conv2dDRAMSliceHeight)) == (
        "Op2DSliceConfig(slice_type=SliceType::DRAM_HEIGHT,num_slices=0)"
    )
    assert repr(UnaryWithParam(UnaryOpType.LEAKY_RELU, 0.1)) == (
        "UnaryWithParam(op_type=UnaryOpType::LEAKY_RELU, params=[0.1])"
    )


def test_defaults_mean_the_machines_defaults() -> None:
    assert Conv2dConfig().argument() == ConvConfig()
    assert WormholeComputeKernelConfig().argument() == ComputeConfig(fidelity_left_out=True)


def test_fields_arrive_in_the_machines_types() -> None:
    config = Conv2dConfig(weights_dtype=DataType.BFLOAT8_B, activation=UnaryOpType.RELU)
    config.shard_layout = TensorMemoryLayout.HEIGHT_SHARDED
    config.act_block_h_override = 64
    config.padding_mode = PaddingMode.Replicate
    assert config.activation == UnaryWithParam(UnaryOpType.RELU)
    assert config.argument() == ConvConfig(
        weights_format=BFLOAT8_B,
        activation=("relu", ()),
        shard_layout=TensorMemoryLayout.HEIGHT_SHARDED,
        act_block_h_override=64,
        replicate_padding=True,
    )
    assert Conv2dConfig(padding_mode="Replicate").argument().replicate_padding  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [[UnaryOpType.GELU, True], (UnaryOpType.GELU, 1.0)])
def test_an_activation_comes_in_a_pair_with_its_number(pair: Any) -> None:
    """As the real library takes it; lists of one or three entries it refuses."""
    wanted = UnaryWithParam(UnaryOpType.GELU, 1.0)
    program = MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=(1, 1), in0_block_w=1, out_subblock_h=1, out_subblock_w=1, per_core_M=1,
        per_core_N=1, transpose_mcast=False, fused_activation=pair,
    )  # fmt: skip
    assert UnaryWithParam(pair) == Conv2dConfig(activation=pair).activation == program.fused_activation == wanted
    for wrong in (pair[:1], (*pair, 2.0)):
        with pytest.raises(TypeError, match=r"^__init__\(\): incompatible function arguments"):
            Conv2dConfig(activation=wrong)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"activation": "relu"}, "activation must be UnaryWithParam or UnaryOpType or None, not 'relu'"),
        ({"act_block_h_overide": 32}, "there is no 'act_block_h_overide'; did you mean 'act_block_h_override'?"),
        ({"padding_mode": "Mirror"}, "padding_mode must be PaddingMode or its name, not 'Mirror'"),
    ],
)
def test_wrong_fields(fields: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError) as raised:
        Conv2dConfig(**fields)  # type: ignore[arg-type]
    assert str(raised.value).splitlines()[1] == f"Conv2dConfig: {words}"


def test_fields_of_older_versions_are_ignored_with_a_warning() -> None:
    for name in Conv2dConfig._retired:
        with pytest.warns(FutureWarning, match=f"Conv2dConfig: {name} is gone from the library"):
            assert Conv2dConfig(**{name: True}) == Conv2dConfig()  # type: ignore[arg-type]


def test_slices() -> None:
    config = Conv2dSliceConfig(slice_type=Conv2dDRAMSliceWidth, num_slices=3)
    assert config.argument() == SliceConfig(slice_type=SliceType.DRAM_WIDTH, num_slices=3)
    assert Conv2dL1FullSliceConfig.argument() == SliceConfig(slice_type=SliceType.L1_FULL)
    with pytest.raises(AttributeError, match="Conv2dL1FullSliceConfig is a constant"):
        Conv2dL1FullSliceConfig.num_slices = 2
    with pytest.raises(TypeError, match="slice_type is missing"):
        Conv2dSliceConfig()  # type: ignore[call-arg]


def test_fidelity_is_a_number_of_phases() -> None:
    configs = [WormholeComputeKernelConfig(math_fidelity=fidelity) for fidelity in MathFidelity]
    assert [config.argument().fidelity_phases for config in configs] == [1, 2, 3, 4, 1]  # LoFi first, Invalid last


def test_compute_configs() -> None:
    bare = WormholeComputeKernelConfig()
    assert (bare.math_fidelity, bare.math_approx_mode, bare.fp32_dest_acc_en) == (MathFidelity.Invalid, True, False)
    result = init_device_compute_kernel_config("any", math_fidelity=MathFidelity.HiFi4, fp32_dest_acc_en=True)
    assert result.argument() == ComputeConfig(fidelity_phases=4, fp32_dest=True)
    assert init_device_compute_kernel_config("any").math_fidelity is MathFidelity.LoFi
    assert init_device_compute_kernel_config("any", result) is result
    with pytest.raises(ArgumentTypeError, match=r"^init_device_compute_kernel_config\(\): incompatible function arg"):
        init_device_compute_kernel_config("any", "HiFi4")


def test_activations() -> None:
    assert (len(UnaryOpType), UnaryOpType.SILU.value) == (119, 58)
    with pytest.raises(TypeError, match=r"op_type must be a UnaryOpType, not 'relu'; did you mean UnaryOpType.RELU\?"):
        UnaryWithParam("relu")  # type: ignore[arg-type]


def test_a_copy_has_fields_of_its_own() -> None:
    config = Conv2dConfig(act_block_h_override=32)
    other = copy(config)
    assert other == config
    other.act_block_h_override = 64
    assert (config.act_block_h_override, other.act_block_h_override) == (32, 64)


@pytest.mark.parametrize(
    ("strategy", "orientation", "shard"),
    [
        (ShardStrategy.HEIGHT, None, [32, 64]),
        (ShardStrategy.WIDTH, None, [256, 8]),
        (ShardStrategy.BLOCK, None, [128, 16]),
        (ShardStrategy.BLOCK, ShardOrientation.COL_MAJOR, [64, 32]),
    ],
)
def test_even_shards(strategy: ShardStrategy, orientation: ShardOrientation | None, shard: list[int]) -> None:
    config = ttsim.create_sharded_memory_config((1, 1, 256, 64), CoreGrid(y=2, x=4), strategy, orientation)
    assert config.shard_spec is not None
    assert config.shard_spec.shape == shard
    assert str(config.shard_spec.grid) == "{[0-0 - 3-1]}"
    assert config.buffer_type is ttsim.BufferType.L1


def test_the_shape_of_a_shard_goes_with_any_cores() -> None:
    cores = ttsim.num_cores_to_corerangeset(6, CoreCoord(4, 4), True)
    shard = ttsim.create_sharded_memory_config(
        (32, 64), cores, ShardStrategy.WIDTH, use_height_and_width_as_shard_shape=True
    ).shard_spec
    assert shard is not None
    assert (shard.shape, shard.grid) == ([32, 64], cores)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"shape": (1, 1, 250, 64)}, "Invalid sharding core_grid"),
        ({"strategy": "height"}, "Invalid sharding strategy"),
        ({"core_grid": CoreRangeSet([])}, "height and width must be shard shape with CoreRangeSet"),
        ({"shape": "256"}, "Invalid input shape"),
        ({"shape": (256,)}, "Invalid input shape"),
        ({"shape": ("a", 64)}, "Invalid input shape"),
        ({"core_grid": 8}, "Invalid core_grid type"),
    ],
)
def test_refusals_begin_with_the_words_of_the_real_library(changed, text) -> None:  # type: ignore[no-untyped-def]
    good = {"shape": (256, 64), "core_grid": CoreGrid(y=2, x=4), "strategy": ShardStrategy.HEIGHT}
    with pytest.raises(RuntimeError, match=f"^{text}\n"):
        ttsim.create_sharded_memory_config(**good | changed)


def test_first_cores_of_a_grid() -> None:
    grid = CoreCoord(8, 8)
    assert str(ttsim.num_cores_to_corerangeset(10, grid, True)) == "{[0-0 - 7-0], [0-1 - 1-1]}"
    assert str(ttsim.num_cores_to_corerangeset(10, grid)) == "{[0-0 - 0-7], [1-0 - 1-1]}"
    assert str(ttsim.num_cores_to_corerangeset(16, grid, row_wise=True)) == "{[0-0 - 7-1]}"
    for count in (0, 65):
        with pytest.raises(ValueError, match=f"does not have {count} cores"):
            ttsim.num_cores_to_corerangeset(count, grid)


def test_the_beginning_of_a_name_is_answered_with_the_name():
    with pytest.raises(TypeError, match="there is no 'act_block_h'; did you mean 'act_block_h_override'"):
        Conv2dConfig(act_block_h=64)
