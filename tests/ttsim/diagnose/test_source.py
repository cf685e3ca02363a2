from dataclasses import fields

import numpy as np
import pytest

import ttsim
from ops.planners.conv.arguments import ConvConfig
from ttsim.diagnose import conv_config_source, estimate_source, memory_config_source, slice_config_source

GRID = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(7, 2))])


@pytest.mark.parametrize(
    "config",
    [
        ttsim.Conv2dConfig(),
        ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, act_block_h_override=64, deallocate_activation=True),
        ttsim.Conv2dConfig(activation=ttsim.UnaryOpType.RELU, output_layout=ttsim.ROW_MAJOR_LAYOUT),
        ttsim.Conv2dConfig(activation=ttsim.UnaryWithParam(ttsim.UnaryOpType.LEAKY_RELU, 0.25)),
        ttsim.Conv2dConfig(shard_layout=ttsim.TensorMemoryLayout.WIDTH_SHARDED, padding_mode="Replicate"),
        ttsim.Conv2dConfig(override_sharding_config=True, core_grid=GRID, force_split_reader=False),
    ],
)
def test_pasted_configs_are_the_same(config: ttsim.Conv2dConfig) -> None:
    pasted = eval(conv_config_source(config.argument()), {"ttnn": ttsim})
    assert pasted.argument() == config.argument()


def test_every_field_can_be_pasted() -> None:
    flipped = {one.name: not one.default for one in fields(ConvConfig) if isinstance(one.default, bool)}
    config = ConvConfig(**flipped)  # type: ignore[arg-type]
    assert eval(conv_config_source(config), {"ttnn": ttsim}).argument() == config


@pytest.mark.parametrize(
    "config",
    [
        ttsim.Conv2dL1FullSliceConfig,
        ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=3),
        ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth),
    ],
)
def test_pasted_slice_configs_are_the_same(config: ttsim.Conv2dSliceConfig) -> None:
    assert eval(slice_config_source(config.argument()), {"ttnn": ttsim}).argument() == config.argument()


BLOCKS = ttsim.MemoryConfig(
    ttsim.TensorMemoryLayout.HEIGHT_SHARDED,
    ttsim.BufferType.L1,
    ttsim.ShardSpec(GRID, [64, 32], ttsim.ShardOrientation.COL_MAJOR),
)


@pytest.mark.parametrize("config", [ttsim.DRAM_MEMORY_CONFIG, ttsim.L1_MEMORY_CONFIG, BLOCKS])
def test_pasted_memory_configs_are_the_same(config: ttsim.MemoryConfig) -> None:
    assert eval(memory_config_source(config), {"ttnn": ttsim}) == config


CALL = {"in_channels": 32, "out_channels": 64, "batch_size": 1, "input_height": 16, "input_width": 16,
        "kernel_size": (2, 2), "stride": (2, 2)}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "weight", "options"),
    [
        (ttsim.conv2d, (64, 32, 2, 2), {}),
        (ttsim.conv2d, (64, 16, 2, 2), {"groups": 2, "padding": (1, 0), "dtype": ttsim.bfloat8_b}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {"output_padding": (1, 1), "mirror_kernel": False}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {
            "lowering": "phase",
            "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, act_block_h_override=32),
            "compute_config": ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi3),
            "memory_config": ttsim.L1_MEMORY_CONFIG}),
        (ttsim.conv_transpose2d, (32, 64, 2, 2), {
            "dram_slice_config": ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2)}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prepared", [False, True])
def test_a_pasted_call_asks_for_the_same(function, weight, options, prepared) -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        place = ttsim.DRAM_MEMORY_CONFIG if "dram_slice_config" in options else ttsim.L1_MEMORY_CONFIG
        x = ttsim.Tensor(np.zeros((1, 1, 256, 32), np.float32), ttsim.bfloat16).to(device, place)
        tensors = {"input_tensor": x, "weight_tensor": ttsim.Tensor(np.zeros(weight, np.float32), ttsim.bfloat16)}
        tensors["bias_tensor"] = ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.bfloat16)
        if prepared:
            first, (tensors["weight_tensor"], tensors["bias_tensor"]) = function(
                **tensors, device=device, return_weights_and_bias=True, **CALL, **options
            )
            ttsim.deallocate(first)  # which would lie where a halo's output moves to
        with ttsim.profile(device) as made:
            function(**tensors, device=device, **CALL, **options)
        (call,) = made.calls
        assert call.asked is not None
        pasted = eval(estimate_source(call.asked), {"ttnn": ttsim, "device": device})
    assert [(one.name, one.cycles) for one in pasted.operations] == [
        (one.name, one.cycles) for one in made.report().operations
    ]
