"""The L1 path: where a call and its weights lie, and the steps it takes."""

from dataclasses import replace

import pytest

from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, FLOAT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES, ComputeConfig, ConvConfig
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.operands import partition_call, read_layout
from ops.planners.conv.plan import builder_of, plan_convolution
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from tests.build import L1_FULL, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box, in_box

SPEC = load_spec("wormhole_n150")
SHARDED = in_box(HEIGHT, (32, 64), 2)
USUAL = {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1), "shard_layout": HEIGHT}


def call(place=L1_MEMORY_CONFIG, *, bias=False, out_channels=64, **changes):
    """8x8 pixels of 64 channels become 16x16 of 64."""
    return sized_call((8, 8), (64, out_channels), place=place, with_bias=bias, **USUAL | changes)


@pytest.mark.parametrize(
    ("place", "changes", "wanted"),
    [
        (L1_MEMORY_CONFIG, {}, (HEIGHT, 8, 1)),
        (None, {}, (HEIGHT, 8, 1)),
        # shards stay where they are, whatever scheme is asked for, unless they may be sharded anew
        (SHARDED, {"shard_layout": BLOCK}, (HEIGHT, 2, 1)),
        (SHARDED, {"reshard_if_not_optimal": True}, (HEIGHT, 8, 1)),
        (SHARDED, {"override_sharding_config": True, "core_grid": box(4)}, (HEIGHT, 4, 1)),
        # 12 channels on a core are no multiple of 8, so the alignment is 32; 8 channels stay
        (in_box(BLOCK, (32, 12), 6, 2), {}, (HEIGHT, 8, 1)),
        (in_box(BLOCK, (32, 8), 8, 2), {}, (BLOCK, 2, 8)),
    ],
)
def test_cores(place, changes, wanted):
    partitioned = partition_call(call(place, **changes), SPEC)
    config = partitioned.layout.config
    assert (config.scheme, config.nhw_cores, config.channel_cores) == wanted
    assert (partitioned.input_memory == place) is not partitioned.reshards


@pytest.mark.parametrize(
    ("scheme", "layout", "shape", "shards"),
    [
        (HEIGHT, Layout.ROW_MAJOR, (1, 1, 600, 9), (320, 16)),  # 640 rows on two cores
        (BLOCK, Layout.ROW_MAJOR, (4, 35, 6, 6), (448, 8)),  # 896 rows on two rows of cores
        (WIDTH, Layout.ROW_MAJOR, (3, 20, 7, 33), (420, 64)),  # all rows as they are; 64 channels in tiles
        (WIDTH, Layout.TILE, (3, 20, 7, 33), (448, 64)),
    ],
)
@pytest.mark.parametrize("on_host", [False, True], ids=["device", "host"])
def test_shards_hold_the_rows_and_channels_of_the_tensor(scheme, layout, shape, shards, on_host):
    """Whatever the call says: 36 rows of 8 channels, whose 64 outputs lie on two cores."""
    made = sized_call((6, 6), (8, 32), conv_config=ConvConfig(shard_layout=scheme), slice_config=L1_FULL)
    given = replace(operand(*shape, place=DRAM_MEMORY_CONFIG, layout=layout), on_host=on_host)
    place = partition_call(replace(made, input=given), SPEC).input_memory
    assert (place.memory_layout, place.shard_spec.shape) == (scheme, shards)


def test_weights_are_padded_for_the_width_that_a_shard_has():
    """8 channels of a call fill 16 where the tensor has 9, and 32 in shards of 32 that stay where they are."""
    made = sized_call((6, 6), (8, 32), conv_config=ConvConfig(shard_layout=HEIGHT), slice_config=L1_FULL)
    chosen = partition_call(made, SPEC).layout
    more = replace(made, input=operand(1, 1, 36, 9, place=DRAM_MEMORY_CONFIG))
    assert (chosen.shards.in_channels, partition_call(more, SPEC).layout.shards.in_channels) == (8, 16)
    place = in_box(HEIGHT, (32, 32), chosen.config.cores.num_cores())
    config = ConvConfig(shard_layout=HEIGHT, reshard_if_not_optimal=True)
    stays = partition_call(replace(made, input=operand(1, 1, 36, 32, place=place), conv_config=config), SPEC)
    assert (stays.reshards, stays.layout.shards.in_channels) == (False, 32)


@pytest.mark.parametrize(
    ("scheme", "out_channels", "columns"), [(HEIGHT, 65, 96), (BLOCK, 65, 96), (WIDTH, 65, 96), (BLOCK, 600, 672)]
)
def test_weights_have_whole_columns_for_every_core(scheme, out_channels, columns):
    """600 channels are 19 tiles, which seven cores share in threes."""
    layout = read_layout(partition_call(call(shard_layout=scheme, out_channels=out_channels), SPEC))
    assert (layout.scheme, layout.padded_out_channels) == (scheme, columns)
    assert (layout.in_channels, layout.out_channels, layout.kernel, layout.mirror) == (64, out_channels, (3, 3), True)


def test_activations_are_reused_by_conv2d_alone_and_then_from_single_buffers():
    """On 64 cores of two tiles of rows, which images of one tile of columns leave to reuse."""
    reuse = {"enable_activation_reuse": True, "enable_act_double_buffer": True, "shard_layout": HEIGHT}
    made = sized_call((128, 32), (64, 64), place=L1_MEMORY_CONFIG, padding=(1, 1, 1, 1), **reuse)
    plain, reusing = (partition_call(changed, SPEC).options for changed in (made, replace(made, rules=CONV2D)))
    assert (plain.activation_reuse, plain.act_double_buffer) == (False, True)
    assert (reusing.activation_reuse, reusing.act_double_buffer) == (True, False)


