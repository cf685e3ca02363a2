"""Plans of conv2d, and what is refused before: sequences and first lines of the real library, version 0.81.1."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, INT32
from device.plan import Allocate, Free, Operation, Plan, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import CONV2D, ConvCall, ConvConfig, Operand, SliceConfig, SliceType
from ops.planners.conv.checks import check_arguments, check_possible, check_strict
from ops.planners.conv.folding import folds, output_size
from ops.planners.conv.operand_checks import operand_refusals
from ops.planners.conv.plan import plan_convolution
from tests.build import operand, sized_call
from tests.shards import HEIGHT, WIDTH, high, in_box

SPEC = load_spec("wormhole_n150")


def call(**changes: object) -> ConvCall:
    """An 8x8 image of 32 channels in L1."""
    return replace(sized_call((8, 8), (32, 64), rules=CONV2D, place=L1_MEMORY_CONFIG, padding=(1, 1, 1, 1)), **changes)


def in_dram() -> Operand:
    return operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG)


def sharded(width: int = 32, layout: Layout = Layout.ROW_MAJOR) -> Operand:
    spec = TensorSpec((1, 1, 64, 32), BFLOAT16, layout, high((32, width), 2), (1, 1, 64, width))
    return Operand(spec=spec, on_host=False)


FOLDS = ConvConfig(enable_kernel_stride_folding=True)
FOLDED = {"input": in_dram(), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0)}


def test_a_good_call_passes():
    check_arguments(call())
    check_possible(call())
    check_strict(call())


# First lines of the real library, version 0.81.1.
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"stride": (0, 1)}, "stride must be greater than 0, got (0, 1)"),
        (
            {"conv_config": ConvConfig(act_block_h_override=48)},
            "Config Error: act_block_h_override (48) must be a multiple of 32 (tile height).",
        ),
        (
            FOLDED | {"input_height": 7, "conv_config": FOLDS},
            "Padded input height (7) must be divisible by stride (2) for kernel stride folding.",
        ),
        (
            FOLDED | {"kernel_size": (1, 2), "conv_config": FOLDS},
            "Conv2D kernel stride folding: Stride must be less than or equal to kernel size",
        ),
        (
            {"input": in_dram(), "conv_config": ConvConfig(override_output_sharding_config=True)},
            "Conv2D DRAM slicing doesn't support override_output_sharding_config.",
        ),
    ],
)
def test_what_the_real_library_refuses(changes, line):
    with pytest.raises(ArgumentError) as refused:
        check_arguments(call(**changes))
    assert str(refused.value).splitlines()[0] == line
    assert len(str(refused.value).splitlines()) == 2


def test_a_bias_may_come_from_the_host_though_the_weights_do_not():
    prepared = operand(1, 1, 288, 64, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG)
    assert next(operand_refusals(call(weight=prepared, bias=operand(1, 1, 1, 64))), None) is None


# First lines of the real library, version 0.81.1.
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"weight": operand(64, 32, 9)}, "Host conv weights should be 4D tensor"),
        ({"weight": operand(64, 32, 3, 3, data_format=INT32)}, "Unsupported data type"),
        (
            {"weight": operand(64, 32, 3, 3, layout=Layout.TILE)},
            "Host conv weights layout should be in row_major layout",
        ),
        (
            {
                "weight": operand(1, 1, 288, 64, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG),
                "conv_config": ConvConfig(weights_format=BFLOAT8_B),
            },
            "Host conv weights layout should be in row_major layout",
        ),
        (
            {
                "bias": operand(1, 1, 1, 64, layout=Layout.TILE, place=DRAM_MEMORY_CONFIG),
                "conv_config": ConvConfig(weights_format=BFLOAT8_B),
            },
            "Host conv bias layout should be in row_major layout",
        ),
        ({"bias": operand(1, 1, 1, 16)}, "Bias must have the same length as output channels"),
        ({"bias": operand(1, 1, 32, 64)}, "Host conv bias shape is not correct"),
    ],
)
def test_operands_are_refused_once_the_input_lies_on_its_cores(changes, line):
    made = call(**changes)
    check_arguments(made)
    steps = plan_convolution(made, SPEC, free_l1_bytes=SPEC.l1.bytes).steps
    assert [type(step) for step in steps[-3:]] == [Allocate, Operation, Refuse]
    assert steps[-1].text.splitlines()[0] == line
    assert len(steps[-1].text.splitlines()) == 2


def test_slices_that_there_are_not_are_refused_before_the_weights():
    many = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=9)
    steps = plan_convolution(
        call(input=in_dram(), slice_config=many, weight=operand(64, 32, 3, 3, layout=Layout.TILE)),
        SPEC,
        free_l1_bytes=SPEC.l1.bytes,
    ).steps
    assert steps[-1].text.startswith("Number of slices (9) exceeds the maximum allowed")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"kernel_size": (11, 3)}, "conv2d: kernel_size .* does not fit an image of 8 x 8"),
        ({"batch_size": 0}, "conv2d: batch_size must be at least 1"),
        ({"groups": 3}, "conv2d: groups must divide in_channels"),
        ({"groups": 0}, "conv2d: groups must be at least 1"),
        ({"dilation": (0, 1)}, "conv2d: dilation must be at least"),
        (
            FOLDED | {"input": sharded(), "padding": (1, 1, 1, 1), "conv_config": FOLDS},
            "conv2d: folding windows of padded HEIGHT shards is not simulated; set conv_config.enable",
        ),
        (
            FOLDED | {"input": sharded(width=64), "conv_config": FOLDS},
            "conv2d: folding windows of shards that are wider than 32 channels is not simulated",
        ),
        (
            {"input_height": 1, "input_width": 64, "kernel_size": (1, 3), "groups": 32, "out_channels": 32},
            "conv2d: the depthwise convolution of a single row",
        ),
    ],
)
def test_what_can_not_be_computed(changes, text):
    with pytest.raises(ArgumentError, match=text):
        check_possible(call(**changes))


def test_strict_devices_refuse_wrong_shapes():
    with pytest.raises(ArgumentError, match=r"conv2d: weight_tensor must have the shape \[64, 32, 3, 3\] \(out_chann"):
        check_strict(call(weight=operand(32, 64, 3, 3)))
    with pytest.raises(ArgumentError, match=r"conv2d: .* are 2304 elements, but input_tensor has 2048"):
        check_strict(call(input_height=9))


def test_slices_of_nothing_but_padding_are_refused():
    """A 1x1 kernel with stride 3 sees the second slice's row below the image only."""
    rows = {"input": in_dram(), "input_height": 5, "input_width": 16, "kernel_size": (1, 1), "stride": (3, 3)}
    rows |= {"weight": operand(64, 32, 1, 1), "padding": (1, 1, 1, 1)}
    sliced = call(**rows, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2))
    with pytest.raises(ArgumentError, match="conv2d: slice_config: one of 2 slices lies in the padding alone"):
        check_strict(sliced)


