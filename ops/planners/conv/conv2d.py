"""What ttnn.conv2d adds to convolutions: its rules, its refusals, and windows that are folded into channels."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, DataFormat, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import (
    AxisWindow,
    ConvCall,
    ConvRules,
    Folding,
    Freed,
    Operand,
    image_shape,
    is_matmul,
    output_format,
    output_lengths,
    plans_without_outputs,
    prepared_as_matmul,
    takes_l1_path,
)
from ops.planners.conv.checks import (
    CONFIG_CHECKS,
    IMAGE_AXES,
    INPUT_CHECKS,
    INPUT_RANK_CHECKS,
    SIZE_CHECKS,
    Check,
    bias_format_known,
    bias_shape,
    raise_first,
    rank,
    rows_of_block_operands,
    view_refusal,
    weight_refusals,
)
from ops.planners.conv.dram_path import dram_path
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.matmul_path import matmul_path
from ops.planners.conv.plan import builder_of, finished, plan_convolution, reads_free_l1
from ops.planners.conv.slicing import output_slices, require_outputs
from ops.planners.conv.strict import (
    OPERAND_CHECKS,
    dilation_given,
    groups_divide,
    groups_given,
    refuse_first,
    sizes_given,
)
from ops.programs.data_movement.conversions import converted
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.fold import FoldWindows, whole_windows
from ops.programs.data_movement.pad import PadImage
from ops.programs.data_movement.placement import convert, uploaded_image
from ops.programs.data_movement.reshape_plan import reshaped
from ops.window import PaddedAxis, convolution_axis

FOLDED: Final = "input.folded"
WAY_OUT: Final = "set conv_config.enable_kernel_stride_folding=False, which the real library obeys too"


def folds(call: ConvCall) -> bool:
    """Whether the real library folds: as the config says, or by itself where the kernel is the stride.

    It is asked before a call is known to be valid: windows without a stride are none that could be folded.
    """
    given = call.conv_config.enable_kernel_stride_folding
    if given is not None:
        return given and call.stride != (1, 1)
    if call.stride != call.kernel_size or call.stride == (1, 1) or call.dilation != (1, 1) or not all(call.stride):
        return False
    top, bottom, left, right = call.padding
    if (call.input_height + top + bottom) % call.stride[0] or (call.input_width + left + right) % call.stride[1]:
        return False
    place = call.input.spec.memory_config
    in_dram = call.input.on_host or place.buffer_type is BufferType.DRAM
    rows_or_plain = call.input.spec.layout is Layout.ROW_MAJOR or not any(call.padding)
    return (in_dram and rows_or_plain) or (
        not call.input.on_host and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    )


def folded_input(builder: PlanBuilder, call: ConvCall) -> PlanTensor:
    """The input with its windows folded into channels, as rows; every copy made on the way is released.

    Returns:
        "input.folded" [N, H / sh, W / sw, sh * sw * C].

    Raises:
        DeviceError: Shards can not be padded, made rows or folded.
    """
    source = builder.tensor("input")
    start = uploaded_image(builder, source) if call.input.on_host else source
    image = reshaped(builder, start, image_shape(call), "input.image")
    if image.name != start.name and call.input.on_host:
        builder.free(start)
    ready = _dealt(builder, call, _as_rows(builder, _padded(builder, call, image), image), image)
    made = _folded(builder, call, ready)
    consumes = call.conv_config.deallocate_activation and not call.input.on_host and start.in_l1
    for one in {copy.name: copy for copy in (ready, image)}.values():
        if one.name != source.name:
            builder.free(one)
    if consumes:
        builder.free(source)
    return made


def _padded(builder: PlanBuilder, call: ConvCall, image: PlanTensor) -> PlanTensor:
    """The image with zeros around it; itself if there is no padding."""
    if not any(call.padding):
        return image
    (batch, height, width, channels), (top, bottom, left, right) = image.spec.shape, call.padding
    shape = (batch, height + top + bottom, width + left + right, channels)
    made = TensorSpec(shape, image.spec.data_format, Layout.ROW_MAJOR, image.spec.memory_config)
    op = PadImage(image=(batch, height, width, channels), padding=call.padding)
    return builder.run("PadDeviceOperation", op, [image], output=PlanTensor("input.padded", made))


def _as_rows(builder: PlanBuilder, image: PlanTensor, kept: PlanTensor) -> PlanTensor:
    """Tiles that Fold does not read as rows: those in shards, and those whose rows split words."""
    spec, place = image.spec, image.spec.memory_config
    row_bytes = spec.shape[-1] * (_row_format(spec).element_bytes or 0)
    splits_words = row_bytes % builder.device_spec.l1.alignment_bytes != 0
    if spec.layout is not Layout.TILE or not (place.is_sharded() or splits_words):
        return image
    whole, shards = not any(side % TILE for side in spec.shape[-2:]), place.shard_spec
    if shards is not None and not whole:
        if place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and prod(spec.shape[:-2]) > 1:
            raise DeviceError(
                "Can only write unbatched output for BLOCK_SHARDED -> BLOCK_SHARDED\n"
                f"input_tensor: Fold wants rows of an image of {list(spec.shape)}; give rows, or other shards"
            )
        if place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
            place = replace(place, shard_spec=replace(shards, shape=(_untiled_rows(spec, shards), spec.shape[-1])))
        elif place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
            rows = prod(spec.shape[:-1])
            place = replace(place, shard_spec=replace(shards, shape=(rows, shards.shape[1])))
    made = TensorSpec(spec.shape, _row_format(spec), Layout.ROW_MAJOR, place)
    conversion = Conversion.UNTILIZE if whole else Conversion.UNTILIZE_WITH_UNPADDING
    return _replaced(builder, image, converted(builder, conversion, image, made, "input.untiled"), kept)


def _untiled_rows(spec: TensorSpec, shards: ShardSpec) -> int:
    """Rows of a HEIGHT shard whose tiles became rows without their padding.

    Shards of several whole image rows keep them; others share all rows evenly, in whole tiles.
    """
    in_image, padded = spec.shape[-2], spec.padded_shape[-2]
    if shards.shape[0] > padded and not shards.shape[0] % padded:
        return shards.shape[0] // padded * in_image
    return round_up(div_up(prod(spec.shape[:-1]), shards.num_cores()), TILE)


def _dealt(builder: PlanBuilder, call: ConvCall, image: PlanTensor, kept: PlanTensor) -> PlanTensor:
    """HEIGHT shards that do not hold whole rows of windows, dealt anew to as many cores as there can be."""
    if image.spec.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return image
    dealt = whole_windows(image.spec, call.stride, builder.device_spec)
    return _replaced(builder, image, convert(builder, image, dealt, "input.dealt"), kept)


def _replaced(builder: PlanBuilder, old: PlanTensor, new: PlanTensor, kept: PlanTensor) -> PlanTensor:
    """The new tensor; what it was made from is released at once, but for one that is kept."""
    if old.name not in (kept.name, new.name):
        builder.free(old)
    return new


def _folded(builder: PlanBuilder, call: ConvCall, image: PlanTensor) -> PlanTensor:
    """Windows as channels; shards become as much wider as they become lower."""
    (batch, height, width, channels), (rows, columns), place = image.spec.shape, call.stride, image.spec.memory_config
    positions = rows * columns
    if place.shard_spec is not None:
        high, wide = place.shard_spec.shape
        if high % positions:
            raise DeviceError(
                f"Fold: sharded input shard height ({high}) must be divisible by patch_size ({positions}).\n"
                f"input_tensor: give shards of whole windows; {WAY_OUT}"
            )
        shards = replace(place.shard_spec, shape=(high // positions, wide * positions))
        place = replace(place, shard_spec=shards)
    shape = (batch, height // rows, width // columns, positions * channels)
    made = TensorSpec(shape, _row_format(image.spec), Layout.ROW_MAJOR, place)
    fold = FoldWindows(window=call.stride, image=(batch, height, width, channels), data_format=made.data_format)
    return builder.run("Fold", fold, [image], output=PlanTensor(FOLDED, made))


def _row_format(spec: TensorSpec) -> DataFormat:
    """Format of rows: bfloat16 where there were block floats."""
    return BFLOAT16 if spec.data_format.is_block else spec.data_format


def folded_call(call: ConvCall, image: TensorSpec) -> ConvCall:
    """The convolution that is left of a call whose input was folded to this image, at stride 1."""
    kernel = tuple(map(div_up, call.kernel_size, call.stride))
    return replace(
        call,
        input=Operand(spec=image, on_host=False, name=FOLDED),
        in_channels=call.in_channels * prod(call.stride),
        input_height=image.shape[1],
        input_width=image.shape[2],
        kernel_size=(kernel[0], kernel[1]),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        folding=Folding(kernel=call.kernel_size, stride=call.stride, weights=takes_l1_path(call)),
        out_format=output_format(call),
    )


def sliced_as(folded: ConvCall, call: ConvCall) -> ConvCall:
    """The folded call as slices are planned: with layout and format of the input that was not folded yet."""
    image, given = folded.input.spec, call.input.spec
    seen = TensorSpec(image.shape, given.data_format, given.layout, image.memory_config)
    return replace(folded, input=replace(folded.input, spec=seen))


UNFOLD: Final = "conv_config.enable_kernel_stride_folding: leave it to the library"


def validate(call: ConvCall) -> None:
    """Refuses a call that the real library refuses, or that is not simulated."""
    raise_first(call, (_output_override,))
    raise_first(call, SIZE_CHECKS)
    raise_first(call, (_folded_sizes, _folded_rank))
    if not folds(call):
        validate_whole(call)


def validate_whole(call: ConvCall) -> None:
    """The checks of `validate` that come once windows are folded, if they are: of what is left of the call."""
    whole_windows = call.folding is not None and call.folding.whole  # of which no slices are cut
    raise_first(call, () if is_matmul(call) or whole_windows else INPUT_CHECKS)
    raise_first(call, (_sliced_weight_rank, *CONFIG_CHECKS), INPUT_RANK_CHECKS)


def validate_prepared(call: ConvCall, role: str) -> None:
    """Refuses the preparation of the weights or the bias of a call to come."""
    raise_first(call, (bias_format_known,) if role == "bias" else ())
    raise_first(call, SIZE_CHECKS, (_folded_lengths,) if folds(call) else ())
    raise_first(call, (weight_refusals,) if role == "weight" else (bias_shape,), CONFIG_CHECKS)


def validate_prepared_blocks(call: ConvCall) -> None:
    """Refuses to prepare block floats for what is left of a call, once windows are folded.

    Raises:
        ArgumentError: Its input is in DRAM, and it is no matmul.
    """
    raise_first(call, () if prepared_as_matmul(call) else (rows_of_block_operands,))


def check_arguments(call: ConvCall, *, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that the real library crashes on, and the ways to compute it that are not simulated."""
    refuse_first("conv2d", call, (sizes_given, groups_divide, groups_given, dilation_given))
    folded = output_size(call) if folds(call) else None
    require_outputs(call, next(_output_size(call), None), free_l1_bytes, folded=folded)
    refuse_first("conv2d", call, SIMULATED_CHECKS)


