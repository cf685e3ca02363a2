"""Pools of images in DRAM that do not fit L1: slices of the output, pooled in sequence.

Rules: ttnn 0.81.1, compared with the real planner; the slices are those of convolutions (`ops.planners.conv.slicing`).
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    FACE,
    TILE,
    BufferType,
    Layout,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT16, FLOAT32, div_up, round_up
from device.plan import Decision, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.planners.conv.arguments import SliceConfig, SliceType
from ops.planners.conv.slicing import (
    OTHER_AXIS,
    AxisWindow,
    OutputSlice,
    cut_slices,
    describe_slices,
    guessed_axis,
    none_found,
    too_many_line,
    window_of,
)
from ops.planners.pool import (
    PoolArguments,
    alignment_of,
    chosen_cores,
    input_memory,
    is_global,
    pool_cores,
    pool_sizes,
    pooled,
)
from ops.programs.averages import Averaging
from ops.programs.data_movement.reshape import reshaped
from ops.programs.data_movement.slice import SliceWrite, Window, sliced_input, write_slice
from ops.programs.halo.transfers import most_sticks


def reads_free_l1(call: PoolArguments, given: SliceConfig | None) -> bool:
    """Whether a call may be split into slices: its images are in DRAM, and no single slice or indices are requested."""
    place = call.source.memory_config
    whole = given is not None and (given.slice_type is SliceType.L1_FULL or given.num_slices == 1)
    in_dram = place.buffer_type is BufferType.DRAM and not place.is_sharded()
    return in_dram and not whole and not call.return_indices and not is_global(call)


def choose_slices(
    call: PoolArguments, given: SliceConfig | None, spec: DeviceSpec, *, free_l1_bytes: int
) -> SliceConfig:
    """The slices that the caller counted, or the smallest number that fits the free L1 by the library's estimate.

    Raises DeviceError where none fits, or where a slice is smaller than a window.
    """
    if given is not None and given.num_slices:
        config = given
    else:
        config = _fewest(call, _kinds(call, given), spec, free_l1_bytes)
    if config.num_slices > 1:
        _require_windows(call, config)
        most = _most(call, config.slice_type)
        if config.num_slices > most:
            raise DeviceError(f"{too_many_line(config.num_slices, most)}\ndram_slice_config: use fewer slices")
    return config


def _kinds(call: PoolArguments, given: SliceConfig | None) -> list[SliceType]:
    """The axes that the search tries, in order."""
    if given is not None:
        return [given.slice_type]
    guess = guessed_axis(*call.image, tiled=call.tiled)
    return [guess, OTHER_AXIS[guess]]


def _fewest(call: PoolArguments, kinds: list[SliceType], spec: DeviceSpec, free_l1_bytes: int) -> SliceConfig:
    scheme = call.scheme or chosen_cores(call, spec.grid).scheme
    for kind in kinds:
        for count in range(1, _most(call, kind) + 1):
            config = SliceConfig(slice_type=kind, num_slices=count)
            if all(slice_l1_bytes(call, part, scheme, spec) <= free_l1_bytes for part in _parts(call, config)):
                return config
    last = kinds[-1]
    raise DeviceError(
        f"{none_found(last, _most(call, last), _length(call, last), free_l1_bytes)}\n"
        "input_tensor: pool fewer images or channels at a time, or release other tensors in L1 first"
    )


def _length(call: PoolArguments, kind: SliceType) -> int:
    """Outputs along the axis that is cut."""
    frame = call.frame
    return frame.rows.outputs if kind is SliceType.DRAM_HEIGHT else frame.columns.outputs


def _rounding(call: PoolArguments, kind: SliceType) -> int:
    return TILE if call.tiled and kind is SliceType.DRAM_WIDTH else 1


def _most(call: PoolArguments, kind: SliceType) -> int:
    """The largest number of slices."""
    return div_up(_length(call, kind), _rounding(call, kind))


def _parts(call: PoolArguments, config: SliceConfig) -> Iterable[OutputSlice]:
    """The slices of a call that read input, in order."""
    kind = config.slice_type
    parts = cut_slices(
        _cutter(call, kind), _length(call, kind), rounding=_rounding(call, kind), count=config.num_slices
    )
    return (part for part in parts if not part.is_empty)


def _cutter(call: PoolArguments, kind: SliceType) -> Callable[[tuple[int, int]], OutputSlice]:
    """The function that cuts the slice of some outputs along an axis; columns of tiled results fill whole tiles."""
    frame = call.frame
    sliced = int(kind is SliceType.DRAM_WIDTH)
    lengths = frame.rows.outputs, frame.columns.outputs

    def window(axis: int, bounds: tuple[int, int]) -> AxisWindow:
        of = (frame.rows, frame.columns)[axis]
        padding = call.padding[2 * axis], call.padding[2 * axis + 1]
        return window_of(of.input_length, of.stride, of.reach, padding, bounds, lengths[axis])

    def cut(bounds: tuple[int, int]) -> OutputSlice:
        both = [(0, lengths[0]), (0, lengths[1])]
        both[sliced] = bounds
        down, across = (window(axis, both[axis]) for axis in (0, 1))
        outputs = both[1][1] - both[1][0]
        if call.tiled and outputs % TILE:
            columns = frame.columns
            filled = (round_up(outputs, TILE) - 1) * columns.stride - across.length + columns.reach + 1
            across = across._replace(padding=(across.padding[0], filled))
        return OutputSlice(both[0], both[1], down, across)

    return cut


def _slice_call(call: PoolArguments, part: OutputSlice) -> PoolArguments:
    """The call that pools one slice."""
    image = part.down.length, part.across.length
    added = (call.frame.rows.after - call.padding[1], call.frame.columns.after - call.padding[3])
    ends = part.rows[1] == call.frame.rows.outputs, part.columns[1] == call.frame.columns.outputs
    return replace(
        call,
        source=TensorSpec((1, 1, call.batch * prod(image), call.channels), call.source.data_format, call.source.layout),
        image=image,
        padding=(*part.down.padding, *part.across.padding),
        ceiling=(added[0] * ends[0], added[1] * ends[1]),
        place=None,
        deallocate_input=True,
        reallocate_halo=True,
    )


def slice_l1_bytes(call: PoolArguments, part: OutputSlice, scheme: Scheme, spec: DeviceSpec) -> int:
    """L1 of one slice, as the real library estimates it in the search for a number of slices."""
    own = _slice_call(call, part)
    config = pool_cores(own, scheme, spec.grid, alignment=alignment_of(own))
    shards = input_memory(own, config).shard_spec
    assert shards is not None
    rows, columns = shards.shape
    element_bytes = 4 if call.source.data_format == FLOAT32 else 2
    # The library estimates the sticks with the rows that ceil_mode adds to a whole image
    frame = replace(own, ceiling=None).frame
    unit = config.nhw_cores * (TILE if call.tiled else 1)
    halo_rows = round_up(frame.outputs, unit) // config.nhw_cores
    halo = most_sticks(frame, output_rows=halo_rows, cores=config.nhw_cores) * columns * element_bytes
    read = rows * columns * element_bytes + 2 * round_up(columns * element_bytes, spec.l1.alignment_bytes)
    if call.source.layout is Layout.TILE:
        tile_bytes = (FLOAT32 if element_bytes == 4 else BFLOAT16).tile_bytes
        read += 4 * div_up(columns, TILE) * tile_bytes  # two buffers, each for a row of tiles and the next
    outputs = (part.rows[1] - part.rows[0]) * _columns(call, part) // config.nhw_cores
    if call.tiled:
        outputs = round_up(outputs, TILE)
    width = columns
    if not call.tiled:
        width = div_up(div_up(call.channels, config.channel_cores), FACE) * min(columns, FACE)
    sizes = replace(pool_sizes(call, config, (outputs, width)), scalars=not _has_one_scalar(call.averaging, own))
    return max(read, sizes.l1_bytes + outputs * columns * element_bytes) + halo


def _columns(call: PoolArguments, part: OutputSlice) -> int:
    """Columns of a slice of the output, whole tiles of a tiled result."""
    columns = part.columns[1] - part.columns[0]
    return round_up(columns, TILE) if call.tiled else columns


def _has_one_scalar(averaging: Averaging | None, own: PoolArguments) -> bool:
    """Whether the estimate assumes one scalar for a slice: it considers the padding at the top and at the left."""
    if averaging is None or averaging.divisor is not None:
        return True
    top, _, left, _ = own.padding
    return own.ceiling == (0, 0) and (averaging.padding_counts or not (top or left))


def _require_windows(call: PoolArguments, config: SliceConfig) -> None:
    """Raises DeviceError where the smallest slice of the input is smaller than a window, as the library cuts it."""
    high = config.slice_type is SliceType.DRAM_HEIGHT
    axis, before = (call.frame.rows, call.padding[0]) if high else (call.frame.columns, call.padding[2])
    window, length, count, sizes = axis.reach + 1, axis.outputs, config.num_slices, []
    for index in range(count):
        first, last = index * length // count, (index + 1) * length // count
        start, stop = first * axis.stride - before, (last - 1) * axis.stride - before + window
        sizes.append(min(axis.input_length, stop) - max(0, start))
    if min(sizes) >= window:
        return
    name = "height" if high else "width"
    pairs = (("Kernel", call.kernel), ("Stride", call.stride), ("Dilation", call.dilation))
    settings = ", ".join(f"{word}: {down}x{across}" for word, (down, across) in pairs)
    frame = call.frame
    raise DeviceError(
        f"Cannot fit Pool2D operation in L1 memory with DRAM slicing. The smallest input slice (size={min(sizes)}) in "
        f"the {name} dimension is smaller than the effective kernel size ({window}). {settings}, Num slices: {count}, "
        f"Slicing dimension: {name}. Input shape: {call.image[0]}x{call.image[1]}, Output shape: "
        f"{frame.rows.outputs}x{frame.columns.outputs}, Channels: {call.channels}. This means the tensor cannot be "
        "processed even with DRAM slicing. Consider: (1) reducing kernel size, (2) reducing dilation, (3) increasing "
        "stride, or (4) if possible, increasing available L1 memory to reduce the number of slices needed.\n"
        "dram_slice_config: use fewer slices, or cut along the other axis"
    )


def plan_sliced_pool(call: PoolArguments, config: SliceConfig, spec: DeviceSpec) -> Plan:
    """Plan a call in several slices; its images are the tensor "input", and the result [N, OH, OW, C] is in DRAM."""
    frame = call.frame
    builder = PlanBuilder(spec, {"input": call.source})
    builder.decide(Decision(name="num_slices", value=config.num_slices, text=describe_slices(config)))
    source = builder.tensor("input")
    image = reshaped(builder, source, (call.batch, *call.image, call.channels), "input.image")
    shape = (call.batch, frame.rows.outputs, frame.columns.outputs, call.channels)
    layout = Layout.TILE if call.tiled else Layout.ROW_MAJOR
    target = builder.allocate("output.image", TensorSpec(shape, call.data_format, layout, DRAM_MEMORY_CONFIG))
    scheme = call.scheme or chosen_cores(call, spec.grid).scheme
    for index, part in enumerate(_parts(call, config)):
        own, prefix = _slice_call(call, part), f"slice{index}."
        columns = _columns(call, part)
        if own.frame.columns.outputs != columns or own.frame.rows.outputs != part.rows[1] - part.rows[0]:
            raise NotSimulatedError(
                f"{call.function}: ttsim does not simulate slices of tiled results that the library pools to more "
                "columns than they have; leave output_layout out"
            )
        cores = pool_cores(own, scheme, spec.grid, alignment=alignment_of(own))
        read = _box(image.spec.shape, part.down, part.across)
        window = sliced_input(builder, image, read, input_memory(own, cores), f"{prefix}input")
        results = pooled(builder, replace(own, source=window.spec, scheme=None), window, prefix)
        if builder.refused:
            break
        box = Window(shape=shape, begins=_corner(part, 0, 0), ends=_corner(part, 1, call.batch, call.channels))
        write_slice(builder, results["output"], target, SliceWrite(box, columns), f"{prefix}written")
    if not builder.refused and image.name != source.name:
        builder.free_own(image)
    return builder.finish({} if builder.refused else {"output": target})


def _corner(part: OutputSlice, end: int, image: int, channel: int = 0) -> tuple[int, int, int, int]:
    return image, part.rows[end], part.columns[end], channel


def _box(shape: tuple[int, ...], down: AxisWindow, across: AxisWindow) -> Window:
    """The part of images [N, H, W, C] that a slice reads."""
    images, height, width, channels = shape
    begins, ends = (0, down.start, across.start, 0), (images, down.stop, across.stop, channels)
    return Window(shape=(images, height, width, channels), begins=begins, ends=ends)