def test_output_sizes():
    assert output_size(call()) == (8, 8)
    assert output_size(call(stride=(2, 3), dilation=(2, 1), padding=(0, 1, 2, 0))) == (3, 3)


def embedding(**changes: object) -> ConvCall:
    """A patch embedding: an 8x8 image of 16 channels, windows of 4x4 side by side."""
    return replace(sized_call((8, 8), (16, 32), (4, 4), rules=CONV2D, stride=(4, 4)), **changes)


def placed(**changes: object) -> Operand:
    return Operand(spec=replace(embedding().input.spec, **changes), on_host=False)


def test_windows_side_by_side_fold_by_themselves():
    assert folds(embedding())


@pytest.mark.parametrize(
    "changes",
    [
        {"stride": (2, 2)},
        {"kernel_size": (1, 1), "stride": (1, 1)},
        {"kernel_size": (0, 2), "stride": (0, 2)},  # refused later
        {"dilation": (2, 2)},
        {"input_height": 7},
        {"padding": (1, 1, 1, 1)},
        {"input": placed(memory_config=L1_MEMORY_CONFIG)},
        {"conv_config": ConvConfig(enable_kernel_stride_folding=False)},
    ],
)
def test_other_windows_do_not(changes):
    assert not folds(embedding(**changes))


def test_padded_tiles_do_not_fold_but_padded_rows_do():
    padded = {"padding": (2, 2, 2, 2)}
    assert folds(embedding(**padded))
    assert not folds(embedding(input=placed(layout=Layout.TILE), **padded))
    assert folds(embedding(input=placed(layout=Layout.TILE)))


def test_the_config_has_the_last_word():
    config = ConvConfig(enable_kernel_stride_folding=True)
    assert folds(embedding(stride=(2, 2), conv_config=config))
    assert not folds(embedding(kernel_size=(3, 3), stride=(1, 1), conv_config=config))


