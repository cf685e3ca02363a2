"""What a convolution is refused for only when its plan is walked through: texts read from calls of the real library."""

from dataclasses import replace
from typing import Any

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT8, UINT16, UINT32, DataFormat
from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvCall, ConvConfig, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from tests.build import operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH

SPEC = load_spec("wormhole_n150")


def call(channels: int, scheme: TensorMemoryLayout, grid: tuple[int, int, int, int]) -> ConvCall:
    """An 8x8 image in L1, kernel 2, stride 2, with as many output channels as input channels."""
    left, top, right, bottom = grid
    config = ConvConfig(
        shard_layout=scheme,
        override_sharding_config=True,
        core_grid=CoreRangeSet([CoreRange(CoreCoord(left, top), CoreCoord(right, bottom))]),
    )
    place = MemoryConfig(buffer_type=BufferType.L1)
    return sized_call(
        (8, 8), (channels, channels), (2, 2), place=place, layout=Layout.TILE, stride=(2, 2), conv_config=config
    )


def refusals(made: ConvCall) -> list[tuple[str, str]]:
    """The operations of a plan that are refused, each with the first line of its reason."""
    steps = plan_convolution(made, SPEC, free_l1_bytes=1300000).steps
    return [
        (one.name, text.split("\n", maxsplit=1)[0])
        for one in steps
        if isinstance(one, Operation) and (text := one.refused or one.unfinished) is not None
    ]


def in_format(made: ConvCall, data_format: DataFormat) -> ConvCall:
    """The call of an input in another format."""
    spec = made.input.spec
    held = TensorSpec(spec.shape, data_format, spec.layout, spec.memory_config)
    return replace(made, input=replace(made.input, spec=held))


@pytest.mark.parametrize(
    ("channels", "grid", "refused"),
    [
        (256, (0, 0, 3, 1), False),
        (128, (0, 0, 3, 1), True),
        (64, (0, 0, 0, 1), False),
        (64, (0, 0, 0, 3), True),
        (192, (0, 0, 6, 1), True),  # output cores beyond the columns of the input
        (96, (0, 0, 7, 1), False),
        (256, (0, 0, 3, 0), False),
    ],
)
def test_idle_cores_of_width_shards(channels: int, grid: tuple[int, int, int, int], *, refused: bool) -> None:
    wanted = [("Conv2dDeviceOperation", "Multicast runtime arguments target an unplaced core")] if refused else []
    assert refusals(call(channels, WIDTH, grid)) == wanted


@pytest.mark.parametrize("scheme", [WIDTH, HEIGHT, TensorMemoryLayout.BLOCK_SHARDED])
def test_a_grid_that_does_not_begin_at_the_origin(scheme: TensorMemoryLayout) -> None:
    name, line = refusals(call(96, scheme, (2, 0, 5, 0)))[0]
    assert name == "HaloDeviceOperation"
    assert line.startswith(
        "Sliding-window shard grid core 0 is 2-0 but the origin-anchored row walk addresses it as 0-0."
    )


def test_a_memory_config_without_shards_is_refused_at_the_end() -> None:
    made = call(256, HEIGHT, (0, 0, 3, 1))
    place = MemoryConfig(HEIGHT, BufferType.L1)
    assert [line for _, line in refusals(replace(made, memory_config=place))] == ["bad optional access"]


def test_rows_of_a_block_float_are_refused_when_the_output_is_made() -> None:
    made = call(256, HEIGHT, (0, 0, 3, 1))
    rows = replace(made, out_format=BFLOAT8_B, conv_config=replace(made.conv_config, output_layout=Layout.ROW_MAJOR))
    wanted = ("Conv2dDeviceOperation", "Only TILE layout is supported for BFLOAT8_B dtype!")
    assert refusals(rows) == [wanted]


def test_lists_of_readers_are_refused_before_idle_cores() -> None:
    narrow = replace(call(128, WIDTH, (0, 0, 3, 1)), input_height=64, input_width=1)
    assert refusals(narrow)[0][1].startswith("Reader indices buffer page size")


def override(scheme: TensorMemoryLayout | None, grid: tuple[int, int, int, int], *, inputs: bool) -> ConvCall:
    """Cores given for the output, and for the input if so asked."""
    made = call(160, HEIGHT, grid)
    config = replace(made.conv_config, override_output_sharding_config=True, override_sharding_config=inputs)
    return replace(made, conv_config=replace(config, shard_layout=scheme))


def test_a_given_grid_is_that_of_the_output() -> None:
    plan = plan_convolution(override(BLOCK, (0, 0, 1, 7), inputs=False), SPEC, free_l1_bytes=1300000)
    shards = plan.tensors["output"].memory_config.shard_spec
    assert shards is not None
    assert (shards.grid.bounding_box().cols, shards.shape[1]) == (2, 96)