def check_strict(call: ConvCall) -> None:
    """Refuses a call that the real library accepts and gets wrong."""
    refuse_first("conv2d", call, (_folded_dilation, _folded_padding, _slices_with_input, *OPERAND_CHECKS))


def output_size(call: ConvCall) -> tuple[int, int]:
    """Height and width of the output; zero or less where the kernel does not fit."""
    if not folds(call):
        return output_lengths(call)
    top, bottom, left, right = call.padding
    height, width = (
        (length + padding) // stride - dilation * (div_up(kernel, stride) - 1)
        for length, padding, kernel, dilation, stride in zip(
            (call.input_height, call.input_width),
            (top + bottom, left + right),
            call.kernel_size,
            call.dilation,
            call.stride,
            strict=True,
        )
    )
    return height, width


def _output_size(call: ConvCall) -> Iterator[str]:
    height, width = output_size(call)
    if height < 1 or width < 1:
        yield (
            f"conv2d: kernel_size {call.kernel_size} with dilation {call.dilation} does not fit an image of "
            f"{call.input_height} x {call.input_width} with padding {call.padding}; pad more"
        )


def _output_override(call: ConvCall) -> Iterator[str]:
    if call.conv_config.override_output_sharding_config and not takes_l1_path(call):
        yield (
            "Conv2D DRAM slicing doesn't support override_output_sharding_config.\n"
            "conv_config.override_output_sharding_config: put the input in L1, or leave the override out"
        )


