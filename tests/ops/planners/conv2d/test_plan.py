"""The sequences of device operations are those of the real library without a device, version 0.81.1."""

from dataclasses import replace

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import Free, Operation, Plan
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand, SliceConfig, SliceType
from ops.planners.conv.conv2d import CONV2D, plan_conv2d
from tests.ops.planners.conv.good_call import sized_call
from tests.shards import HEIGHT, in_box

SPEC = load_spec("wormhole_n150")
FREE = SPEC.l1.bytes - SPEC.l1.base_bytes


def call(place: MemoryConfig = L1_MEMORY_CONFIG, **changes: object) -> ConvCall:
    good = sized_call((16, 16), (32, 64), rules=CONV2D, place=place, stride=(2, 2), padding=(1, 1, 1, 1))
    return replace(good, **changes)


def plan(a: ConvCall) -> Plan:
    return plan_conv2d(a, SPEC, free_l1_bytes=FREE, returns_weights=False)


def operations(made: Plan) -> list[str]:
    return [step.name.removesuffix("DeviceOperation") for step in made.steps if isinstance(step, Operation)]


def test_in_l1_the_copy_of_the_input_goes_before_the_halo_moves():
    made = plan(call())
    assert operations(made) == ["InterleavedToSharded", "Halo", "Conv2d"]
    halo = next(n for n, step in enumerate(made.steps) if isinstance(step, Operation) and step.name.startswith("Halo"))
    assert made.steps[halo + 1] == Free("input.sharded")
    output = made.tensors[made.results["output"]]
    assert output.shape == (1, 1, 64, 64)
    assert output.memory_config.is_sharded()


def test_width_shards_without_padding_need_no_halo():
    config = ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED)
    assert operations(plan(call(padding=(0, 0, 0, 0), conv_config=config))) == ["InterleavedToSharded", "Conv2d"]
    assert "Halo" in operations(plan(call(conv_config=config)))


def test_one_slice_ends_in_dram_whoever_chose_it():
    for config in (None, SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=1)):
        made = plan(call(DRAM_MEMORY_CONFIG, slice_config=config))
        assert operations(made) == ["InterleavedToSharded", "Halo", "Conv2d", "ShardedToInterleaved"]
        assert made.tensors[made.results["output"]].memory_config == DRAM_MEMORY_CONFIG


def test_slices_overlap_where_windows_do():
    made = plan(call(DRAM_MEMORY_CONFIG, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)))
    windows = [
        step.work.window
        for step in made.steps
        if isinstance(step, Operation) and step.name == "PaddedSliceDeviceOperation"
    ]
    assert [(window.begins[1], window.ends[1]) for window in windows] == [(0, 8), (7, 16)]


def test_slices_of_rows_that_need_no_halo_are_released_once():
    width = ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED, output_layout=Layout.ROW_MAJOR)
    slices = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
    made = plan(call(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), conv_config=width, slice_config=slices))
    frees = [step.tensor for step in made.steps if isinstance(step, Free)]
    assert "Halo" not in operations(made)
    assert frees.count("slice0.input") == frees.count("slice1.input") == 1