@pytest.mark.parametrize(
    ("scheme", "grid", "line"),
    [
        (BLOCK, (0, 0, 3, 6), "NHW cores must match for input and output when overriding the grid size."),
        (None, (0, 0, 1, 7), "Output sharding config override is only supported for BLOCK_SHARDED layout."),
    ],
)
def test_a_given_grid_that_does_not_fit(scheme: TensorMemoryLayout | None, grid: Any, line: str) -> None:
    with pytest.raises(DeviceError) as refused:
        plan_convolution(override(scheme, grid, inputs=False), SPEC, free_l1_bytes=1300000)
    assert str(refused.value).splitlines()[0] == line


def test_a_grid_with_a_gap_is_refused_at_the_first_core_behind_it() -> None:
    made = call(96, HEIGHT, (0, 0, 0, 0))
    ranges = [CoreRange(CoreCoord(0, 0), CoreCoord(3, 0)), CoreRange(CoreCoord(0, 2), CoreCoord(3, 2))]
    gap = replace(made, conv_config=replace(made.conv_config, core_grid=CoreRangeSet(ranges)))
    name, line = refusals(gap)[0]
    assert name == "HaloDeviceOperation"
    assert line.startswith(
        "Sliding-window shard grid core 4 is 0-2 but the origin-anchored row walk addresses it as 0-1."
    )


def test_a_function_without_its_parameter_is_refused_by_the_convolution() -> None:
    made = call(96, HEIGHT, (0, 0, 3, 1))
    leaky = replace(made, conv_config=replace(made.conv_config, activation=("leaky_relu", ())))
    text = "Undefined non-parametrized op type UnaryOpType::LEAKY_RELU"
    assert refusals(leaky) == [("Conv2dDeviceOperation", text)]


def test_formats_without_a_rate_are_refused_by_the_convolution_alone() -> None:
    """Where shares are two tiles high, so that a second reader may pay, whether or not the rates have to tell."""
    text = "Unsupported output data type when calculating tilize cycles"
    assert refusals(in_format(call(32, HEIGHT, (0, 0, 3, 1)), UINT16)) == []
    made = in_format(call(32, HEIGHT, (0, 0, 3, 0)), UINT16)
    assert refusals(made) == [("Conv2dDeviceOperation", text)]
    forced = replace(made, conv_config=replace(made.conv_config, force_split_reader=True))
    assert refusals(forced) == [("Conv2dDeviceOperation", text)]


@pytest.mark.parametrize(("channels", "size"), [(8, None), (16, 1024), (32, 2048)])
def test_rows_of_eight_bits_are_no_rows_of_bfloat16(channels: int, size: int | None) -> None:
    """32 rows on a core, which L1 aligns to 16 bytes each."""
    rows = replace(
        call(channels, HEIGHT, (0, 0, 3, 1)),
        input=operand(1, 1, 64, channels, place=MemoryConfig(buffer_type=BufferType.L1)),
    )
    text = f"Cannot set circular buffer size to {size}. This is larger than the associated dynamically allocated L1 "
    (name, line), *_ = refusals(in_format(rows, UINT8)) or [("", "")]
    assert (name == "HaloDeviceOperation" and line.startswith(text)) is (size is not None)


@pytest.mark.parametrize(("scheme", "channels", "refused"), [(HEIGHT, 5, True), (HEIGHT, 9, False), (BLOCK, 20, False)])
def test_shards_hold_as_many_channels_as_the_call_has(scheme: TensorMemoryLayout, channels: int, refused: bool) -> None:
    """16 of one column of cores, or 32 of two; 5 channels are padded to 8, and 9 to 16."""
    place, wanted = MemoryConfig(buffer_type=BufferType.L1), 32 if scheme is BLOCK else 16
    made = call(wanted, scheme, (0, 0, 1, 3))
    given = replace(made, input=operand(1, 1, 64, channels, place=place))
    text = "Incorrect padding of input channels!"
    assert refusals(given) == [("Conv2dDeviceOperation", text)] * refused


def test_an_input_of_three_axes_is_refused_once_one_slice_is_found_to_do() -> None:
    config = ConvConfig(weights_format=BFLOAT16)
    search = SliceConfig(slice_type=SliceType.DRAM_HEIGHT)
    made = sized_call((8, 8), (32, 32), (2, 2), place=MemoryConfig(), conv_config=config, slice_config=search)
    with pytest.raises(ArgumentError, match=r"^ShapeBase\[\] index out of range\. 3 not in \[-4, 3\)"):
        plan_convolution(replace(made, input=operand(1, 64, 32, place=MemoryConfig())), SPEC, free_l1_bytes=1300000)


def test_rows_of_integers_are_not_made() -> None:
    made = call(32, HEIGHT, (0, 0, 3, 1))
    rows = replace(made, conv_config=replace(made.conv_config, output_layout=Layout.ROW_MAJOR), out_format=UINT16)
    text = "Untilize output requires BFLOAT16 or FLOAT32 data type but got DataType::UINT16"
    assert refusals(rows) == [("Conv2dDeviceOperation", text)]