FREE = SPEC.l1.bytes - SPEC.l1.base_bytes


def strided(place: MemoryConfig = L1_MEMORY_CONFIG, **changes: object) -> ConvCall:
    good = sized_call((16, 16), (32, 64), rules=CONV2D, place=place, stride=(2, 2), padding=(1, 1, 1, 1))
    return replace(good, **changes)


def plan(a: ConvCall) -> Plan:
    return plan_convolution(a, SPEC, free_l1_bytes=FREE, returns_weights=False)


def operations(made: Plan) -> list[str]:
    return [step.name.removesuffix("DeviceOperation") for step in made.steps if isinstance(step, Operation)]


def test_in_l1_the_copy_of_the_input_goes_before_the_halo_moves():
    made = plan(strided())
    assert operations(made) == ["InterleavedToSharded", "Halo", "Conv2d"]
    halo = next(n for n, step in enumerate(made.steps) if isinstance(step, Operation) and step.name.startswith("Halo"))
    assert made.steps[halo + 1] == Free("input.sharded")
    output = made.tensors[made.results["output"]]
    assert output.shape == (1, 1, 64, 64)
    assert output.memory_config.is_sharded()


def test_width_shards_without_padding_need_no_halo():
    config = ConvConfig(shard_layout=WIDTH)
    assert operations(plan(strided(padding=(0, 0, 0, 0), conv_config=config))) == ["InterleavedToSharded", "Conv2d"]
    assert "Halo" in operations(plan(strided(conv_config=config)))


def test_one_slice_ends_in_dram_whoever_chose_it():
    for config in (None, SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=1)):
        made = plan(strided(DRAM_MEMORY_CONFIG, slice_config=config))
        assert operations(made) == ["InterleavedToSharded", "Halo", "Conv2d", "ShardedToInterleaved"]
        assert made.tensors[made.results["output"]].memory_config == DRAM_MEMORY_CONFIG


def test_slices_overlap_where_windows_do():
    made = plan(strided(DRAM_MEMORY_CONFIG, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)))
    windows = [
        step.op.window
        for step in made.steps
        if isinstance(step, Operation) and step.name == "PaddedSliceDeviceOperation"
    ]
    assert [(window.begins[1], window.ends[1]) for window in windows] == [(0, 8), (7, 16)]


def test_slices_of_rows_that_need_no_halo_are_released_once():
    width = ConvConfig(shard_layout=WIDTH, output_layout=Layout.ROW_MAJOR)
    slices = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
    made = plan(strided(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), conv_config=width, slice_config=slices))
    frees = [step.tensor for step in made.steps if isinstance(step, Free)]
    assert "Halo" not in operations(made)
    assert frees.count("slice0.input") == frees.count("slice1.input") == 1


def test_slices_none_of_which_has_input_are_refused():
    """Outputs of a 1x1 kernel at stride 3 whose first row is padding: the real library never gets past it."""
    weight = operand(64, 32, 1, 1)
    slices = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=6)
    with pytest.raises(DeviceError, match="No slice has input: 6 slices of type DRAM_HEIGHT"):
        plan(strided(DRAM_MEMORY_CONFIG, weight=weight, kernel_size=(1, 1), stride=(3, 3), slice_config=slices))


def test_windows_side_by_side_are_folded_and_multiplied():
    weight = operand(64, 32, 2, 2)
    folded = {"weight": weight, "kernel_size": (2, 2)}
    assert operations(plan(strided(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), **folded))) == ["Fold", "Tilize", "Matmul"]
    made = plan(strided(DRAM_MEMORY_CONFIG, **folded))
    assert operations(made) == ["Pad", "Fold", "TilizeWithValPadding", "Matmul"]
    assert made.tensors["input.folded"].shape == (1, 9, 9, 128)
    assert made.tensors["weight.prepared"].shape == (1, 1, 128, 64)
    frees = [step.tensor for step in made.steps if isinstance(step, Free)]
    assert frees[0] == "input.padded"
    assert set(frees) == {"input.padded", "input.tiled", "input.folded", "weight.prepared"}


def test_1x1_runs_as_a_matmul():
    pointwise = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0)}
    weight = operand(64, 32, 1, 1)
    made = plan(strided(DRAM_MEMORY_CONFIG, weight=weight, **pointwise))
    assert operations(made)[-1] == "Matmul"


