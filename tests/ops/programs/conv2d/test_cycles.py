"""What a convolution takes: sanity rules that hold for every layer, and for small ones figures worked out by hand."""

from dataclasses import fields, replace
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from device.errors import DeviceError
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.engine import BEGIN, Slots
from device.time.stages import Stage
from ops.frame.axis import convolution_axis, transposed_axis
from ops.frame.frame import Frame
from ops.programs.actions.costs import ComputeCosts, TransferCosts
from ops.programs.conv2d.blocks import k_block_order
from ops.programs.conv2d.circular_buffers import l1_accumulation
from ops.programs.conv2d.costs import ConvCosts
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.layout import choose_cores, lay_out, scheme_alignment
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.conv2d.walk import time_conv
from ops.programs.conv2d.work import ConvWork

SPECS = [load_spec("wormhole_n150"), load_spec("blackhole_p100")]
# Figures that are easy to reckon with: links of 30 bytes a cycle; tiles of 1088 bytes are unpacked in
# 21.25 cycles, of 2048 in 40 and packed in 32; a tile is tilized in 75; DRAM answers after 400.
HAND = load_spec("wormhole_n150").replace(
    noc_hop_cycles=10,
    noc_interface_cycles=100,
    dram_access_ns=80,
    compute_unpack_bytes_per_cycle=51.2,
    compute_unpack_tile_cycles=16,
    compute_pack_bytes_per_cycle=64,
    transfer_costs_stateful_issue_cycles=20,
    transfer_costs_page_issue_cycles=45,
    transfer_costs_multicast_receiver_cycles=3,
    compute_costs_tilize_call_cycles=50,
    compute_costs_tilize_row_cycles=40,
    compute_costs_tilize_tile_cycles=3,
    compute_costs_matmul_call_cycles=10,
    compute_costs_block_cycles=100,
    compute_costs_subblock_cycles=80,
    compute_costs_reload_cycles=100,
    compute_costs_reload_tile_cycles=20,
    conv_costs_start_cycles=800,
    conv_costs_multicast_cycles=400,
)


def conv(
    spec,
    scheme=HEIGHT,
    *,
    channels=(64, 64),
    side=32,
    batch=1,
    kernel=3,
    stride=None,
    fidelity_phases=1,
    bias=True,
    **options,
):
    """A convolution with the library's blocks; with a stride a transposed one."""
    if stride is None:
        axis = convolution_axis(input_length=side, kernel=kernel, stride=1, padding=(kernel // 2,) * 2, dilation=1)
    else:
        axis = transposed_axis(
            input_length=side, kernel=kernel, stride=stride, padding=(0, 0), output_padding=0, dilation=1
        )
    problem = ConvProblem(
        frame=Frame(batch=batch, rows=axis, columns=axis),
        in_channels=channels[0],
        out_channels=channels[1],
        in_format=BFLOAT16,
        weight_format=options.pop("weight_format", BFLOAT8_B),
        out_format=BFLOAT16,
        row_major=True,
        bias=bias,
    )
    chosen = ConvOptions(**options)
    alignment = scheme_alignment(problem, scheme)
    config = choose_cores(problem, chosen, spec, scheme, alignment=alignment)
    layout = lay_out(problem, chosen, spec, config, alignment=alignment)
    blocks = k_block_order(
        config,
        layout.shards,
        layout.blocks,
        problem.kernel,
        full_inner_dim=chosen.full_inner_dim,
    )
    return ConvWork(
        problem=problem,
        options=chosen,
        layout=layout,
        k_blocks=blocks,
        fidelity_phases=fidelity_phases,
        partials_format=BFLOAT16,
        l1_accumulation=l1_accumulation(requested=chosen.packer_l1_acc, bias=bias, k_blocks=layout.blocks.k_blocks),
    )


@st.composite
def convolutions(draw, spec=None):
    spec = spec or draw(st.sampled_from(SPECS))
    return spec, {
        "scheme": draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])),
        "channels": (32 * draw(st.integers(1, 16)), 32 * draw(st.integers(1, 16))),
        "side": draw(st.integers(8, 40)),
        "kernel": draw(st.sampled_from([1, 3, 4])),
        "stride": draw(st.sampled_from([None, 2])),
        "fidelity_phases": draw(st.integers(1, 4)),
        "bias": draw(st.booleans()),
        "untilize_out": draw(st.booleans()),
        "packer_l1_acc": draw(st.booleans()),
        "weight_format": draw(st.sampled_from([BFLOAT16, BFLOAT8_B])),
    }


