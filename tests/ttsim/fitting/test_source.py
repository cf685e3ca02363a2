from dataclasses import fields

import pytest

import ttsim
from ops.calls.convolution.arguments import ConvConfig
from ttsim.fitting.source import conv_config_source, slice_config_source

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