def test_formats_without_a_rate_are_refused_once_the_input_is_an_image() -> None:
    """Slices are chosen for an image of whole tiles; the rows of any other can not be moved in this format."""
    place = MemoryConfig()
    made = sized_call((64, 64), (32, 32), (2, 2), place=place, layout=Layout.TILE, stride=(2, 2))
    plan = plan_convolution(in_format(made, UINT16), SPEC, free_l1_bytes=1300000)
    (refusal,) = plan.steps
    assert isinstance(refusal, Refuse)
    assert refusal.text.startswith("Unsupported output data type when calculating tilize cycles\n")
    ragged = sized_call((64, 33), (32, 32), (2, 2), place=place, layout=Layout.TILE, stride=(2, 2))
    with pytest.raises(DeviceError, match=r"^Can only work with bfloat16/float32 or int32/uint32 tensors"):
        plan_convolution(in_format(ragged, UINT16), SPEC, free_l1_bytes=1300000)


@pytest.mark.parametrize(("scheme", "letter"), [(HEIGHT, "A"), (BLOCK, "A"), (None, "A"), (None, "B")])
def test_a_matmul_multiplies_no_integers(scheme: TensorMemoryLayout | None, letter: str) -> None:
    place, config = MemoryConfig(buffer_type=BufferType.L1), ConvConfig(shard_layout=scheme)
    made = sized_call((8, 8), (32, 32), (1, 1), place=place, layout=Layout.TILE, conv_config=config)
    assert refusals(made) == []
    if letter == "A":
        made = in_format(made, UINT32)
    else:
        made = replace(made, conv_config=replace(config, weights_format=UINT32))
    text = f"Unsupported data format for input {letter}: DataType::UINT32"
    assert refusals(made) == [("MatmulDeviceOperation", text)]


def test_weights_are_laid_out_by_their_own_shape() -> None:
    made = call(32, HEIGHT, (0, 0, 3, 1))
    wider = replace(made, weight=replace(made.weight, spec=TensorSpec((32, 40, 2, 2), BFLOAT16, Layout.ROW_MAJOR)))
    plan = plan_convolution(wider, SPEC, free_l1_bytes=1300000)
    assert plan.tensors["weight.prepared"].padded_shape == (1, 1, 128, 64)
    assert refusals(wider) == [
        ("Conv2dDeviceOperation", "num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w 2")
    ]
    higher = replace(made, weight=replace(made.weight, spec=TensorSpec((65, 32, 2, 2), BFLOAT16, Layout.ROW_MAJOR)))
    with pytest.raises(DeviceError, match=r"^Block height 64 must be >= inner dimension 192"):
        plan_convolution(higher, SPEC, free_l1_bytes=1300000)


def test_a_bias_has_the_columns_of_the_call_beside_weights_of_others() -> None:
    made = call(32, HEIGHT, (0, 0, 3, 1))
    narrow = replace(made.weight, spec=TensorSpec((32, 8, 2, 2), BFLOAT16, Layout.ROW_MAJOR))
    bias = replace(made.weight, spec=TensorSpec((1, 1, 1, 32), BFLOAT16, Layout.ROW_MAJOR))
    plan = plan_convolution(replace(made, weight=narrow, bias=bias), SPEC, free_l1_bytes=1300000)
    assert [plan.tensors[f"{name}.prepared"].shape[-1] for name in ("weight", "bias")] == [8, 32]


def test_narrow_weights_fill_the_columns_of_their_own_cores_alone() -> None:
    """32 columns of weights for 64 output channels on two columns of cores."""
    made = call(64, BLOCK, (0, 0, 1, 1))
    narrow = replace(made, weight=replace(made.weight, spec=TensorSpec((32, 20, 2, 2), BFLOAT16, Layout.ROW_MAJOR)))
    assert plan_convolution(narrow, SPEC, free_l1_bytes=1300000).tensors["weight.prepared"].padded_shape[-1] == 32
    assert refusals(narrow) == [("Conv2dDeviceOperation", "Invalid weight shape. Incorrect weight tensor.")]


def test_too_many_slices_of_an_input_of_another_volume_are_still_too_many() -> None:
    config = SliceConfig(slice_type=SliceType.DRAM_WIDTH, num_slices=40)
    made = sized_call((8, 8), (32, 32), (2, 2), place=MemoryConfig(), stride=(2, 2), slice_config=config)
    longer = replace(made.input, spec=TensorSpec((1, 1, 65, 32), BFLOAT16, Layout.ROW_MAJOR, MemoryConfig()))
    with pytest.raises(DeviceError, match=r"^Number of slices \(40\) exceeds the maximum allowed"):
        plan_convolution(replace(made, input=longer), SPEC, free_l1_bytes=1300000)