def total(spec, facts, **changes):
    return conv_cycles(conv(spec, **{**facts, **changes}), spec).cycles


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.data())
def test_no_cost_that_rises_makes_it_faster(drawn, data):
    spec, facts = drawn
    name = data.draw(st.sampled_from([field.name for field in fields(spec.costs_of(ConvCosts))]))
    worse = spec.replace(**{f"conv_costs_{name}": 2.0 * getattr(spec.costs_of(ConvCosts), name)})
    assert total(worse, facts) >= total(spec, facts)


@settings(max_examples=20, deadline=None)
@given(convolutions())
def test_slower_links_never_make_it_faster(drawn):
    spec, facts = drawn
    assert total(spec.replace(noc_link_share=0.5 * spec.noc.link_share), facts) >= total(spec, facts)


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.sampled_from(["act_double_buffer", "weights_double_buffer"]))
def test_double_buffering_never_slows(drawn, option):
    spec, facts = drawn
    assert total(spec, facts, **{option: True}) <= total(spec, facts) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_twice_the_batch_takes_at_most_twice_as_long(drawn):
    spec, facts = drawn
    blocks = [conv(spec, **facts, batch=batch).layout.blocks for batch in (1, 2)]
    # Tile rows that can not be cut well (a prime number of them) make small sub-blocks: that is the plan's doing.
    assume(blocks[0].subblock_h_tiles == blocks[1].subblock_h_tiles)
    overhead = 0.05 * total(spec, facts) + spec.costs_of(ConvCosts).start_cycles
    assert total(spec, facts, batch=2) <= 2 * total(spec, facts) + overhead


@settings(max_examples=40, deadline=None)
@given(convolutions(), st.data())
def test_fewer_cores_are_never_faster(drawn, data):
    spec, facts = drawn
    facts["scheme"] = HEIGHT
    fewer = spec.replace(grid_rows=data.draw(st.integers(1, spec.grid.rows - 1)))
    saved = spec.costs_of(TransferCosts).multicast_receiver_cycles * spec.grid.cores * (facts["kernel"] + 1)
    assert total(fewer, facts) >= total(spec, facts) - saved


@settings(max_examples=40, deadline=None)
@given(convolutions())
def test_sharing_dram_never_makes_it_faster(drawn):
    spec, facts = drawn
    work = conv(spec, **facts)
    assert conv_cycles(work, spec).cycles >= conv_cycles(work, spec, contention=False).cycles


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize(("fidelity_phases", "cycles"), [(1, 16), (2, 32), (3, 48), (4, 64)])
def test_cycles_of_a_tile_product(spec, fidelity_phases, cycles):
    work = conv(spec, fidelity_phases=fidelity_phases)
    shards, blocks = work.layout.shards, work.layout.blocks
    products = shards.out_row_tiles * shards.out_col_tiles * blocks.act_w_tiles * blocks.k_blocks
    busy = {one.stage: one.busy_cycles for one in conv_cycles(work, spec).slowest.stages}
    assert busy[Stage.MATH] == cycles * products


@settings(max_examples=40, deadline=None)
@given(convolutions())
def test_report_is_consistent(drawn):
    spec, facts = drawn
    work = conv(spec, **facts)
    found = conv_cycles(work, spec)
    stages = found.slowest.stages
    assert sum(one.critical_cycles for one in stages) == pytest.approx(found.cycles)
    assert all(one.busy_cycles >= 0 and one.stall_cycles >= 0 for one in stages)
    assert 0 < found.useful_flops <= found.issued_flops
    assert found.cores == work.layout.config.cores.union(work.layout.out_config.cores).num_cores()
    assert found.bound_by in {one.stage for one in stages}
    for group in found.groups:
        assert sum(one.critical_cycles for one in group.stages) == pytest.approx(group.cycles)
    assert sum(one.dram_bytes for one in found.moved) == found.dram_read_bytes
    assert sum(one.network_bytes for one in found.moved) == found.network_bytes


@pytest.mark.parametrize("scheme", [HEIGHT, BLOCK, WIDTH])
@pytest.mark.parametrize("channels", [(256, 256), (256, 128), (256, 32), (32, 256), (64, 96), (512, 40)])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_all_cores_together_multiply_what_is_issued(spec, scheme, channels):
    found = conv_cycles(conv(spec, scheme, channels=channels, side=20, fidelity_phases=2), spec)
    products = found.issued_flops // (2 * 32**3)
    busy = [(group.cores.num_cores(), one.busy_cycles) for group in found.groups for one in group.stages
            if one.stage is Stage.MATH]  # fmt: skip
    assert sum(cores * cycles for cores, cycles in busy) == products * 2 * spec.compute.phase_cycles