OVERLAPPING = {"padding": (0, 0, 0, 0), "conv_config": FOLDS}


def test_windows_that_overlap_leave_a_convolution_of_stride_1():
    in_l1 = plan(strided(**OVERLAPPING))
    assert operations(in_l1) == ["Fold", "InterleavedToSharded", "Halo", "Conv2d"]
    assert in_l1.tensors["weight.prepared"].shape == (1, 1, 2 * 2 * 128, 64)
    in_dram = plan(strided(DRAM_MEMORY_CONFIG, **OVERLAPPING))
    assert operations(in_dram) == ["Fold", "InterleavedToSharded", "Halo", "Conv2d", "ShardedToInterleaved"]


def test_weights_are_not_folded_with_an_image_in_dram():
    """32 channels of a 3x3 kernel in rows of blocks for 2 x 128 channels."""
    config = replace(FOLDS, shard_layout=HEIGHT)
    made = plan(strided(DRAM_MEMORY_CONFIG, padding=(0, 0, 0, 0), conv_config=config)).tensors["weight.prepared"]
    assert (made.shape, made.padded_shape) == ((1, 1, 288, 64), (1, 1, 768, 64))


def test_weights_that_are_not_folded_do_not_fit_a_sharded_matmul():
    weight = operand(64, 32, 2, 2)
    config = replace(FOLDS, shard_layout=HEIGHT)
    folded = {"weight": weight, "kernel_size": (2, 2), "padding": (0, 0, 0, 0), "conv_config": config}
    last = [step for step in plan(strided(DRAM_MEMORY_CONFIG, **folded)).steps if isinstance(step, Operation)][-1]
    assert last.refused is not None
    assert last.refused.startswith("K dimension in tiles must match between input A (4) and input B (8)")
    assert plan(strided(**folded)).tensors["weight.prepared"].padded_shape == (1, 1, 128, 64)


def test_kernel_rows_wider_than_a_block_are_refused():
    few = TensorSpec((1, 1, 256, 2), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    weight = operand(64, 2, 2, 2)
    config = replace(FOLDS, shard_layout=HEIGHT)
    call_of_few = strided(
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
    weight = operand(64, channels, 2, 2)
    sizes = {"in_channels": channels, "input_height": 12, "input_width": 12, "kernel_size": (2, 2)}
    made = plan(strided(input=Operand(spec=spec, on_host=False), weight=weight, **sizes, padding=(0, 0, 0, 0)))
    assert operations(made)[: len(begins) + 2] == ["ReshapeView", *begins, "Fold"]


def test_shards_are_dealt_anew_where_they_do_not_hold_whole_rows_of_windows():
    """Two rows of 16 pixels: 48 rows of a shard are not whole windows, 64 are."""
    weight = operand(64, 32, 2, 2)
    for rows, cores, dealt in ((64, 4, []), (48, 6, ["Reshard"])):
        place = in_box(HEIGHT, (rows, 32), cores)
        config = replace(FOLDS, shard_layout=HEIGHT)
        made = plan(strided(place, weight=weight, kernel_size=(2, 2), padding=(0, 0, 0, 0), conv_config=config))
        assert operations(made)[: len(dealt) + 1] == [*dealt, "Fold"]
        shape = made.tensors["input.folded"].memory_config.shard_spec
        assert shape is not None
        assert shape.shape == ((16, 128) if not dealt else (8, 128))


@pytest.mark.parametrize(("rows", "cores", "untiled"), [(96, 4, 3 * 24), (32, 12, 32)])
def test_shards_of_tiles_keep_several_rows_of_the_image(rows, cores, untiled):
    """Rows of 24 pixels fill 32 of a tile; 12 of them in shards of one each come to whole tiles."""
    place = in_box(HEIGHT, (rows, 32), 4, cores // 4)
    given = Operand(spec=TensorSpec((1, 12, 24, 32), BFLOAT16, Layout.TILE, place), on_host=False)
    weight = operand(64, 32, 2, 2)
    config = replace(FOLDS, shard_layout=HEIGHT)
    sizes = {"input_height": 12, "input_width": 24, "kernel_size": (2, 2), "padding": (0, 0, 0, 0)}
    made = plan(strided(input=given, weight=weight, conv_config=config, **sizes)).tensors["input.untiled"]
    assert made.memory_config.shard_spec is not None
    assert made.memory_config.shard_spec.shape == (untiled, 32)
