"""The L1 path: where a call lies, and the steps it takes."""

from dataclasses import replace

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ComputeConfig, ConvConfig, Operand
from ops.planners.conv.l1_path import halo_arguments, l1_path
from ops.planners.conv.operands import operand_names, output_spec, partition_call, upload_weights, weights_layout
from ops.planners.conv.plan import builder_of, finished
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights
from tests.build import sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

SPEC = load_spec("wormhole_n150")


def call(place=L1_MEMORY_CONFIG, *, bias=False, config=None, out_channels=64, **changes):
    """8x8 pixels of 64 channels become 16x16 of 64."""
    usual = {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}
    usual["conv_config"] = config or ConvConfig(shard_layout=HEIGHT)
    return sized_call((8, 8), (64, out_channels), place=place, with_bias=bias, **usual | changes)


def cores(partitioned):
    config = partitioned.layout.config
    return config.scheme, config.nhw_cores, config.channel_cores


SHARDED = in_box(HEIGHT, (32, 64), 2)


def test_a_sharded_input_stays_where_it_is():
    """Even if the config asks for another scheme, and on cores that the library would not choose."""
    partitioned = partition_call(call(SHARDED, config=ConvConfig(shard_layout=BLOCK)), SPEC)
    assert cores(partitioned) == (HEIGHT, 2, 1)
    assert partitioned.input_memory == SHARDED
    assert cores(partition_call(call(), SPEC)) == (HEIGHT, 8, 1)


@pytest.mark.parametrize("flag", ["reshard_if_not_optimal", "override_sharding_config"])
def test_unless_it_may_be_sharded_anew(flag):
    grid = in_box(HEIGHT, (32, 64), 4).shard_spec.grid if flag == "override_sharding_config" else None
    partitioned = partition_call(
        call(SHARDED, config=ConvConfig(shard_layout=HEIGHT, core_grid=grid, **{flag: True})), SPEC
    )
    assert cores(partitioned) == (HEIGHT, 4 if grid else 8, 1)
    assert partitioned.input_memory != SHARDED


def test_shards_of_odd_widths_are_sharded_anew():
    """12 channels on a core are no multiple of 8, so the alignment is 32; 8 channels stay."""
    odd = in_box(BLOCK, (32, 12), 6, 2)
    assert cores(partition_call(call(odd, config=ConvConfig(shard_layout=HEIGHT)), SPEC)) == (HEIGHT, 8, 1)
    even = in_box(BLOCK, (32, 8), 8, 2)
    assert cores(partition_call(call(even), SPEC)) == (BLOCK, 2, 8)


def test_the_library_chooses_if_nobody_does():
    assert cores(partition_call(call(config=ConvConfig()), SPEC))[0] in (HEIGHT, BLOCK, WIDTH)


def test_an_input_on_the_host_has_no_place_yet():
    given = call(SHARDED)
    hosted = replace(given, input=replace(given.input, on_host=True))
    assert cores(partition_call(hosted, SPEC)) == (HEIGHT, 8, 1)


@pytest.mark.parametrize(
    ("scheme", "out_channels", "columns"), [(HEIGHT, 65, 96), (BLOCK, 65, 96), (WIDTH, 65, 96), (BLOCK, 600, 672)]
)
def test_weights_have_whole_columns_for_every_core(scheme, out_channels, columns):
    """600 channels are 19 tiles, which seven cores share in threes."""
    layout = weights_layout(
        partition_call(call(config=ConvConfig(shard_layout=scheme), out_channels=out_channels), SPEC)
    )
    assert (layout.scheme, layout.padded_out_channels) == (scheme, columns)
    assert (layout.in_channels, layout.out_channels, layout.kernel, layout.mirror) == (64, out_channels, (3, 3), True)


def test_weights_follow_the_channel_cores_and_the_dtype():
    config = ConvConfig(shard_layout=BLOCK, weights_format=BFLOAT8_B)
    layout = weights_layout(partition_call(call(config=config, mirror_kernel=False), SPEC))
    assert (layout.channel_shards, layout.padded_in_channels, layout.k_block_rows) == (8, 64, 32)
    assert (layout.data_format, layout.mirror) == (BFLOAT8_B, False)


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
    assert uploads(replace(on_device, weight=replace(on_device.weight, name="w"))) == [bias]
    assert operand_names(both) == ("weight.prepared", "bias.prepared")
    assert operand_names(on_device) == ("weight", "bias.prepared")
    assert operand_names(replace(on_device, weight=replace(on_device.weight, name="w"))) == ("w", "bias.prepared")
    assert operand_names(call()) == ("weight.prepared",)