def test_cores_without_outputs_only_gather_and_tilize():
    work = conv(SPECS[0], BLOCK, channels=(256, 64))
    assert (work.layout.config.channel_cores, work.layout.out_config.channel_cores) == (8, 2)
    found = conv_cycles(work, SPECS[0])
    by_cores = {str(group.cores): {one.stage: one.busy_cycles for one in group.stages} for group in found.groups}
    assert list(by_cores) == ["{[0-0 - 1-0]}", "{[0-1 - 1-7]}", "{[2-0 - 7-7]}"]
    readers, receivers, tilizers = by_cores.values()
    assert readers[Stage.WEIGHT_READER] > 0 == receivers.get(Stage.WEIGHT_READER, 0)
    assert tilizers[Stage.TILIZE] == receivers[Stage.TILIZE] > 0
    assert tilizers[Stage.MATH] == 0 < receivers[Stage.MATH]


def test_readers_of_the_last_core_have_less_to_read():
    work = conv(HAND, HEIGHT, side=20, force_split_reader=False)  # 400 outputs, 32 for each of 13 cores
    found = conv_cycles(work, HAND)
    reading = {str(group.cores): group.stages for group in found.groups}
    assert list(reading) == ["{[0-0 - 0-0]}", "{[1-0 - 7-0], [0-1 - 3-1]}", "{[4-1 - 4-1]}"]
    first, others, last = (next(one for one in stages if one.stage is Stage.READER) for stages in reading.values())
    assert first.busy_cycles == others.busy_cycles == 3 * (100 + 32 * 20)
    assert last.busy_cycles == others.busy_cycles * (400 - 12 * 32) / 32
    assert last.busy_cycles + last.stall_cycles == others.busy_cycles + others.stall_cycles


def test_each_core_of_a_row_sends_its_own_blocks_alone():
    work = conv(HAND, BLOCK, channels=(256, 256), kernel=3)
    blocks = work.layout.blocks
    sent_bytes, receivers = blocks.act_h_tiles * blocks.act_w_tiles * 2048, work.layout.out_config.channel_cores
    sent = sent_bytes / 30 + 400 / 2 + ceil(sent_bytes / 8192) * 3 * receivers
    busy = {one.stage: one.busy_cycles for one in conv_cycles(work, HAND).slowest.stages}
    assert busy[Stage.ACT_MULTICAST] == pytest.approx(3 * sent)  # one block for each kernel row


def test_inserted_zeros_cost_the_square_of_the_stride():
    spec = SPECS[0]
    found = conv_cycles(conv(spec, stride=2, kernel=2, side=32), spec)
    assert found.issued_flops == pytest.approx(4 * found.useful_flops, rel=0.15)