def test_slices_none_of_which_has_input_are_refused():
    """Outputs of a 1x1 kernel at stride 3 whose first row is padding: the real library never gets past it."""
    weight = Operand(spec=TensorSpec((64, 32, 1, 1), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    slices = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=6)
    with pytest.raises(DeviceError, match="No slice has input: 6 slices of type DRAM_HEIGHT"):
        plan(call(DRAM_MEMORY_CONFIG, weight=weight, kernel_size=(1, 1), stride=(3, 3), slice_config=slices))


def test_windows_side_by_side_are_folded_and_multiplied():
    weight = Operand(spec=TensorSpec((64, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    folded = {"weight": weight, "kernel_size": (2, 2)}
    assert operations(plan(call(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), **folded))) == ["Fold", "Tilize", "Matmul"]
    made = plan(call(DRAM_MEMORY_CONFIG, **folded))
    assert operations(made) == ["Pad", "Fold", "TilizeWithValPadding", "Matmul"]
    assert made.tensors["input.folded"].shape == (1, 9, 9, 128)
    assert made.tensors["weight.prepared"].shape == (1, 1, 128, 64)
    frees = [step.tensor for step in made.steps if isinstance(step, Free)]
    assert frees[0] == "input.padded"
    assert set(frees) == {"input.padded", "input.tiled", "input.folded", "weight.prepared"}


def test_1x1_runs_as_a_matmul():
    pointwise = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0)}
    weight = Operand(spec=TensorSpec((64, 32, 1, 1), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    made = plan(call(DRAM_MEMORY_CONFIG, weight=weight, **pointwise))
    assert operations(made)[-1] == "Matmul"


FOLDS = ConvConfig(enable_kernel_stride_folding=True)
OVERLAPPING = {"padding": (0, 0, 0, 0), "conv_config": FOLDS}


def test_windows_that_overlap_leave_a_convolution_of_stride_1():
    in_l1 = plan(call(**OVERLAPPING))
    assert operations(in_l1) == ["Fold", "InterleavedToSharded", "Halo", "Conv2d"]
    assert in_l1.tensors["weight.prepared"].shape == (1, 1, 2 * 2 * 128, 64)
    in_dram = plan(call(DRAM_MEMORY_CONFIG, **OVERLAPPING))
    assert operations(in_dram) == ["Fold", "InterleavedToSharded", "Halo", "Conv2d", "ShardedToInterleaved"]


def test_weights_are_not_folded_with_an_image_in_dram():
    """32 channels of a 3x3 kernel in rows of blocks for 2 x 128 channels."""
    config = replace(FOLDS, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)
    made = plan(call(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), conv_config=config)).tensors["weight.prepared"]
    assert (made.shape, made.padded_shape) == ((1, 1, 288, 64), (1, 1, 768, 64))


def test_weights_that_are_not_folded_do_not_fit_a_sharded_matmul():
    weight = Operand(spec=TensorSpec((64, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    config = replace(FOLDS, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)
    folded = {"weight": weight, "kernel_size": (2, 2), "padding": (0, 0, 0, 0), "conv_config": config}
    last = [step for step in plan(call(DRAM_MEMORY_CONFIG, **folded)).steps if isinstance(step, Operation)][-1]
    assert last.refused is not None
    assert last.refused.startswith("K dimension in tiles must match between input A (4) and input B (8)")
    assert plan(call(**folded)).tensors["weight.prepared"].padded_shape == (1, 1, 128, 64)


def test_kernel_rows_wider_than_a_block_are_refused():
    few = TensorSpec((1, 1, 256, 2), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    weight = Operand(spec=TensorSpec((64, 2, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    config = replace(FOLDS, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)
    call_of_few = call(
        input=Operand(spec=few, on_host=False),
        in_channels=2,
        weight=weight,
        kernel_size=(2, 2),
        padding=(0, 0, 0, 0),
        conv_config=config,
    )
    with pytest.raises(DeviceError, match="Block height 32 must be >= inner dimension 64"):
        plan(call_of_few)


@pytest.mark.parametrize(("channels", "begins"), [(20, ["UntilizeWithUnpadding"]), (24, [])])
def test_tiles_are_folded_unless_their_rows_split_words(channels, begins):
    """A row of 20 numbers of two bytes does not end where the next may begin."""
    spec = TensorSpec((1, 1, 144, channels), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    weight = Operand(spec=TensorSpec((64, channels, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    sizes = {"in_channels": channels, "input_height": 12, "input_width": 12, "kernel_size": (2, 2)}
    made = plan(call(input=Operand(spec=spec, on_host=False), weight=weight, **sizes, padding=(0, 0, 0, 0)))
    assert operations(made)[: len(begins) + 2] == ["ReshapeView", *begins, "Fold"]


def test_shards_are_dealt_anew_where_they_do_not_hold_whole_rows_of_windows():
    """Two rows of 16 pixels: 48 rows of a shard are not whole windows, 64 are."""
    weight = Operand(spec=TensorSpec((64, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    for rows, cores, dealt in ((64, 4, []), (48, 6, ["Reshard"])):
        place = in_box(HEIGHT, (rows, 32), cores)
        config = replace(FOLDS, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)
        made = plan(call(place, weight=weight, kernel_size=(2, 2), padding=(0, 0, 0, 0), conv_config=config))
        assert operations(made)[: len(dealt) + 1] == [*dealt, "Fold"]
        shape = made.tensors["input.folded"].memory_config.shard_spec
        assert shape is not None
        assert shape.shape == ((16, 128) if not dealt else (8, 128))


@pytest.mark.parametrize(("rows", "cores", "untiled"), [(96, 4, 3 * 24), (32, 12, 32)])
def test_shards_of_tiles_keep_several_rows_of_the_image(rows, cores, untiled):
    """Rows of 24 pixels fill 32 of a tile; 12 of them in shards of one each come to whole tiles."""
    place = in_box(HEIGHT, (rows, 32), 4, cores // 4)
    given = Operand(spec=TensorSpec((1, 12, 24, 32), BFLOAT16, Layout.TILE, place), on_host=False)
    weight = Operand(spec=TensorSpec((64, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    config = replace(FOLDS, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED)
    sizes = {"input_height": 12, "input_width": 24, "kernel_size": (2, 2), "padding": (0, 0, 0, 0)}
    made = plan(call(input=given, weight=weight, conv_config=config, **sizes)).tensors["input.untiled"]
    assert made.memory_config.shard_spec is not None
    assert made.memory_config.shard_spec.shape == (untiled, 32)