def test_a_halo_of_shards_in_dram_is_refused_for_its_place_and_not_for_l1():
    """Its output would lie in DRAM, too, however much that is."""
    place = replace(in_box(HEIGHT, (32, 64), 2), buffer_type=BufferType.DRAM)
    builder = builder_of(made := call(place), SPEC)
    l1_path(builder, made, builder.tensor("input"))
    halo = next(step for step in builder.steps if isinstance(step, Operation) and step.name == "HaloDeviceOperation")
    assert halo.refused.startswith("Only L1 buffers can have an associated circular buffer!\n")
    assert [one.buffer.buffer_type for one in halo.outputs] == [BufferType.DRAM]


def test_width_shards_that_are_wider_than_the_weights_are_padded_for_are_refused():
    """64 channels on two cores are 32 each; shards of 64, of which one is empty, do not match them."""
    for width, refused in ((32, None), (64, "The width of tensor a needs to match the height of tensor b")):
        builder = builder_of(made := call(in_box(WIDTH, (64, width), 2)), SPEC)
        l1_path(builder, made, builder.tensor("input"))
        conv = next(step for step in builder.steps if isinstance(step, Operation) and "Conv2d" in step.name)
        assert (conv.refused and conv.refused.splitlines()[0]) == refused


@pytest.mark.parametrize(("scheme", "unfinished"), [(HEIGHT, True), (WIDTH, False)])
def test_reader_indices_are_counted_before_an_activation_is_written_unless_by_width(scheme, unfinished, monkeypatch):
    monkeypatch.setattr("ops.planners.conv.l1_path.reader_indices_refusal", lambda *_, **__: "Reader indices")
    config = ConvConfig(shard_layout=scheme, activation=("relu_min", (0.5,)))
    builder = builder_of(made := call(config=config), SPEC)
    l1_path(builder, made, builder.tensor("input"))
    conv = next(step for step in builder.steps if isinstance(step, Operation) and "Conv2d" in step.name)
    assert (conv.refused is None) is unfinished