def test_bytes_of_weights_and_activations():
    spec = SPECS[0]
    height, block = (conv_cycles(conv(spec, scheme, channels=(256, 256)), spec) for scheme in (HEIGHT, BLOCK))
    weights = (256 // 32) ** 2 * 9 * BFLOAT8_B.tile_bytes
    bias = 256 // 32 * BFLOAT8_B.tile_bytes
    assert height.dram_read_bytes == height.network_bytes == weights + bias
    assert block.dram_read_bytes == weights + bias
    activations = 32 * (256 // 32) * 9 * BFLOAT16.tile_bytes  # 32 tile rows, all columns of the window matrix
    assert block.network_bytes == weights + bias + activations
    readers, holders = block.moved
    assert (readers.cores.num_cores(), readers.dram_bytes, readers.network_bytes) == (8, weights + bias, weights + bias)
    assert (holders.cores.num_cores(), holders.dram_bytes, holders.network_bytes) == (64, 0, activations)
    assert height.moved[0].cores.num_cores() == 1


def test_only_the_first_core_reads_weights_of_height_shards():
    spec = SPECS[0]
    sender, others = conv_cycles(conv(spec), spec).groups
    assert sender.cores.num_cores() == 1
    reading = [{one.stage: one for one in group.stages}[Stage.WEIGHT_READER] for group in (sender, others)]
    assert reading[0].busy_cycles > 0
    assert reading[1].busy_cycles == 0
    assert reading[1].stall_cycles > 0
    assert sender.cycles < others.cycles  # which get every block later


def test_resident_weights_are_read_once():
    spec = SPECS[0]
    whole = conv_cycles(conv(spec, side=64), spec)
    cut = conv_cycles(conv(spec, side=64, act_block_h_override=32), spec)
    assert cut.dram_read_bytes == whole.dram_read_bytes
    block, block_cut = (
        conv_cycles(conv(spec, BLOCK, side=64, act_block_h_override=rows), spec).dram_read_bytes for rows in (0, 32)
    )
    assert block_cut > 3 * block


def test_untilized_outputs_and_a_bias_take_longer():
    for spec in SPECS:
        plain = total(spec, {"bias": False})
        assert total(spec, {"bias": True}) > plain
        assert total(spec, {"bias": False, "untilize_out": True}) > plain


def test_an_older_tilize_takes_longer():
    spec = SPECS[1]
    costs = spec.costs_of(ComputeCosts)
    older = spec.with_costs(replace(costs, tilize_tile_cycles=costs.tilize_tile_cycles + 35))
    assert total(older, {"side": 128}) > total(spec, {"side": 128})


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        *((HEIGHT, name) for name in ("act", "act_second_reader", "weights")),
        *((BLOCK, name) for name in ("act_row_major", "act_tilized", "act", "weights")),
    ],
)
def test_a_model_that_loses_a_block_is_found_out(monkeypatch, scheme, name):
    fill = Slots.fill

    def fill_twice(slots, moment):
        for _ in range(2 if slots.name == name else 1):
            fill(slots, moment)

    monkeypatch.setattr(Slots, "fill", fill_twice)
    monkeypatch.setattr(Slots, "reserve", lambda slots: BEGIN)
    work = conv(SPECS[0], scheme, side=64, force_split_reader=True)
    with pytest.raises(DeviceError, match=f"conv2d: circular buffer '{name}' still holds"):
        time_conv(work, SPECS[0])


MULTIPLY = (
    16 + (100 + (21.25 - 16) + 10) + (80 + 32)
)  # one product; streaming a tile in hides all but 0.75 of the packing


def test_a_height_sharded_program_by_hand():
    """32 to 32 channels of 8x8 pixels under a kernel of one: two cores, one tile row, one K block each."""
    work = conv(HAND, HEIGHT, channels=(32, 32), side=8, kernel=1, bias=False, force_split_reader=False)
    # The weights come last. Start; one tile of 1088 bytes from DRAM; its multicast to two cores, of which half the
    # handshake passes at the sender; then half of the rings, 11 links, and the other half of the handshake.
    sent = 800 + (400 + 45) + (200 + 2 * 3 + 1088 / 30)
    arrived = sent + 11 * 10 + 200
    # The activations are there before: a read of 32 sticks, 20 cycles apart, and the tilizing of one tile.
    tilized = 800 + (100 + 32 * 20) + (50 + 40 + 75)
    assert sent < tilized < arrived
    sender, others = conv_cycles(work, HAND).groups
    assert others.cycles == pytest.approx(arrived + MULTIPLY, rel=1e-12)
    assert sender.cycles == pytest.approx(tilized + MULTIPLY, rel=1e-12)


def test_a_width_sharded_program_by_hand():
    """The same on one core: two tile rows, of which one is tilized while the next is read."""
    work = conv(HAND, WIDTH, channels=(32, 32), side=8, kernel=1, bias=False, force_split_reader=False)
    tilized = 800 + 2 * (100 + 32 * 20) + (50 + 40 + 75)
    # Two products; the column of weights stays while two activation tiles of 40 cycles stream past.
    multiply = 2 * 16 + (100 + (2 * 40 - 2 * 16) + 10) + (80 + 2 * 32)
    assert conv_cycles(work, HAND).cycles == pytest.approx(tilized + multiply, rel=1e-12)


def test_a_block_sharded_program_by_hand():
    """The same on two rows of four cores: each tilizes 8 channels, then all send in turn, one K block each."""
    work = conv(HAND, BLOCK, channels=(32, 32), side=8, kernel=1, bias=False, packer_l1_acc=True)
    assert work.layout.blocks.k_blocks == 4
    tilized = 800 + (100 + 32 * 20) + (50 + 40 + 75)
    # The first block of 2048 bytes is sent after the tilizing, half of a row's ring away, to the one core with outputs.
    first = tilized + (200 + 3 + 2048 / 30) + (5 * 10 + 200) + MULTIPLY
    # Each buffer holds one block: weights and activations follow when the product before is done. Weights take longer:
    # a core reads a tile and sends it down a column of two. The core below has each block later, and says soon enough
    # that it has room for the next.
    weights = (400 + 45) + (200 + 2 * 3 + 1088 / 30)
    activations = 5 * 10 + (200 + 3 + 2048 / 30) + (5 * 10 + 200)
    assert weights > activations
    # Without a bias the last block fetches what the packer has added up, and packs in its shadow.
    reload = 100 + 20 - 0.75
    above = first + 3 * (weights + MULTIPLY) + reload
    assert conv_cycles(work, HAND).cycles == pytest.approx(above + 6 * 10 + 200, rel=1e-12)


