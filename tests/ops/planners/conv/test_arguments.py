"""A call as a convolution: defaults, geometry, and what every option becomes."""

from dataclasses import fields, replace

import pytest

from device.cores import first_cores
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.planners.conv.arguments import CONV2D, ComputeConfig, ConvConfig, SliceConfig, SliceType
from ops.programs.conv2d.parallel_config import ConvOptions
from tests.build import L1_FULL, call, operand, sized_call


def two_images(config=None, *, in_format=BFLOAT16, raw_format=BFLOAT16, **changes):
    """4x6 pixels of 16 channels, twice, under a 3x2 kernel."""
    facts = {
        "input": operand(1, 1, 48, 16, data_format=in_format, place=DRAM_MEMORY_CONFIG),
        "weight": operand(16, 8, 3, 2, data_format=raw_format),
        "conv_config": config or ConvConfig(),
    }
    return replace(sized_call((4, 6), (16, 8), (3, 2), batch=2), **facts | changes)


def test_formats_follow_the_tensors_unless_given():
    assert two_images(raw_format=FLOAT32).weight_format is FLOAT32
    assert two_images(ConvConfig(weights_format=BFLOAT8_B)).weight_format is BFLOAT8_B
    assert two_images(in_format=FLOAT32).output_format is FLOAT32
    assert two_images(out_format=BFLOAT8_B).output_format is BFLOAT8_B


@pytest.mark.parametrize(
    ("in_format", "weights", "fp32_dest"),
    [(FLOAT32, FLOAT32, True), (FLOAT32, BFLOAT16, False), (BFLOAT16, FLOAT32, False), (BFLOAT16, BFLOAT16, False)],
)
def test_without_a_compute_config_only_float32_throughout_gets_a_float32_dst(in_format, weights, fp32_dest):
    got = two_images(ConvConfig(weights_format=weights), in_format=in_format).compute
    assert got == ComputeConfig(fidelity_phases=4, fp32_dest=fp32_dest, packer_l1_acc=False)


def test_a_given_compute_config_is_taken_as_it_is():
    given = ComputeConfig(fidelity_phases=2, packer_l1_acc=True)
    assert two_images(in_format=FLOAT32, raw_format=FLOAT32, compute_config=given).compute == given
    _, options = two_images(compute_config=given).lower()
    assert (options.fp32_dest, options.packer_l1_acc) == (False, True)


POINTWISE = two_images(kernel_size=(1, 1))


@pytest.mark.parametrize(
    "change",
    [
        {"kernel_size": (1, 2)}, {"kernel_size": (2, 1)}, {"stride": (2, 1)}, {"stride": (1, 2)}, {"dilation": (1, 2)},
        {"padding": (1, 0, 0, 0)}, {"padding": (0, 0, 0, 1)},
        {"conv_config": ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED)},
    ],
)  # fmt: skip
def test_a_matmul_is_pointwise_in_every_way(change):
    assert POINTWISE.is_matmul
    assert not replace(POINTWISE, **change).is_matmul


@pytest.mark.parametrize(
    "change",
    [
        {"output_padding": (1, 0)},
        {"groups": 2},
        {"conv_config": ConvConfig(shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)},
    ],
)
def test_what_a_matmul_does_not_mind(change):
    assert replace(POINTWISE, **change).is_matmul


def test_frame_of_an_uneven_call():
    """Rows: reach 4, top 1, bottom 3; columns: reach 1, no padding; the axes do not mix."""
    frame = two_images(
            stride=(2, 3), padding=(1, 3, 0, 0), output_padding=(1, 2), dilation=(2, 1),
            conv_config=ConvConfig(replicate_padding=True),
        ).frame()  # fmt: skip
    rows, columns = frame.rows, frame.columns
    assert (frame.batch, frame.replicate) == (2, True)
    assert (rows.before, rows.after, rows.input_dilation, rows.trailing) == (3, 1, 2, 1)
    assert (columns.before, columns.after, columns.input_dilation, columns.trailing) == (1, 1, 3, 2)
    assert (rows.outputs, columns.outputs) == (3 * 2 - 4 + 4 + 1 + 1, 5 * 3 + 1 + 2 + 1)


