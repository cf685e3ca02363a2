"""Multiply-adds of recorded calls, counted anew: useful ones over all outputs and taps, issued ones by tiles."""

from itertools import accumulate
from math import ceil, prod

from device.memory.memory_config import Layout
from ops.programs.conv2d.partition import BLOCK

CONV, MATMUL = "Conv2dDeviceOperation", "MatmulDeviceOperation"
TILE_PRODUCT = 32**3


def taps_of_outputs(*, length, outputs, kernel, start, dilation, spread, stride):
    """Taps of each output along an axis that meet an input or the padding around the image, in order of the outputs.

    Inputs lie `spread` apart; tap t of output o meets the position start + o * stride + t * dilation. Zeros between
    inputs do not count, nor do taps that meet nothing but padding in all outputs of like place between the inputs.
    """
    counts = []
    for output in range(outputs):
        alike = [other for other in range(outputs) if (other - output) * stride % spread == 0]
        met = 0
        for tap in range(kernel):
            if (start + output * stride + tap * dilation) % spread == 0:
                places = [(start + other * stride + tap * dilation) // spread for other in alike]
                met += any(0 <= place < length for place in places)
        counts.append(met)
    return counts


def taps_of_axis(axis):
    """The taps of each output of an axis of a program."""
    return taps_of_outputs(
        length=axis.data, outputs=axis.outputs, kernel=axis.kernel, start=-axis.before, dilation=axis.dilation,
        spread=axis.input_dilation, stride=axis.stride,
    )  # fmt: skip


def taps_of_call(call, axis, part=None):
    """The taps of each output of a call along an axis, by the definitions of convolutions, or of a slice of these.

    A convolution in one piece takes padding by more than a transposed kernel reaches for padding of the whole image.
    """
    kernel, stride, dilation = (each[axis] for each in (call.kernel_size, call.stride, call.dilation))
    before, after = call.padding[2 * axis : 2 * axis + 2]
    length = (call.input_height, call.input_width)[axis]
    reach = dilation * (kernel - 1)
    if not call.rules.transposed:
        part = part or range((length + before + after - reach - 1) // stride + 1)
        return taps_of_outputs(
            length=length, outputs=len(part), kernel=kernel, start=part.start * stride - before, dilation=dilation,
            spread=1, stride=stride,
        )  # fmt: skip
    if part is None:
        part = range((length - 1) * stride - before - after + reach + call.output_padding[axis] + 1)
        length = 0 if before > reach else length
    # Tap t of output o meets the input i with o = i * stride - before + t * dilation
    return taps_of_outputs(
        length=length, outputs=len(part), kernel=kernel, start=part.start + before, dilation=-dilation, spread=stride,
        stride=1,
    )  # fmt: skip


def fault_of_operation(name, op, ends, counted):
    """What is wrong with the multiply-adds of an operation; empty if nothing is."""
    issued, useful = (sum(getattr(each, what) for each in counted.multiply_adds) for what in ("issued", "useful"))
    if useful > issued:
        return f"issues {issued} multiply-adds, of which {useful} are useful"
    if name == CONV:
        problem = op.problem
        area = prod(sum(taps_of_axis(axis)) for axis in (problem.frame.rows, problem.frame.columns))
        want = problem.frame.batch * area * problem.in_channels * problem.out_channels // problem.groups
        if useful != want:
            return f"has {useful} useful multiply-adds, its outputs and taps {want}"
        shards = ends.written.memory_config.shard_spec
        k_tiles = ceil(prod(ends.others[0].padded_shape[:-1]) / 32)
        if op.options.full_inner_dim and op.layout.scheme is BLOCK:  # a core takes all rows of the kernel at once
            width = op.layout.shards.in_width * prod(problem.kernel)
            k_tiles = op.layout.config.channel_cores * ceil(width / 32)
        want = shards.grid.num_cores() * ceil(shards.shape[0] / 32) * ceil(shards.shape[1] / 32) * k_tiles
        return "" if issued == want * TILE_PRODUCT else f"issues {issued}, its tiles {want * TILE_PRODUCT}"
    if name == MATMUL:
        rows, columns = prod(ends.written.shape[:-1]), ends.written.shape[-1]
        depth = ends.read.shape[-2 if op.problem.transpose_first else -1]
        if useful != rows * columns * depth:
            return f"has {useful} useful multiply-adds, its outputs {rows * columns * depth}"
        rows, columns = prod(ends.written.padded_shape[:-1]), ends.written.padded_shape[-1]
        down, across = op.config.per_core_m, op.config.per_core_n  # tiles of a core, the last ones behind the output
        tiles = ceil(rows / 32 / down) * down * ceil(columns / 32 / across) * across
        want = tiles * ceil(depth / 32) * TILE_PRODUCT
        return "" if issued == want else f"issues {issued}, its tiles {want}"
    return f"has {useful} multiply-adds" if issued else ""


def fault_of_call(call, operations):
    """What is wrong with the useful multiply-adds of a convolution in all its operations; empty if nothing is.

    Slices share out the rows or columns of the output. Tiles are whole: each slice computes columns up to a multiple of
    32, those behind the image as well. A slice that meets no input runs no convolution. Each operation is held to its
    own outputs by `fault_of_operation`.
    """
    whole, each = [taps_of_call(call, axis) for axis in range(2)], call.batch_size * call.in_channels
    each = each * call.out_channels // call.groups
    useful = sum(product.useful for _, _, counted in operations for product in counted.multiply_adds)
    frames = [op.problem.frame for name, op, _ in operations if name == CONV]
    if len(frames) < 2:
        want = each * sum(whole[0]) * sum(whole[1])
        return "" if useful == want else f"has {useful} useful multiply-adds, its definition {want}"
    parts = [(frame.rows.outputs, frame.columns.outputs) for frame in frames]
    height, width = map(len, whole)
    widths = {width, ceil(width / 32) * 32} if call.conv_config.output_layout is Layout.TILE else {width}
    cut = 0 if widths.issuperset(columns for _, columns in parts) else 1
    ends = [*accumulate(part[cut] for part in parts)]
    if ends[-1] > height and not cut and call.padding[0] > call.dilation[0] * (call.kernel_size[0] - 1):
        return ""  # slices begin behind the image, and compute rows that none of them hands on
    others = {height} if cut else widths
    if not others.issuperset(part[1 - cut] for part in parts) or ends[-1] > (max(widths) if cut else height):
        return f"has slices of {parts} outputs of {height} x {width}"
    if ends[-1] < (width if cut else height):  # which slices are missing is not known
        most = each * sum(whole[0]) * sum(whole[1])
        return "" if useful < most else f"has {useful} useful multiply-adds without a slice, its definition {most}"
    taps = [
        (taps_of_call(call, cut, range(end - part[cut], end)), taps_of_call(call, 1 - cut, range(part[1 - cut])))
        for part, end in zip(parts, ends, strict=True)
    ]
    want = each * sum(sum(own) * sum(other) for own, other in taps)
    return "" if useful == want else f"has {useful} useful multiply-adds in slices {parts}, its definition {want}"
