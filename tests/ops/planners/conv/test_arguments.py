"""A call as a convolution: defaults, geometry, and what every option becomes."""

from dataclasses import replace

import pytest

from device.cores import first_cores
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.parts import GridSpec
from ops.planners.conv.arguments import CONV2D, ComputeConfig, ConvConfig
from ops.programs.conv2d.partition import ConvOptions
from tests.build import TWO_SLICES, call, changed, operand, sized_call
from tests.shards import HEIGHT, WIDTH

GRID = first_cores(4, 8, 8)


def two_images(*, in_format=BFLOAT16, raw_format=BFLOAT16, **changes):
    """4x6 pixels of 16 channels, twice, under a 3x2 kernel."""
    tensors = {
        "input": operand(1, 1, 48, 16, data_format=in_format, place=DRAM_MEMORY_CONFIG),
        "weight": operand(16, 8, 3, 2, data_format=raw_format),
    }
    return changed(sized_call((4, 6), (16, 8), (3, 2), batch=2), **tensors | changes)


@pytest.mark.parametrize(
    ("in_format", "weights", "fp32_dest"),
    [(FLOAT32, FLOAT32, True), (FLOAT32, BFLOAT16, False), (BFLOAT16, FLOAT32, False), (BFLOAT16, BFLOAT16, False)],
)
def test_without_a_compute_config_only_float32_throughout_gets_a_float32_dst(in_format, weights, fp32_dest):
    got = two_images(weights_format=weights, in_format=in_format).compute
    assert got == ComputeConfig(fidelity_phases=4, fp32_dest=fp32_dest, packer_l1_acc=False)


@pytest.mark.parametrize(
    ("change", "matmul"),
    [
        ({}, True),
        ({"output_padding": (1, 0)}, True),
        ({"groups": 2}, True),
        ({"shard_layout": HEIGHT}, True),
        ({"kernel_size": (1, 2)}, False),
        ({"kernel_size": (2, 1)}, False),
        ({"stride": (2, 1)}, False),
        ({"stride": (1, 2)}, False),
        ({"dilation": (1, 2)}, False),
        ({"padding": (1, 0, 0, 0)}, False),
        ({"padding": (0, 0, 0, 1)}, False),
        ({"shard_layout": WIDTH}, False),
    ],
)
def test_a_matmul_is_pointwise_in_every_way(change, matmul):
    assert two_images(**{"kernel_size": (1, 1)} | change).is_matmul is matmul


def test_frame_of_an_uneven_call():
    """Rows: reach 4, top 1, bottom 3; columns: reach 1, no padding; the axes do not mix."""
    window = {"stride": (2, 3), "padding": (1, 3, 0, 0), "output_padding": (1, 2), "dilation": (2, 1)}
    frame = two_images(**window, replicate_padding=True).frame()
    rows, columns = frame.rows, frame.columns
    assert (frame.batch, frame.replicate) == (2, True)
    assert (rows.before, rows.after, rows.input_dilation, rows.trailing) == (3, 1, 2, 1)
    assert (columns.before, columns.after, columns.input_dilation, columns.trailing) == (1, 1, 3, 2)
    assert (rows.outputs, columns.outputs) == (3 * 2 - 4 + 4 + 1 + 1, 5 * 3 + 1 + 2 + 1)


OPTIONS = [
    ({"act_block_h_override": 64}, {"act_block_h_override": 64}),
    ({"act_block_w_div": 2}, {"act_block_w_div": 2}),
    ({"transpose_shards": True}, {"transpose_shards": True}),
    ({"output_layout": Layout.ROW_MAJOR}, {"untilize_out": True}),
    ({"enable_act_double_buffer": True}, {"act_double_buffer": True}),
    ({"enable_weights_double_buffer": True}, {"weights_double_buffer": True}),
    ({"full_inner_dim": True}, {"full_inner_dim": True}),
    ({"enable_activation_reuse": True}, {"activation_reuse": True}),
    ({"force_split_reader": False}, {"force_split_reader": False}),
    ({"config_tensors_in_dram": True}, {"config_tensors_in_dram": True}),
    ({"core_grid": GRID, "override_sharding_config": True}, {"core_grid": GRID}),
    ({"core_grid": GRID, "override_output_sharding_config": True}, {"output_grid": GridSpec(cols=4, rows=1)}),
    ({"core_grid": GRID}, {}),
    ({"compute_config": ComputeConfig(fp32_dest=True)}, {"fp32_dest": True}),
    ({"compute_config": ComputeConfig(packer_l1_acc=True)}, {"packer_l1_acc": True}),
]


@pytest.mark.parametrize(("given", "made"), OPTIONS)
def test_each_field_becomes_one_option_and_no_other(given, made):
    _, options = two_images(**given).lower()
    assert options == replace(ConvOptions(), **made)


def test_a_slice_is_tiled_and_keeps_what_the_call_settled():
    """The window of a bfloat8_b input is bfloat16, which must change neither the output's format nor Dst."""
    whole = two_images(
        in_format=FLOAT32,
        raw_format=FLOAT32,
        memory_config=L1_MEMORY_CONFIG,
        slice_config=TWO_SLICES,
        conv_config=ConvConfig(output_layout=Layout.ROW_MAJOR, reallocate_halo_output=False, act_block_h_override=64),
    )
    source = operand(1, 1, 24, 16, place=DRAM_MEMORY_CONFIG)
    part = whole.as_slice(source)
    assert (part.input, part.memory_config, part.slice_config) == (source, None, None)
    config = part.conv_config
    assert (config.output_layout, config.deallocate_activation) == (Layout.TILE, True)
    assert (config.reallocate_halo_output, config.act_block_h_override) == (True, 64)
    assert (part.output_format, part.weight_format) == (FLOAT32, FLOAT32)
    assert part.compute == whole.compute == ComputeConfig(fidelity_phases=4, fp32_dest=True)


PADDED = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))


@pytest.mark.parametrize(
    ("made", "lengths", "unsigned"),
    [
        (call(), (16, 16), (16, 16)),
        (call(padding=(0, 1, 2, 3), dilation=(2, 1)), (19, 13), (19, 13)),
        # a kernel of 5 on 4 columns: -1 + 1 of them with stride 1, and a fourth of 2**32 with stride 4
        (sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D), (2, 0), (2, 0)),
        (sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D, stride=(3, 4)), (1, 0), (1, 2**30)),
        (PADDED, (228, -1), (228, 2**32 - 1)),
    ],
)
def test_outputs_with_and_without_a_sign(made, lengths, unsigned):
    assert (made.output_lengths(), made.output_lengths(unsigned=True)) == (lengths, unsigned)
    assert made.wraps is (lengths != unsigned)
