from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, INT32
from device.plan import Allocate, Operation, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand, SliceConfig, SliceType
from ops.planners.conv.checks import operand_refusals
from ops.planners.conv.conv2d import CONV2D, check_arguments, check_strict, output_size, plan_conv2d, validate
from tests.shards import high

SPEC = load_spec("wormhole_n150")


def call(**changes: object) -> ConvCall:
    good = ConvCall(
        rules=CONV2D,
        input=Operand(spec=TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG), on_host=False),
        weight=weight(),
        in_channels=32,
        out_channels=64,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        padding=(1, 1, 1, 1),
    )
    return replace(good, **changes)


def weight(shape=(64, 32, 3, 3), data_format=BFLOAT16, layout=Layout.ROW_MAJOR, *, on_host=True) -> Operand:
    return Operand(spec=TensorSpec(shape, data_format, layout), on_host=on_host)


def in_dram() -> Operand:
    return Operand(spec=TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG), on_host=False)


def sharded(width: int = 32, layout: Layout = Layout.ROW_MAJOR) -> Operand:
    spec = TensorSpec((1, 1, 64, 32), BFLOAT16, layout, high((32, width), 2), (1, 1, 64, width))
    return Operand(spec=spec, on_host=False)


FOLDS = ConvConfig(enable_kernel_stride_folding=True)
FOLDED = {"input": in_dram(), "kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0)}


def test_a_good_call_passes():
    validate(call())
    check_arguments(call())
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
        validate(call(**changes))
    assert str(refused.value).splitlines()[0] == line
    assert len(str(refused.value).splitlines()) == 2


def test_a_bias_may_come_from_the_host_though_the_weights_do_not():
    prepared = weight((1, 1, 288, 64), layout=Layout.TILE, on_host=False)
    assert next(operand_refusals(call(weight=prepared, bias=weight((1, 1, 1, 64)))), None) is None


# First lines of the real library, version 0.81.1.
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"weight": weight((64, 32, 9))}, "Host conv weights should be 4D tensor"),
        ({"weight": weight(data_format=INT32)}, "Unsupported data type"),
        ({"weight": weight(layout=Layout.TILE)}, "Host conv weights layout should be in row_major layout"),
        (
            {
                "weight": weight((1, 1, 288, 64), layout=Layout.TILE, on_host=False),
                "conv_config": ConvConfig(weights_format=BFLOAT8_B),
            },
            "Host conv weights layout should be in row_major layout",
        ),
        (
            {
                "bias": weight((1, 1, 1, 64), layout=Layout.TILE, on_host=False),
                "conv_config": ConvConfig(weights_format=BFLOAT8_B),
            },
            "Host conv bias layout should be in row_major layout",
        ),
        ({"bias": weight((1, 1, 1, 16))}, "Bias must have the same length as output channels"),
        ({"bias": weight((1, 1, 32, 64))}, "Host conv bias shape is not correct"),
    ],
)
def test_operands_are_refused_once_the_input_lies_on_its_cores(changes, line):
    made = call(**changes)
    validate(made)
    steps = plan_conv2d(made, SPEC, free_l1_bytes=SPEC.l1.bytes).steps
    assert [type(step) for step in steps[-3:]] == [Allocate, Operation, Refuse]
    assert steps[-1].text.splitlines()[0] == line
    assert len(steps[-1].text.splitlines()) == 2


def test_slices_that_there_are_not_are_refused_before_the_weights():
    many = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=9)
    steps = plan_conv2d(
        call(input=in_dram(), slice_config=many, weight=weight(layout=Layout.TILE)), SPEC, free_l1_bytes=SPEC.l1.bytes
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
        check_arguments(call(**changes))


def test_strict_devices_refuse_wrong_shapes():
    with pytest.raises(ArgumentError, match=r"conv2d: weight_tensor must have the shape \[64, 32, 3, 3\] \(out_chann"):
        check_strict(call(weight=weight((32, 64, 3, 3))))
    with pytest.raises(ArgumentError, match=r"conv2d: .* are 2304 elements, but input_tensor has 2048"):
        check_strict(call(input_height=9))


def test_slices_of_nothing_but_padding_are_refused():
    """A 1x1 kernel with stride 3 sees the second slice's row below the image only."""
    rows = {"input": in_dram(), "input_height": 5, "input_width": 16, "kernel_size": (1, 1), "stride": (3, 3)}
    rows |= {"weight": weight((64, 32, 1, 1)), "padding": (1, 1, 1, 1)}
    sliced = call(**rows, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2))
    with pytest.raises(ArgumentError, match="conv2d: slice_config: one of 2 slices lies in the padding alone"):
        check_strict(sliced)


def test_output_sizes():
    assert output_size(call()) == (8, 8)
    assert output_size(call(stride=(2, 3), dilation=(2, 1), padding=(0, 1, 2, 0))) == (3, 3)