def _folded_lengths(call: ConvCall) -> Iterator[str]:
    top, bottom, left, right = call.padding
    for name, length, stride in (
        ("height", call.input_height + top + bottom, call.stride[0]),
        ("width", call.input_width + left + right, call.stride[1]),
    ):
        if length % stride:
            yield (
                f"Padded input {name} ({length}) must be divisible by stride ({stride}) for kernel stride folding.\n"
                f"{UNFOLD}, or pad to whole windows"
            )


def _folded_sizes(call: ConvCall) -> Iterator[str]:
    if not folds(call):
        return
    yield from _folded_lengths(call)
    if call.stride[0] > call.kernel_size[0] or call.stride[1] > call.kernel_size[1]:
        yield (
            "Conv2D kernel stride folding: Stride must be less than or equal to kernel size\n"
            f"{UNFOLD}: windows of {call.kernel_size} at stride {call.stride} leave pixels out"
        )
    spec, place = call.input.spec, call.input.spec.memory_config
    high_shards = place.is_sharded() and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if not call.input.on_host and spec.shape[1:3] != (call.input_height, call.input_width):
        text = view_refusal(spec, image_shape(call))
        if text is not None:
            yield text
    if (call.padding[0] or call.padding[2]) and spec.layout is Layout.TILE and not high_shards:
        yield f"ttnn.pad: on device tile padding does not support front padding\n{UNFOLD}, or give rows"