def test_the_halo_reads_the_shards_there_are():
    got = halo_arguments(partition_call(call(SHARDED, layout=Layout.TILE), SPEC), SPEC)
    assert (got.input_rows, got.shard_width, got.output_rows, got.nhw_cores) == (32, 64, 128, 2)
    assert (got.tiled, got.data_format, got.scheme) == (True, BFLOAT16, HEIGHT)


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_what_a_halo_aligns_sticks_to_is_a_figure_of_the_device(alignment_bytes, stick_bytes):
    """24 channels of bfloat16 are 48 bytes."""
    spec = SPEC.replace(l1_alignment_bytes=alignment_bytes)
    rows = TensorSpec((1, 1, 64, 24), BFLOAT16, Layout.ROW_MAJOR, in_box(HEIGHT, (32, 24), 2))
    weight = Operand(spec=TensorSpec((24, 64, 3, 3), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    narrow = replace(call(), input=Operand(spec=rows, on_host=False), weight=weight, in_channels=24)
    builder = builder_of(narrow, spec)
    l1_path(builder, narrow, builder.tensor("input"))
    halo = next(step for step in builder.steps if isinstance(step, Operation) and step.name == "HaloDeviceOperation")
    sizes = {one.name: one.size_bytes for one in halo.circular_buffers}
    assert (sizes["input"], sizes["padding_stick_0"]) == (32 * stick_bytes, stick_bytes)
    assert sizes["output"] == halo.op.plan.output.buffer(spec).bank_bytes


def test_output():
    made = output_spec(partition_call(call(out_format=FLOAT32), SPEC))
    assert (made.shape, made.padded_shape, made.layout) == ((1, 1, 256, 64), (1, 1, 256, 64), Layout.TILE)
    assert made.data_format is FLOAT32
    assert made.memory_config.shard_spec.shape == (32, 64)
    rows = ConvConfig(shard_layout=WIDTH, output_layout=Layout.ROW_MAJOR)
    small = replace(call(config=rows, out_channels=33), input_height=3, input_width=3)
    made = output_spec(partition_call(small, SPEC))
    assert (made.shape, made.padded_shape, made.layout) == ((1, 1, 36, 33), (1, 1, 64, 64), Layout.ROW_MAJOR)


@pytest.mark.parametrize(("layout", "columns"), [(Layout.TILE, 544), (Layout.ROW_MAJOR, 576)])
def test_only_rows_fill_the_last_shard_of_a_block_output(layout, columns):
    """17 tiles of channels on six of eight cores, three on each: the last one has two."""
    config = ConvConfig(shard_layout=BLOCK, output_layout=layout)
    made = output_spec(partition_call(call(config=config, out_channels=544), SPEC))
    assert made.memory_config.shard_spec.shape[1] == 96
    assert made.padded_shape[-1] == columns


def steps_of(made):
    builder = builder_of(made, SPEC)
    result = l1_path(builder, made, builder.tensor("input"))
    told = []
    for step in builder.steps:
        match step:
            case Operation():
                told.append(step.name.removesuffix("DeviceOperation"))
            case Free() | Allocate() | Relocate():
                told.append((type(step).__name__, step.tensor))
    return told, result


def operations_of(made):
    builder = builder_of(made, SPEC)
    l1_path(builder, made, builder.tensor("input"))
    return [step for step in builder.steps if isinstance(step, Operation)]


MOVED = ("Relocate", "halo")
UPLOAD = ("Allocate", "weight.prepared")


def test_steps_of_a_sharded_input():
    assert steps_of(call(SHARDED))[0] == [UPLOAD, "Halo", MOVED, "Conv2d", ("Free", "halo")]
    released = ConvConfig(deallocate_activation=True, reallocate_halo_output=False)
    assert steps_of(call(SHARDED, config=released))[0] == [
        UPLOAD, "Halo", ("Free", "input"), "Conv2d", ("Free", "halo"),
    ]  # fmt: skip


def test_an_input_that_was_sharded_here_is_released():
    told = steps_of(call(DRAM_MEMORY_CONFIG))[0]
    assert told[-1] == ("Free", "input.sharded")
    early = steps_of(call(DRAM_MEMORY_CONFIG, config=ConvConfig(shard_layout=HEIGHT, deallocate_activation=True)))[0]
    assert early.index(("Free", "input.sharded")) == early.index("Halo") + 1
    assert ("Free", "input") not in early


def test_the_output_goes_where_the_caller_wants_it():
    told, result = steps_of(call(SHARDED, memory_config=DRAM_MEMORY_CONFIG))
    assert "ShardedToInterleaved" in told
    assert result.spec.memory_config == DRAM_MEMORY_CONFIG
    assert result.name == "output.placed"


def test_names_of_a_slice_begin_with_its_prefix():
    made = call(DRAM_MEMORY_CONFIG)
    builder = builder_of(made, SPEC)
    output = l1_path(builder, made, builder.tensor("input"), prefix="slice3.")
    plan = finished(builder, made, output, returns_weights=True)
    assert {name.split(".")[0] for name in plan.tensors} == {"input", "slice3", "weight"}


def test_programs_are_told_apart_by_all_that_they_are_made_of():
    def keys(made):
        return tuple(step.key for step in operations_of(made))

    plain = keys(call(SHARDED))
    assert plain == keys(call(SHARDED))
    assert keys(call(SHARDED, mirror_kernel=False)) == plain
    changes = [
        {"bias": True},
        {"out_format": FLOAT32},
        {"compute_config": ComputeConfig(fidelity_phases=2)},
        {"config": ConvConfig(activation=("relu", ()))},
        {"config": ConvConfig(config_tensors_in_dram=True)},
        {"config": ConvConfig(weights_format=BFLOAT8_B)},
    ]
    conv = [keys(call(SHARDED, **change))[-1] for change in changes]
    assert len({plain[-1], *conv}) == len(changes) + 1


def test_a_program_that_can_not_be_built_is_planned_as_refused():
    """A tile of channels under nine taps can not be cut in two."""
    bad = call(config=ConvConfig(shard_layout=WIDTH, act_block_w_div=2))
    (conv,) = (one for one in operations_of(bad) if one.name == "Conv2dDeviceOperation")
    assert conv.refused.startswith("The width of tensor a needs to match the height of tensor b")
    (good,) = (one for one in operations_of(call()) if one.name == "Conv2dDeviceOperation")
    assert good.refused is None
