"""Multiply-adds of recorded calls, counted anew: useful ones over all outputs and taps, issued ones by tiles."""

from math import ceil, prod

from ops.programs.conv2d.partition import BLOCK

CONV, MATMUL, SLICE_WRITE = "Conv2dDeviceOperation", "MatmulDeviceOperation", "SliceWriteDeviceOperation"
TILE_PRODUCT = 32**3


def taps_of_outputs(*, length, outputs, kernel, start, dilation, spread, stride):
    """Taps of each output along an axis that meet an input or the padding around the image, in order of the outputs.

    Inputs lie `spread` apart; tap t of output o meets the position start + o * stride + t * dilation. Zeros between
    inputs do not count, nor do taps that meet nothing but padding in all outputs of like place between the inputs.
    """
    firsts = [start + output * stride for output in range(outputs)]  # positions of the first tap
    alike = {
        place: [first for first in firsts if first % spread == place] for place in {first % spread for first in firsts}
    }
    met = {
        place: sum(
            (place + tap * dilation) % spread == 0
            and any(0 <= first + tap * dilation < length * spread for first in group)
            for tap in range(kernel)
        )
        for place, group in alike.items()
    }
    return [met[first % spread] for first in firsts]


def taps_of_axis(axis):
    """The taps of each output of an axis of a program."""
    return taps_of_outputs(
        length=axis.data, outputs=axis.outputs, kernel=axis.kernel, start=-axis.before, dilation=axis.dilation,
        spread=axis.input_dilation, stride=axis.stride,
    )  # fmt: skip


def taps_of_call(call, axis, part=None):
    """The taps of each output of a call along an axis, by the definitions of convolutions, or of a slice of these.

    Padding by more than a transposed kernel reaches is taken for padding of the whole image, unless the slice begins
    behind it.
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
    part = part or range((length - 1) * stride - before - after + reach + call.output_padding[axis] + 1)
    length = 0 if before > reach and not part.start else length
    # Tap t of output o meets the input i with o = i * stride - before + t * dilation
    return taps_of_outputs(
        length=length, outputs=len(part), kernel=kernel, start=part.start + before, dilation=-dilation, spread=stride,
        stride=1,
    )  # fmt: skip


def weight_rows_of(op, weights):
    """Rows of tiles of the weights that a convolution multiplies: all, or as many as the channels of its shards are.

    In BLOCK shards a core multiplies its channels under a row of the kernel, or under all rows at once.
    """
    if op.layout.scheme is not BLOCK:
        return ceil(prod(weights.padded_shape[:-1]) / 32)
    kernel = op.problem.kernel
    times, taps = (1, prod(kernel)) if op.options.full_inner_dim else kernel
    return op.layout.config.channel_cores * times * ceil(op.layout.shards.in_width * taps / 32)


def fault_of_operation(name, op, ends, counted, added_rows, groups):
    """What is wrong with the multiply-adds of an operation; empty if nothing is.

    The first input of a matmul ends in rows that were added to it; its columns may be in groups of a convolution.
    """
    issued, useful = (sum(getattr(each, what) for each in counted.multiply_adds) for what in ("issued", "useful"))
    if useful > issued:
        return f"issues {issued} multiply-adds, of which {useful} are useful"
    if name == CONV:
        problem = op.problem
        area = prod(sum(taps_of_axis(axis)) for axis in (problem.frame.rows, problem.frame.columns))
        weights = prod(problem.kernel) * problem.in_channels // problem.groups  # of an output channel
        products = problem.frame.batch * area * problem.in_channels * problem.out_channels // problem.groups
        want = products * (weights - problem.zero_weights) // weights
        if useful != want:
            return f"has {useful} useful multiply-adds, its outputs and taps {want}"
        shards = ends.written.memory_config.shard_spec
        want = shards.grid.num_cores() * ceil(shards.shape[0] / 32) * ceil(shards.shape[1] / 32)
        want *= weight_rows_of(op, ends.others[0])
        return "" if issued == want * TILE_PRODUCT else f"issues {issued}, its tiles {want * TILE_PRODUCT}"
    if name == MATMUL:
        rows, columns = prod(ends.written.shape[:-1]) - added_rows, ends.written.shape[-1]
        depth = ends.read.shape[-2 if op.problem.transpose_first else -1]
        want = rows * columns * depth // groups
        if useful != want:
            return f"has {useful} useful multiply-adds, its outputs {want}"
        down, across = op.config.per_core_m, op.config.per_core_n  # tiles of a core, the last ones behind the output
        high, wide = prod(ends.written.padded_shape[:-1]) // 32, ends.written.padded_shape[-1] // 32
        parts = op.problem.batches if down <= high // op.problem.batches else 1  # cores begin anew with each matrix
        tiles = parts * ceil(high / parts / down) * down * ceil(wide / across) * across
        want = tiles * ceil(depth / 32) * TILE_PRODUCT
        return "" if issued == want else f"issues {issued}, its tiles {want}"
    return f"has {useful} multiply-adds" if issued else ""


def fault_of_call(call, operations):
    """What is wrong with the useful multiply-adds of a convolution in all its operations; empty if nothing is.

    Slices share out the rows or columns of the output, and each is written into its window. A slice counts all outputs
    that it computes from the beginning of its window on: those behind it as well, which fill tiles or come of more
    inputs than the window needs. Slices that meet no input are not computed; the last outputs are then missing. Each
    operation is held to its own outputs by `fault_of_operation`.
    """
    whole = [range(len(taps_of_call(call, axis))) for axis in range(2)]
    windows, computed, frame = [], [], None
    for name, op, _ in operations:
        if name == CONV:
            frame = op.problem.frame
        elif name == SLICE_WRITE:
            begins, sizes = op.window.begins[1:3], (frame.rows.outputs, frame.columns.outputs)
            windows.append([*map(range, begins, op.window.ends[1:3])])
            computed.append([range(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)])
    if not follow(windows, whole):
        return f"has slices {windows} of {whole}"
    areas = (prod(sum(taps_of_call(call, axis, part[axis])) for axis in range(2)) for part in computed or [whole])
    want = call.batch_size * call.in_channels * call.out_channels // call.groups * sum(areas)
    useful = sum(product.useful for _, _, counted in operations for product in counted.multiply_adds)
    return "" if useful == want else f"has {useful} useful multiply-adds in slices {computed}, its definition {want}"


def follow(windows, whole):
    """Whether windows follow each other along one axis of the output, from its beginning on."""
    cut = 1 if all(rows == whole[0] for rows, _ in windows) else 0
    begins = [window[cut].start for window in windows]
    ends = [window[cut].stop for window in windows]
    return (
        begins == [0, *ends][: len(ends)]
        and all(window[1 - cut] == whole[1 - cut] for window in windows)
        and all(end <= whole[cut].stop for end in ends)
    )