def _sliced_weight_rank(call: ConvCall) -> Iterator[str]:
    """A weight that is asked for its kernel first, to plan slices and to choose their scheme."""
    chosen = call.conv_config.shard_layout is None
    if chosen and call.weight.on_host and not takes_l1_path(call) and not is_matmul(call):
        yield from rank(
            "weight_tensor", "[out_channels, in_channels / groups, kernel height, kernel width]", call.weight
        )


def _folded_rank(call: ConvCall) -> Iterator[str]:
    """An input that is folded as it is, with other than four axes."""
    shape, stride = call.input.spec.shape, call.stride[0]
    if not folds(call) or len(shape) == IMAGE_AXES:
        return
    if len(shape) < IMAGE_AXES:
        yield (
            f"ShapeBase[] index out of range. {len(shape)} not in [-4, {len(shape)})\n"
            f"input_tensor: give it as [N, H, W, C], not with the shape {list(shape)}; or {WAY_OUT}"
        )
    elif shape[1] % stride:
        yield (
            f"Fold: logical H ({shape[1]}) must be divisible by stride_h ({stride}).\n"
            f"input_tensor: give it as [N, H, W, C], not with the shape {list(shape)}; or {WAY_OUT}"
        )


def _slices_with_input(call: ConvCall) -> Iterator[str]:
    config = call.slice_config
    if config is None or config.num_slices < 2 or takes_l1_path(call) or is_matmul(call) or folds(call):
        return
    if plans_without_outputs(call):
        return
    if any(part.is_empty for part in output_slices(call, config)):
        yield (
            f"slice_config: one of {config.num_slices} slices lies in the padding alone, and the real library leaves "
            "it and all that follow unwritten; use fewer slices"
        )


def _folded_dilation(call: ConvCall) -> Iterator[str]:
    """Taps that are folded as if they were neighbors."""
    if folds(call) and any(taps > 1 and apart > 1 for taps, apart in zip(call.kernel_size, call.dilation, strict=True)):
        yield f"folding windows with dilation {call.dilation} gives wrong results; {WAY_OUT}"


def _folded_padding(call: ConvCall) -> Iterator[str]:
    """Images that are padded with zeros before they are folded."""
    if folds(call) and call.conv_config.replicate_padding and any(call.padding):
        yield f"padding_mode Replicate is padded with zeros where windows are folded; {WAY_OUT}"