def test_readers_that_reuse_activations_read_one_kernel_row_again():
    work = conv(HAND, HEIGHT, channels=(32, 32), side=64, batch=4, activation_reuse=True)
    assert (work.layout.blocks.act_h_tiles, work.layout.blocks.k_blocks, work.layout.split_reader) == (8, 1, True)
    busy = {one.stage: one.busy_cycles for one in conv_cycles(work, HAND).slowest.stages}
    # Four tile rows for each reader, two of them a row of the image: whole windows, then their last kernel row.
    expected = 2 * (100 + 3 * 32 * 20) + 2 * (100 + 32 * 20)
    assert busy[Stage.READER] == busy[Stage.SECOND_READER] == expected
    assert busy[Stage.TILIZE] == 8 * (40 + 9 * 75)


def test_a_reader_that_reuses_waits_until_its_row_of_the_image_is_tilized():
    work = conv(HAND, HEIGHT, channels=(32, 32), side=64, batch=4, activation_reuse=True, bias=False)
    full, again, tilized = 100 + 3 * 32 * 20, 100 + 32 * 20, 40 + 9 * 75
    # Two tile rows are read and tilized, the second reader's after the first's; while those of the second row are
    # tilized, the first reader waits for its own, then for nothing more.
    second_row_tilized = 800 + 2 * full + tilized
    assert 800 + full + 2 * tilized < 800 + 2 * full
    reader = time_conv(work, HAND).sender.reader
    assert reader.waited_cycles == tilized
    assert reader.now.cycles == second_row_tilized + 2 * again


SMALL = {"channels": (32, 32), "side": 8, "kernel": 1}  # one K block


@pytest.mark.parametrize(
    ("scheme", "without", "helps", "facts", "useless"),
    [
        # Cores send their blocks ahead, unless the weights are waited for anyway.
        (BLOCK, {}, {"act_double_buffer": True}, {"side": 64}, {"channels": (128, 1024), "side": 8}),
        # Blocks are read ahead, unless there is a single one.
        (HEIGHT, {}, {"act_double_buffer": True}, {"side": 128, "channels": (32, 32)}, SMALL),
        # Weights are read ahead, unless there is a single block of them.
        (HEIGHT, {}, {"weights_double_buffer": True}, {"side": 64}, SMALL),
        # Two readers share the rows of a block, unless it has only one row of tiles.
        (BLOCK, {"force_split_reader": False}, {"force_split_reader": True}, {"side": 64}, SMALL),
        # The packer adds partial sums, unless there are none.
        (HEIGHT, {}, {"packer_l1_acc": True}, {"side": 64}, SMALL),
        # Blocks of many rows need weights less often, unless a core has one row of tiles.
        (BLOCK, {"act_block_h_override": 32}, {}, {"side": 64}, SMALL),
        # Indices in L1 need not be fetched, unless the weights take longer.
        (BLOCK, {"config_tensors_in_dram": True}, {}, {"side": 64}, SMALL | {"scheme": HEIGHT}),
    ],
    ids=[
        "act_sent_ahead",
        "act_read_ahead",
        "weights_double_buffer",
        "split_reader",
        "packer_l1_acc",
        "act_block_h",
        "config_in_l1",
    ],
)
def test_options_help_where_they_can_and_only_there(scheme, without, helps, facts, useless):
    spec = SPECS[0]
    assert total(spec, {"scheme": scheme} | facts, **helps) < total(spec, {"scheme": scheme} | facts, **without)
    assert total(spec, {"scheme": scheme} | useless, **helps) == total(spec, {"scheme": scheme} | useless, **without)


def test_a_wider_dram_helps_many_readers_of_weights_and_not_one():
    spec = SPECS[0]
    narrow = spec.replace(dram_bank_bytes_per_second=4e9)
    many, one = {"scheme": BLOCK, "channels": (256, 256)}, {"scheme": HEIGHT}
    assert total(spec, many) < total(narrow, many)
    assert total(spec, one) == total(narrow, one)
