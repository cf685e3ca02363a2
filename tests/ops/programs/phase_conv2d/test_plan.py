"""Groups of output phases, their blocks and their circular buffers, worked by hand."""

from device.memory.memory_config import Layout
from ops.programs.conv2d.op import KBlock


def groups(planned):
    return [part.frames for part in planned.op.parts]


def firsts(planned):
    return [[(one.rows.output_offset, one.columns.output_offset) for one in group] for group in groups(planned)]


def test_phases_of_a_row_that_meet_the_same_inputs_are_together(planned):
    assert firsts(planned()) == [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]
    assert [part.beside for part in planned().op.parts] == [2, 2]


def test_phases_with_windows_of_their_own_are_apart(planned):
    result = planned(kernel=(4, 4), padding=(1, 1, 1, 1))
    assert firsts(result) == [[(0, 0)], [(0, 1)], [(1, 0)], [(1, 1)]]
    assert [part.conv.problem.kernel for part in result.op.parts] == [(2, 2)] * 4


def test_block_shards_join_rows_where_that_costs_nothing(planned):
    """16 x 16 pixels, 8 rows of cores: 128 outputs each, four lines of 32, which meet the same two lines of 16."""
    result = planned((16, 16), channels=(512, 512), scheme="BLOCK_SHARDED")
    assert firsts(result) == [[(0, 0), (0, 1), (1, 0), (1, 1)]]
    assert result.op.parts[0].beside == 2
    assert result.op.parts[0].conv.layout.blocks.act_h_tiles == 1


def test_rows_are_as_many_as_the_core_with_most_has(planned):
    """60 x 80 outputs, 96 of a core: 40 windows of a line at most, and 8 of the next, or up to 40 of either."""
    result = planned((30, 40), channels=(512, 256), act_block_h_override=96)
    assert result.op.layout.shards.out_rows == 96
    assert [part.conv.layout.shards.out_rows for part in result.op.parts] == [64, 64]
    assert [part.conv.layout.shards.out_width for part in result.op.parts] == [512, 512]
    assert [part.conv.layout.blocks.act_w_tiles for part in result.op.parts] == [16, 16]


def test_a_window_is_one_k_block_where_it_is_no_longer_than_a_kernel_row(planned):
    """3x3 at stride 2: 2 x 2 taps in the first phase, more than the 3 of a kernel row; 2, 2 and 1 in the others."""
    result = planned(kernel=(3, 3))
    taps = [(part.conv.problem.kernel, len(part.conv.k_blocks)) for part in result.op.parts]
    assert taps == [((2, 2), 2), ((2, 1), 1), ((1, 2), 1), ((1, 1), 1)]
    assert result.op.parts[1].conv.k_blocks[0] == KBlock(
        kernel_rows=range(2), first_channel=0, channels=32, weight_row=0, weight_stride=32, weight_channels=32
    )
    assert [len(part.conv.k_blocks) for part in planned(kernel=(4, 4)).op.parts] == [1, 1]


def test_outputs_without_taps_have_no_k_blocks(planned):
    result = planned(kernel=(1, 2), stride=(2, 3))
    assert [len(part.conv.k_blocks) for part in result.op.parts] == [1, 0, 0, 0]
    assert [len(part.frames) for part in result.op.parts] == [2, 1, 2, 1]
    assert {len(rows) for part in result.op.parts[1:] for rows in part.weights} == {0}


TILE = 2048


def tiles(planned):
    return {name: one.size_bytes // TILE for name, one in planned.buffers().items() if one.page_bytes == TILE}


def test_an_output_in_tiles_has_its_shard_as_sticks_first(planned):
    result = planned(output_layout=Layout.TILE)
    found = tiles(result)
    assert (found["out_rows"], found["out_sticks"]) == (1, 2)  # two phases beside each other
    assert result.buffers()["out"].view_of == "output"
    assert result.buffers()["out_rows"].view_of is None
