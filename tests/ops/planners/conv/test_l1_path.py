"""The L1 path: where a call lies, and the steps it takes."""

from dataclasses import replace

import pytest

from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType
from device.numbers.formats import BFLOAT8_B, FLOAT32
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ComputeConfig
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.operands import operand_names, partition_call, read_layout, upload_weights
from ops.planners.conv.plan import builder_of
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights
from tests.build import operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box, in_box

SPEC = load_spec("wormhole_n150")
SHARDED = in_box(HEIGHT, (32, 64), 2)
USUAL = {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1), "shard_layout": HEIGHT}


def call(place=L1_MEMORY_CONFIG, *, bias=False, out_channels=64, **changes):
    """8x8 pixels of 64 channels become 16x16 of 64."""
    return sized_call((8, 8), (64, out_channels), place=place, with_bias=bias, **USUAL | changes)


def partition(*args, **changes):
    return partition_call(call(*args, **changes), SPEC)


def cores(partitioned):
    config = partitioned.layout.config
    return config.scheme, config.nhw_cores, config.channel_cores


@pytest.mark.parametrize(
    ("place", "changes", "wanted"),
    [
        (L1_MEMORY_CONFIG, {}, (HEIGHT, 8, 1)),
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
    partitioned = partition(place, **changes)
    assert cores(partitioned) == wanted
    assert (partitioned.input_memory == place) is not partitioned.reshards


@pytest.mark.parametrize(
    ("scheme", "out_channels", "columns"), [(HEIGHT, 65, 96), (BLOCK, 65, 96), (WIDTH, 65, 96), (BLOCK, 600, 672)]
)
def test_weights_have_whole_columns_for_every_core(scheme, out_channels, columns):
    """600 channels are 19 tiles, which seven cores share in threes."""
    layout = read_layout(partition(shard_layout=scheme, out_channels=out_channels))
    assert (layout.scheme, layout.padded_out_channels) == (scheme, columns)
    assert (layout.in_channels, layout.out_channels, layout.kernel, layout.mirror) == (64, out_channels, (3, 3), True)


def test_only_what_is_on_the_host_is_uploaded():
    def uploads(made):
        builder = builder_of(made, SPEC)
        upload_weights(builder, partition_call(made, SPEC))
        return [(step.tensor, step.source, type(step.op)) for step in builder.steps]

    both = call(bias=True)
    weight = ("weight.prepared", "weight", PrepareWeights)
    bias = ("bias.prepared", "bias", PrepareBias)
    assert uploads(both) == [weight, bias]
    assert uploads(call()) == [weight]
    on_device = replace(both, weight=replace(both.weight, on_host=False))
    named = replace(on_device, weight=replace(on_device.weight, name="w"))
    assert uploads(named) == [bias]
    assert operand_names(both) == ("weight.prepared", "bias.prepared")
    assert operand_names(on_device) == ("weight", "bias.prepared")
    assert operand_names(named) == ("w", "bias.prepared")
    assert operand_names(call()) == ("weight.prepared",)


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
    monkeypatch.setattr("ops.planners.conv.l1_path.reader_indices_refusal", lambda *_, **__: "Reader indices")
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
    assert sizes["output"] == halo.op.plan.output.buffer(spec).bank_bytes


def steps_of(made):
    builder = builder_of(made, SPEC)
    result = l1_path(builder, made, builder.tensor("input"))
    text = []
    for step in builder.steps:
        match step:
            case Operation():
                text.append(step.name.removesuffix("DeviceOperation"))
            case Free() | Allocate() | Relocate():
                text.append((type(step).__name__, step.tensor))
    return text, result


MOVED = ("Relocate", "halo")
UPLOAD = ("Allocate", "weight.prepared")


def test_steps_of_a_sharded_input():
    assert steps_of(call(SHARDED))[0] == [UPLOAD, "Halo", MOVED, "Conv2d", ("Free", "halo")]
    assert steps_of(call(SHARDED, deallocate_activation=True, reallocate_halo_output=False))[0] == [
        UPLOAD, "Halo", ("Free", "input"), "Conv2d", ("Free", "halo"),
    ]  # fmt: skip


def test_an_input_that_was_sharded_here_is_released():
    text = steps_of(call(DRAM_MEMORY_CONFIG))[0]
    assert text[-1] == ("Free", "input.sharded")
    early = steps_of(call(DRAM_MEMORY_CONFIG, deallocate_activation=True))[0]
    assert early.index(("Free", "input.sharded")) == early.index("Halo") + 1
    assert ("Free", "input") not in early


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