def test_problem():
    problem, _ = two_images(ConvConfig(weights_format=BFLOAT8_B), out_format=FLOAT32).lower()
    assert (problem.in_channels, problem.out_channels, problem.kernel) == (16, 8, (3, 2))
    assert (problem.in_format, problem.weight_format, problem.out_format) == (BFLOAT16, BFLOAT8_B, FLOAT32)
    assert (problem.row_major, problem.bias, problem.sliced) == (True, False, False)
    tiles = operand(1, 1, 48, 16, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG)
    tiled, _ = two_images(input=tiles, bias=operand(1, 1, 1, 8)).lower()
    assert (tiled.row_major, tiled.bias) == (False, True)


GRID = first_cores(4, 8, 8)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"act_block_h_override": 64}, {"act_block_h_override": 64}),
        ({"act_block_w_div": 2}, {"act_block_w_div": 2}),
        ({"transpose_shards": True}, {"transpose_shards": True}),
        ({"output_layout": Layout.ROW_MAJOR}, {"untilize_out": True}),
        ({"enable_act_double_buffer": True}, {"act_double_buffer": True}),
        ({"enable_weights_double_buffer": True}, {"weights_double_buffer": True}),
        ({"full_inner_dim": True}, {"full_inner_dim": True}),
        ({"force_split_reader": False}, {"force_split_reader": False}),
        ({"config_tensors_in_dram": True}, {"config_tensors_in_dram": True}),
        ({"core_grid": GRID, "override_sharding_config": True}, {"core_grid": GRID}),
        ({"core_grid": GRID}, {}),
    ],
)
def test_options(given, made):
    """Each field becomes one option and no other; a grid counts only with override_sharding_config."""
    _, options = two_images(ConvConfig(**given)).lower()
    assert options == replace(ConvOptions(), **made)


def test_every_option_comes_from_somewhere():
    _, options = two_images(
            ConvConfig(
                act_block_h_override=32, act_block_w_div=3, transpose_shards=True, output_layout=Layout.ROW_MAJOR,
                enable_act_double_buffer=True, enable_weights_double_buffer=True, full_inner_dim=True,
                    enable_activation_reuse=True, override_output_sharding_config=True,
                force_split_reader=True, config_tensors_in_dram=True, core_grid=GRID, override_sharding_config=True,
            ),
            compute_config=ComputeConfig(fidelity_phases=1, fp32_dest=True, packer_l1_acc=True),
        ).lower()  # fmt: skip
    default = ConvOptions()
    left = [f.name for f in fields(options) if getattr(options, f.name) == getattr(default, f.name)]
    assert left == ["whole_windows"]  # which output phases ask for, no caller


def test_a_slice_is_tiled_and_keeps_what_the_call_settled():
    """The window of a bfloat8_b input is bfloat16, which must change neither the output's format nor Dst."""
    whole = two_images(
        ConvConfig(output_layout=Layout.ROW_MAJOR, reallocate_halo_output=False, act_block_h_override=64),
        in_format=FLOAT32,
        raw_format=FLOAT32,
        memory_config=L1_MEMORY_CONFIG,
        slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2),
    )
    source = operand(1, 1, 24, 16, place=DRAM_MEMORY_CONFIG)
    part = whole.as_slice(source)
    assert (part.input, part.memory_config, part.slice_config) == (source, None, None)
    config = part.conv_config
    assert (config.output_layout, config.deallocate_activation) == (Layout.TILE, True)
    assert (config.reallocate_halo_output, config.act_block_h_override) == (True, 64)
    assert (part.output_format, part.weight_format) == (FLOAT32, FLOAT32)
    assert part.compute == whole.compute == ComputeConfig(fidelity_phases=4, fp32_dest=True)


def test_outputs_of_a_transposed_convolution() -> None:
    assert call().output_lengths() == (16, 16)
    assert call(padding=(0, 1, 2, 3), dilation=(2, 1)).output_lengths() == (19, 13)


def test_outputs_without_a_sign() -> None:
    """A kernel of 5 on 4 columns: -1 + 1 of them with stride 1, and a fourth of 2**32 with stride 4."""
    none = sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D)
    assert none.output_lengths() == none.output_lengths(unsigned=True) == (2, 0)
    assert not none.wraps
    strided = sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D, stride=(3, 4))
    assert strided.output_lengths() == (1, 0)
    assert strided.output_lengths(unsigned=True) == (1, 2**30)
    assert strided.wraps


def test_outputs_of_too_much_padding_wrap() -> None:
    padded = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))
    assert padded.output_lengths() == (228, -1)
    assert padded.output_lengths(unsigned=True) == (228, 2**32 - 1)
    assert padded.plans_without_outputs
    assert not replace(padded, slice_config=L1_FULL).plans_without_outputs