def _folding(call: ConvCall) -> Iterator[str]:
    if not folds(call):
        return
    spec, place = call.input.spec, call.input.spec.memory_config
    if call.input.on_host or not place.is_sharded():
        return
    if any(call.padding) and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        yield f"folding windows of padded HEIGHT shards is not simulated; {WAY_OUT}"
    if spec.layout is Layout.ROW_MAJOR and spec.matrix[1] != call.in_channels:
        yield f"folding windows of shards that are wider than {call.in_channels} channels is not simulated; {WAY_OUT}"


def _depthwise(call: ConvCall) -> Iterator[str]:
    depthwise = call.groups == call.in_channels == call.out_channels and call.groups > 1
    one_row = call.kernel_size[0] == 1 and call.input_height == 1
    if depthwise and one_row and call.bias is None and not is_matmul(call):
        yield (
            "the depthwise convolution of a single row without a bias, which the real library computes element by "
            "element, is not simulated; give a bias of zeros to have it computed as any other"
        )


SIMULATED_CHECKS: Final[tuple[Check, ...]] = (_folding, _depthwise)


def plan_conv2d(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True) -> Plan:
    """Plan a call of conv2d, validated; arguments and errors as of `plan_convolution`.

    Windows that are folded into channels leave a convolution of stride 1. Side by side, that is a 1x1 kernel, which
    the DRAM path takes to the L1 path, where it is a matmul unless it has a dilation or WIDTH shards.
    """
    if not folds(call):
        return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    builder = builder_of(call, device_spec)
    image = folded_input(builder, call)
    folded = folded_call(call, image.spec)
    validate_whole(folded)
    if is_matmul(folded):
        output = matmul_path(builder, folded, image, from_dram=False, free_l1_bytes=free_l1_bytes)
    elif takes_l1_path(call) or call.kernel_size == call.stride:
        output = l1_path(builder, folded, image)
    else:
        output = dram_path(builder, sliced_as(folded, call), image, free_l1_bytes=free_l1_bytes)
    if builder.is_own(image) and not builder.refused:
        builder.free(image)
    return finished(builder, folded, output, returns_weights=returns_weights)


def conv2d_reads_free_l1(call: ConvCall) -> bool:
    """Whether the free bytes of L1 can change the plan of a call; folded windows can leave a matmul or slices."""
    return folds(call) or reads_free_l1(call)


def left_of(call: ConvCall, plan: Plan) -> ConvCall:
    """What the plan of a call carries out of it: itself, or what was left when its windows were folded."""
    return folded_call(call, plan.tensors[FOLDED]) if folds(call) else call


def _axis(call: ConvCall, axis: int) -> PaddedAxis:
    """The rows (0) or the columns (1) of the frame."""
    before, after = call.padding[2 * axis : 2 * axis + 2]
    return convolution_axis(
        input_length=(call.input_height, call.input_width)[axis],
        kernel=call.kernel_size[axis],
        stride=call.stride[axis],
        padding=(before, after),
        dilation=call.dilation[axis],
    )


def _window(call: ConvCall, axis: int, bounds: tuple[int, int], outputs: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    length, stride = (call.input_height, call.input_width)[axis], call.stride[axis]
    before, after = call.padding[2 * axis : 2 * axis + 2]
    reach = call.dilation[axis] * (call.kernel_size[axis] - 1)
    first, last = bounds
    start, stop = first * stride - before, (last - 1) * stride - before + reach + 1
    pad_before, pad_after = max(0, -start), max(0, stop - length)
    if first == 0:
        start, pad_before = 0, before
    if last == outputs:
        stop, pad_after = length, after
    return AxisWindow(max(0, start), min(length, stop), (pad_before, pad_after), 0)


def _filled(call: ConvCall, across: AxisWindow, columns: int) -> AxisWindow:
    """The window with more columns of output."""
    before, after = across.padding
    return across._replace(padding=(before, after + columns * call.stride[1]))


CONV2D: Final = ConvRules(
    function="conv2d",
    transposed=False,
    axis=_axis,
    window=_window,
    filled=_filled,
    one_slice_skips_dram=False,
    whole_window_is_slice=False,
    shards_uploaded_image=True,
    copy_freed=Freed.AFTER_HALO,
    halo_freed=Freed.AFTER_MOVE,
    skips_halo=True,
    orders_full_inner_dim=True,
    reuses_activations=True,
)