def operations(made, spec=SPEC):
    """The operations of the path by their names."""
    builder = builder_of(made, spec)
    l1_path(builder, made, builder.tensor("input"))
    return {step.name.removesuffix("DeviceOperation"): step for step in builder.steps if isinstance(step, Operation)}


def test_a_halo_of_shards_in_dram_is_refused_for_its_place_and_not_for_l1():
    """Its output would lie in DRAM, too, however much that is."""
    halo = operations(call(replace(SHARDED, buffer_type=BufferType.DRAM)))["Halo"]
    assert halo.refused.startswith("Only L1 buffers can have an associated circular buffer!\n")
    assert [output.buffer.buffer_type for output in halo.outputs] == [BufferType.DRAM]


@pytest.mark.parametrize(
    ("place", "changes", "refused"),
    [
        (SHARDED, {}, ""),
        # 64 channels on two cores are 32 each; shards of 64, of which one is empty, do not match them
        (in_box(WIDTH, (64, 32), 2), {}, ""),
        (in_box(WIDTH, (64, 64), 2), {}, "The width of tensor a needs to match the height of tensor b\n"),
        # a tile of channels under nine taps can not be cut in two
        (L1_MEMORY_CONFIG, {"shard_layout": WIDTH, "act_block_w_div": 2}, "The width of tensor a needs to match the"),
    ],
)
def test_a_program_that_can_not_be_built_is_planned_as_refused(place, changes, refused):
    conv = operations(call(place, **changes))["Conv2d"]
    assert (conv.refused or "").startswith(refused)
    assert bool(conv.refused) is bool(refused)


@pytest.mark.parametrize(("scheme", "unfinished"), [(HEIGHT, True), (WIDTH, False)])
def test_reader_indices_are_counted_before_an_activation_is_written_unless_by_width(scheme, unfinished, monkeypatch):
    monkeypatch.setattr("ops.programs.halo.plan.reader_indices_refusal", lambda *_, **__: "Reader indices")
    conv = operations(call(shard_layout=scheme, activation=("relu_min", (0.5,))))["Conv2d"]
    assert (conv.refused is None) is unfinished


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_what_a_halo_aligns_sticks_to_is_a_figure_of_the_device(alignment_bytes, stick_bytes):
    """24 channels of bfloat16 are 48 bytes."""
    spec = SPEC.replace(l1_alignment_bytes=alignment_bytes)
    rows = operand(1, 1, 64, 24, place=in_box(HEIGHT, (32, 24), 2))
    halo = operations(call(input=rows, weight=operand(24, 64, 3, 3), in_channels=24), spec)["Halo"]
    sizes = {buffer.name: buffer.size_bytes for buffer in halo.circular_buffers}
    assert (sizes["input"], sizes["padding_stick_0"]) == (32 * stick_bytes, stick_bytes)


def test_programs_are_told_apart_by_all_that_they_are_made_of():
    def keys(**changes):
        return [step.key for step in operations(call(SHARDED, **changes)).values()]

    plain = keys()
    assert plain == keys() == keys(mirror_kernel=False)
    changes = [
        {"bias": True},
        {"out_format": FLOAT32},
        {"compute_config": ComputeConfig(fidelity_phases=2)},
        {"activation": ("relu", ())},
        {"config_tensors_in_dram": True},
        {"weights_format": BFLOAT8_B},
    ]
    assert len({plain[-1], *(keys(**change)[-1] for change in changes)}) == len(changes) + 1


BIG = 1 << 20


def phase_call(*, stride=(2, 2), kernel=(2, 2), place=L1_MEMORY_CONFIG, channels=(64, 32), phases=True, **more):
    rules = CONV_TRANSPOSE2D_BY_PHASES if phases else CONV_TRANSPOSE2D
    return sized_call((16, 16), channels, kernel, rules=rules, place=place, stride=stride, **more)


def planned(arguments):
    return plan_convolution(arguments, SPEC, free_l1_bytes=BIG)


def steps(plan):
    """What a plan does, without how: names of operations, of what is allocated and of what is released."""
    return [
        step.name.removeprefix("Phase") if isinstance(step, Operation) else (type(step).__name__, step.tensor)
        for step in plan.steps
    ]


@pytest.mark.parametrize("place", [L1_MEMORY_CONFIG, DRAM_MEMORY_CONFIG], ids=["L1", "DRAM"])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_a_stride_of_one_has_the_plan_of_the_frame(place, kernel):
    frame, phase = (planned(phase_call(stride=(1, 1), kernel=kernel, place=place, phases=one)) for one in (False, True))
    assert phase == frame


@pytest.mark.parametrize("scheme", [None, *("HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED")])
@pytest.mark.parametrize("layout", [Layout.TILE, Layout.ROW_MAJOR])
def test_steps_and_output_are_those_of_the_frame(scheme, layout):
    config = ConvConfig(shard_layout=scheme and TensorMemoryLayout[scheme], output_layout=layout)
    frame, phase = (planned(phase_call(phases=one, conv_config=config)) for one in (False, True))
    assert steps(phase) == steps(frame)
    assert phase.tensors["output"] == frame.tensors["output"]
    assert phase.tensors["halo"].shape[-2] < frame.tensors["halo"].shape[-2]
    assert any(isinstance(step.op, PhaseConv2dOp) for step in phase.steps if isinstance(step, Operation))


def test_block_floats_have_no_rows():
    config = ConvConfig(output_layout=Layout.ROW_MAJOR)
    plan = planned(replace(phase_call(conv_config=config), out_format=BFLOAT8_B))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert refused.startswith("Only TILE layout is supported for BFLOAT8_B dtype!")


def test_width_blocks_are_whole_tiles():
    config = ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED, act_block_w_div=2)
    plan = planned(phase_call(kernel=(4, 4), conv_config=config))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert "whole tiles" in refused
