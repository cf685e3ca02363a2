"""The plan of ttnn's pools: shard, halo, move, pool. Rules: ttnn 0.81.1, compared with recorded plans."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    FACE,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT16, INT32, UINT16, UINT32, DataFormat, div_up, round_up
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.grid_rules import name_rules, pool_rules
from ops.planners.shape.pad import Around, padded_by
from ops.planners.to_config import placed
from ops.programs.averages import Averaging
from ops.programs.buffer_shapes import view_refusal
from ops.programs.conv2d import partition
from ops.programs.data_movement.placement import flattened, move_up
from ops.programs.data_movement.reshape import reshaped
from ops.programs.halo import plan as halo_plan
from ops.programs.pool import Pool, PoolSizes, pool_buffers
from ops.window import NoWindowError, PaddedAxis, PaddedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolArguments:
    """A call."""

    function: str = "max_pool2d"  # Its name in messages
    source: TensorSpec  # The images, [1, 1, N*H*W, C] or [N, H, W, C]
    batch: int
    image: tuple[int, int]  # H and W
    channels: int
    kernel: tuple[int, int]  # Rows and columns of a window
    stride: tuple[int, int]  # From one window to the next, down and across
    padding: tuple[int, int, int, int]  # Above, below, at the left and at the right
    dilation: tuple[int, int]  # From one tap to the next, down and across
    ceil_mode: bool = False  # Windows may extend beyond the padding
    ceiling: tuple[int, int] | None = None  # Rows and columns that only ceil_mode added; None for what it adds
    scheme: Scheme | None = None  # How an interleaved tensor is sharded; None lets the call choose
    place: MemoryConfig | None = None  # Where the result goes; None for where the program leaves it
    deallocate_input: bool = False  # The sharded input is released once it is read
    reallocate_halo: bool = True  # The sticks are moved up into the room that it leaves
    data_format: DataFormat = BFLOAT16
    tiled: bool = False  # The result is in tiles
    # The programs read the reader indices from DRAM
    config_tensor_in_dram: bool = False
    return_indices: bool = False  # The place of each maximum in its image is wanted as well
    averaging: Averaging | None = None  # How an average pool counts, without what ceil_mode adds; None for the largest

    @property
    def frame(self) -> PaddedInput:
        """The images with their padding."""
        return PaddedInput(batch=self.batch, rows=self._axis(0), columns=self._axis(1))

    @property
    def averages(self) -> Averaging | None:
        """How an average pool counts."""
        if self.averaging is None:
            return None
        _, bottom, _, right = self.padding
        ceiling = self.frame.rows.after - bottom, self.frame.columns.after - right
        return replace(self.averaging, ceiling=ceiling)

    @property
    def index_format(self) -> DataFormat | None:
        """Format of the indices of the maxima; None if they are not requested."""
        if not self.return_indices:
            return None
        return UINT16 if prod(self.image) <= UINT16_MAX else UINT32

    def _axis(self, axis: int) -> PaddedAxis:
        length, kernel, stride, dilation = (
            sizes[axis] for sizes in (self.image, self.kernel, self.stride, self.dilation)
        )
        before, after = self.padding[2 * axis : 2 * axis + 2]
        if self.ceiling is not None:
            after += self.ceiling[axis]
        elif self.ceil_mode:
            room = length + before + after - dilation * (kernel - 1) - 1
            outputs = div_up(room, stride) + 1
            if (outputs - 1) * stride >= length + before:  # the last window would begin after the image
                outputs -= 1
            after += max(0, (outputs - 1) * stride - room)
        return PaddedAxis(
            input_length=length, before=before, after=after, kernel=kernel, dilation=dilation, stride=stride
        )


def validate(call: PoolArguments, *, strict: bool) -> None:
    """Raises DeviceError where the real library refuses a call; the first line of the error is its own.

    ``strict`` refuses another number of pixels than the images' as well, which the real library reads all the same.
    """
    misses = prod(call.source.shape[:-1]) != call.batch * prod(call.image)  # other channels are looked at later
    if is_global(call):
        refusals = _volume_refusals(call)
    else:
        refusals = chain(
            _rank_refusals(call), _size_refusals(call), _window_refusals(call),
            _volume_refusals(call) if strict and misses else (), _tensor_refusals(call),
        )  # fmt: skip
    for text in refusals:
        raise DeviceError(text)


def require_rank(call: PoolArguments) -> None:
    """Raises DeviceError for images of a rank, or of sides, that the library does not pool."""
    for text in _rank_refusals(call):
        raise DeviceError(text)


def require_volume(call: PoolArguments, plan: Plan) -> None:
    """Raises ArgumentError for other images than the tensor's, which the real library reads if it has a program."""
    refused = any(isinstance(step, Operation) and step.refused for step in plan.steps)
    if not refused and (text := next(_volume_refusals(call), None)) is not None:
        raise ArgumentError(f"{call.function}: {text}")


def _size_refusals(call: PoolArguments) -> Iterator[str]:
    """Formats, and sizes that are not above zero, in the library's order."""
    formats, (height, width) = call.data_format, call.image
    if formats != BFLOAT16 and not formats.is_block:
        yield (
            "Currently only BFLOAT16, BFLOAT8_B, and BFLOAT4_B output data formats are supported\n"
            f"dtype: a pool gives no {formats}; leave it out, and typecast the result"
        )
    if not call.tiled and formats.is_block:
        yield (
            "BFLOAT8_B/BFLOAT4_B output data format is not supported with ROW_MAJOR layout\n"
            "output_layout: block floats need ttnn.TILE_LAYOUT"
        )
    sizes = {"Batch size": call.batch, "Input height": height, "Input width": width, "Channels": call.channels}
    for name, value in sizes.items():
        if value < 1:
            yield f"Pool2D: {name} must be greater than 0, got {value}\ngive the sizes of the images"
    source, pixels = call.source, call.batch * height * width
    filled = (1, 1, round_up(pixels, TILE), round_up(call.channels, TILE))
    if source.layout is Layout.TILE and source.shape == (1, 1, pixels, call.channels) and source.padded_shape != filled:
        given, expected = list(source.padded_shape), f"(1, 1, {filled[2]}, {filled[3]})"
        yield (
            f"Padded input tensor shape Shape({given}) does not match expected shape {expected}\n"
            "input_tensor: it has more padding than tiles need, as prepared weights have"
        )
    for name, (down, across) in (("Kernel size", call.kernel), ("Stride", call.stride), ("Dilation", call.dilation)):
        if min(down, across) < 1:
            first = f"Pool2D: {name} must be greater than 0 in both dimensions, got ({down}, {across})"
            yield f"{first}\ngive two positive numbers"


def _window_refusals(call: PoolArguments) -> Iterator[str]:
    """Windows that do not fit the padded images."""
    (rows, columns), (top, bottom, left, right) = call.kernel, call.padding
    if max(top, bottom) > rows // 2 or left > columns // 2:
        yield (
            f"Pool2D: Padding ({top}, {bottom}, {left}) should not exceed half of kernel size ({rows}, {columns})\n"
            "padding: use less, or a larger kernel"
        )
    high, wide = (dilation * (kernel - 1) + 1 for dilation, kernel in zip(call.dilation, call.kernel, strict=True))
    height, width = call.image[0] + top + bottom, call.image[1] + left + right
    if high > height or wide > width:
        yield (
            f"Pool2D: Effective kernel size ({high}, {wide}) cannot exceed padded input size ({height}, {width})\n"
            "kernel_size, dilation: give windows that fit the padded images"
        )
    try:
        outputs = call.frame.outputs
    except NoWindowError:
        outputs = 0
    if outputs < 1:
        yield "Pool2D: Computed output dimensions must be positive\nthe windows are larger than the padded images"


def _rank_refusals(call: PoolArguments) -> Iterator[str]:
    """The errors of a tensor that has not four axes and is not a single image."""
    shape, rank, (height, width) = call.source.shape, len(call.source.shape), call.image
    advice = "input_tensor: give [1, 1, N * H * W, C]"
    if rank not in (2, 3, 4):
        yield f"Pool2D: Input tensor must be rank 2, 3, or 4, got rank {rank}\n{advice}"
    if rank == 2 and (call.batch, call.channels) != (1, 1):
        yield (
            "Pool2D: For rank-2 input [H, W], batch_size and channels must be 1, got "
            f"batch_size={call.batch}, channels={call.channels}\n{advice}"
        )
    if rank == 3 and call.batch != 1:
        yield f"Pool2D: For rank-3 input [H, W, C], batch_size must be 1, got {call.batch}\n{advice}"
    if rank in (2, 3) and (*shape, 1)[:3] != (height, width, call.channels):
        axes, channels = ("[H, W]", "") if rank == 2 else ("[H, W, C]", f", channels={call.channels}")
        yield (
            f"Pool2D: For rank-{rank} input {axes}, dimensions must match: input_h={height}, input_w={width}{channels}"
            f", but got shape Shape({list(shape)})\n{advice}"
        )


def _volume_refusals(call: PoolArguments) -> Iterator[str]:
    """A tensor that does not hold the images."""
    pixels = call.batch * call.image[0] * call.image[1]
    if call.source.volume != pixels * call.channels:
        given, expected = list(call.source.shape), f"(1, 1, {pixels}, {call.channels})"
        yield (
            f"Input tensor shape {given} does not match expected shape {expected}\n"
            "batch_size, input_h, input_w and channels must be those of the tensor"
        )


def _tensor_refusals(call: PoolArguments) -> Iterator[str]:
    """Shards that the library does not walk through."""
    shards = call.source.memory_config.shard_spec
    if shards is not None and call.scheme is not None:
        first = "A sharding scheme should not be specified for a sharded input tensor."
        yield f"{first}\napplied_shard_scheme: leave it out"
    if shards is not None and shards.orientation is not ShardOrientation.ROW_MAJOR:
        yield "Only row major orientation is supported.\ninput_tensor: reshard it"


def is_global(call: PoolArguments) -> bool:
    """Whether the window of an average pool is the whole image, which the library reduces without a pool."""
    if call.averaging is None or call.kernel != call.image or any(call.padding) or call.scheme is not None:
        return False
    # Block floats have no rows, in which the library reduces images that are no whole tiles
    return not (call.source.data_format.is_block and prod(call.image) % TILE)


def require_numbers(call: PoolArguments) -> None:
    """Raises DeviceError for integers of 32 bits, which the real library accepts and takes for bfloat16."""
    if call.source.data_format in (INT32, UINT32):
        raise DeviceError(
            f"{call.function}: input_tensor holds {call.source.data_format}, whose bytes the real library takes for "
            "bfloat16; typecast it to bfloat16 first"
        )


UINT16_MAX = (1 << 16) - 1
STICK_ALIGNMENT = 8  # channels of 16 bytes
SCHEMES = (Scheme.HEIGHT_SHARDED, Scheme.WIDTH_SHARDED, Scheme.BLOCK_SHARDED)


def result_shard(call: PoolArguments, config: partition.ParallelConfig) -> tuple[int, int]:
    """Rows and columns of a shard of the result on the cores of the input, in half tiles if channels fill these."""
    rows = round_up(call.frame.outputs, config.nhw_cores * (TILE if call.tiled else 1)) // config.nhw_cores
    channels = div_up(call.channels, config.channel_cores)
    halves = channels <= FACE or channels % FACE == 0
    return rows, round_up(channels, FACE if halves and not call.tiled else TILE)


def pool_sizes(call: PoolArguments, config: partition.ParallelConfig, shard: tuple[int, int]) -> PoolSizes:
    """The sizes of the program whose result has shards of some rows and columns."""
    return PoolSizes(
        taps=prod(call.kernel),
        channels=div_up(call.channels, config.channel_cores),
        out_shard=shard,
        data_format=call.data_format,
        tiled=call.tiled,
        averaged=call.averaging is not None,
        scalars=call.averages is not None and not call.averages.is_uniform(call.frame),
        index_format=call.index_format,
        config_tensor_in_dram=call.config_tensor_in_dram,
    )


def pool_cores(call: PoolArguments, scheme: Scheme, grid: GridSpec, *, alignment: int) -> partition.ParallelConfig:
    """The cores of a scheme; channels of BLOCK shards are a multiple of ``alignment``."""
    rows, channel_parts = div_up(call.frame.outputs, TILE if call.tiled else 1), _channel_parts(call)
    nhw, channels = 1, 1
    match scheme:
        case Scheme.HEIGHT_SHARDED:
            nhw = partition.most_cores(rows, grid.cores)
        case Scheme.WIDTH_SHARDED:
            channels = partition.largest_divisor(grid.cores, channel_parts)
        case _:
            nhw = partition.most_cores(rows, grid.rows)
            channels = partition.largest_divisor(grid.cols, channel_parts, div_up(call.channels, alignment))
    return partition.parallel_config(scheme, nhw, channels, ShardOrientation.ROW_MAJOR, grid)


def _channel_parts(call: PoolArguments) -> int:
    """Parts of channels that a core has a whole number of."""
    in_tiles = call.tiled or call.source.layout is Layout.TILE
    return div_up(call.channels, TILE if in_tiles else TILE // 2)


def chosen_cores(call: PoolArguments, grid: GridSpec) -> partition.ParallelConfig:
    """The cores of the caller's scheme, or of the scheme whose program takes least L1: HEIGHT if equal, then WIDTH."""
    if call.scheme is not None:
        return pool_cores(call, call.scheme, grid, alignment=alignment_of(call))
    return min((pool_cores(call, scheme, grid, alignment=TILE) for scheme in SCHEMES), key=partial(_l1_bytes, call))


def input_memory(call: PoolArguments, config: partition.ParallelConfig) -> MemoryConfig:
    """The memory of the input; its rows count with the padding of every image, although that is removed before."""
    rows = prod(call.source.padded_shape[:-1])
    if config.scheme is not Scheme.WIDTH_SHARDED:
        unit = TILE if call.source.layout is Layout.TILE else 1
        rows = round_up(rows, config.nhw_cores * unit) // config.nhw_cores
    elif call.source.layout is Layout.TILE:
        rows = round_up(rows, TILE)
    columns = round_up(call.channels, config.channel_cores * alignment_of(call)) // config.channel_cores
    return partition.sharded_memory(config, rows, columns)


def _channels_behind(call: PoolArguments, place: MemoryConfig, config: partition.ParallelConfig) -> Around:
    """The padding of rows up to the channels of all shards, which the library adds where the result is block floats."""
    shards = place.shard_spec
    assert shards is not None
    rows_of_blocks = call.data_format.is_block and call.source.layout is Layout.ROW_MAJOR
    more = shards.shape[1] * config.channel_cores - call.channels if rows_of_blocks else 0
    return (*[(0, 0)] * 3, (0, more))


def alignment_of(call: PoolArguments) -> int:
    """Multiple of the channels of a shard of the input."""
    return TILE if call.source.layout is Layout.TILE else STICK_ALIGNMENT


def _l1_bytes(call: PoolArguments, config: partition.ParallelConfig) -> int:
    """L1 that the program would take, by the library's estimate: rows are whole tiles, columns half tiles at least."""
    rows = call.frame.outputs
    if config.scheme is not Scheme.WIDTH_SHARDED:
        rows = round_up(rows, config.nhw_cores * TILE) // config.nhw_cores
    channels = round_up(div_up(call.channels, config.channel_cores), FACE)
    return pool_sizes(call, config, (rows, channels)).l1_bytes


def plan_pool2d(call: PoolArguments, spec: DeviceSpec) -> Plan:
    """Plan a validated call; its images are the tensor "input", and the indices of maxima the result "places"."""
    builder = PlanBuilder(spec, {"input": call.source})
    results = pooled(builder, call, builder.tensor("input"))
    return builder.finish({} if builder.refused else results)


def pooled(builder: PlanBuilder, call: PoolArguments, source: PlanTensor, prefix: str = "") -> dict[str, PlanTensor]:
    """The results of a call on a tensor of a plan; intermediates are freed. All names have the same prefix."""
    spec, in_dram = builder.device_spec, call.source.memory_config.buffer_type is BufferType.DRAM
    sharded = source
    if source.spec.memory_config.shard_spec is None:
        flat = reshaped(builder, source, flattened(source.spec.shape), "input.flat")
        chosen = chosen_cores(call, spec.grid)
        rows, unit = (div_up(call.frame.outputs, TILE), "tiles") if call.tiled else (call.frame.outputs, "rows")
        parts = _channel_parts(call)
        name_rules(builder, pool_rules(chosen, spec.grid, rows=rows, unit=unit, channel_parts=parts))
        place = input_memory(call, chosen)
        whole = padded_by(builder, flat, _channels_behind(call, place, chosen), 0.0, "input.padded")
        sharded = placed(builder, whole, place, "input.sharded")
        builder.free_own(flat, whole)
    config = partition.sharded_input(sharded.spec.memory_config)
    shard = result_shard(call, config)
    halo = halo_plan.HaloArguments.of(
        call.frame,
        sharded.spec.memory_config,
        spec,
        output_rows=shard[0],
        data_format=sharded.spec.data_format,
        tiled=sharded.spec.layout is Layout.TILE,
        input_matrix=sharded.spec.matrix,
        config_tensors_in_dram=call.config_tensor_in_dram,
    )
    sticks = _halo(builder, halo, sharded, name=f"{prefix}halo", by_stick=call.averaging is None)
    frees = call.deallocate_input or (in_dram and builder.is_own(sharded))
    if frees:
        builder.free(sharded)
    if call.reallocate_halo:
        move_up(builder, sticks, freed=sharded if frees else None)
    results = _pool(builder, call, halo, sticks, pool_sizes(call, config, shard), prefix)
    for role, tensor in results.items():
        if call.place is not None:
            move = partial(placed, builder, tensor, call.place, f"{tensor.name}.placed")
            results[role] = builder.attempt(move, tensor)
            if builder.refused:  # no step follows
                return results
            builder.free_own(tensor, keep=[results[role]])
    builder.free(sticks)
    builder.free_own(sharded)
    return results


def _halo(
    builder: PlanBuilder, halo: halo_plan.HaloArguments, sharded: PlanTensor, *, name: str, by_stick: bool
) -> PlanTensor:
    """The sticks of the images; raises DeviceError for images in shards, whose sticks the library deals to the images.

    Each image has H rows of as many sticks.
    """
    shards, frame = sharded.spec.shards, halo.frame
    claimed = frame.batch * frame.rows.input_length * frame.columns.input_length
    if sharded.spec.layout is Layout.ROW_MAJOR and shards.shape[0] * shards.num_cores() < claimed:
        raise NotSimulatedError(
            f"input_tensor: its shards hold fewer rows than the {claimed} that batch_size, input_h and input_w say it "
            "has; the real library reads beyond its lists of cores"
        )
    plan = halo_plan.plan_halo(halo, input_tensor=sharded.name, output_tensor=name)
    sticks, (batch, height) = plan.output, (1, 1, *sharded.spec.shape)[-4:-2]
    share = div_up(sticks.shape[-2], batch)
    shards = sticks.shards.changed(shape=(div_up(batch * share, halo.nhw_cores), sticks.shards.shape[1]))
    place = replace(sticks.memory_config, shard_spec=shards)
    sticks.changed(shape=(batch, height, share, sticks.shape[-1]), memory_config=place)
    rows = batch * share if halo.scheme is partition.WIDTH else sticks.shape[-2]
    # Where images do not share the sticks evenly, cores have room for more
    sticks = sticks.changed(shape=(1, 1, rows, sticks.shape[-1]), memory_config=place)
    refused, walked = None, halo_plan.walk_refusal(sharded.spec.shards.grid)
    if not sharded.in_l1:
        refused = "Only L1 buffers can have an associated circular buffer!\ninput_tensor: move its shards to L1"
    elif walked:
        refused = f"{walked}\ninput_tensor: shard it over cores that fill rows from core (0, 0) on"
    op = halo_plan.HaloOp(plan=plan, fp32_dest=False, filled_by_stick=by_stick)
    return builder.run(
        "HaloDeviceOperation",
        op,
        [sharded],
        PlanTensor(name, sticks),
        plan.circular_buffers,
        resident=plan.resident,
        refused=refused,
        key=("pool halo", op),
    )


def _pool(
    builder: PlanBuilder,
    call: PoolArguments,
    halo: halo_plan.HaloArguments,
    sticks: PlanTensor,
    sizes: PoolSizes,
    prefix: str,
) -> dict[str, PlanTensor]:
    (rows, columns), config = sizes.out_shard, partition.sharded_input(sticks.spec.memory_config)
    averaging = call.averages
    if averaging is not None and averaging.fp32_dest is None:
        averaging = replace(averaging, fp32_dest=sizes.in_chunks)
    op = Pool(
        frame=call.frame,
        channels=call.channels,
        channel_cores=config.channel_cores,
        core_outputs=rows,
        in_format=sticks.spec.data_format,
        data_format=call.data_format,
        tiled=call.tiled,
        averaging=averaging,
        index_format=call.index_format,
    )
    words = halo_plan.reader_index_words(call.frame, output_rows=rows, cores=config.nhw_cores, block_rows=(rows,))
    lists = [PlanTensor(f"{prefix}reader_indices", halo_plan.config_tensor_spec(halo, words))]
    if sizes.scalars and averaging is not None:
        words = averaging.list_words(call.frame, output_rows=rows, cores=config.nhw_cores)
        lists.append(PlanTensor(f"{prefix}scalars", _scalar_lists(halo, words)))
    shape, layout = (1, 1, call.frame.outputs, call.channels), Layout.TILE if call.tiled else Layout.ROW_MAJOR
    output_spec = TensorSpec(shape, call.data_format, layout, partition.sharded_memory(config, rows, columns))
    results = {"output": PlanTensor(f"{prefix}output", output_spec)}
    if call.index_format is not None:
        results["places"] = PlanTensor("places", replace(output_spec, data_format=call.index_format))
    high, wide = sticks.spec.shards.shape
    wide = min(wide, call.channels, sticks.spec.shape[-1] // config.channel_cores)
    buffers = pool_buffers(
        sizes,
        halo=sticks.name,
        halo_bytes=high * wide * (sticks.spec.data_format.element_bytes or 0),
        lists=lists,
        outputs=[result.name for result in results.values()],
        cores=config.cores,
    )
    builder.run(
        "Pool2D",
        op,
        [sticks],
        results["output"],
        buffers,
        more_outputs=[*results.values()][1:],
        resident=lists,
        refused=_refusal(call, sticks.spec, config, builder.device_spec),
        key=("pool", op, sticks.spec.memory_config, output_spec.memory_config),
    )
    return results


def _scalar_lists(halo: halo_plan.HaloArguments, words: int) -> TensorSpec:
    """Lists of scalars: for every core in the order of the shards, or in DRAM for the cores that split the rows."""
    if halo.config_tensors_in_dram:
        return halo_plan.config_tensor_spec(halo, words)
    place = ShardSpec(halo.cores, (1, words), halo.orientation)
    memory = MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1_SMALL, place)
    return TensorSpec((halo.cores.num_cores(), words), UINT16, Layout.ROW_MAJOR, memory)


def _refusal(call: PoolArguments, sticks: TensorSpec, config: partition.ParallelConfig, spec: DeviceSpec) -> str | None:
    if sticks.data_format != BFLOAT16:
        return "Only BFLOAT16 supported for now\ninput_tensor: typecast it to bfloat16"
    if call.return_indices and call.tiled:
        return "Only ROW_MAJOR supported when return_indices is true\noutput_layout: leave it out"
    width, channel_cores = sticks.shape[-1], config.channel_cores
    if width % channel_cores:
        return (
            f"For width and block sharding, input channels ({width}) should be divisible by num_shards "
            f"({channel_cores})\ninput_tensor: shard it over as many cores as divide its channels"
        )
    if call.channels > call.source.shape[-1]:  # whole sticks of more channels than there are
        size = sticks.shards.shape[0] * div_up(call.channels, channel_cores) * (sticks.data_format.element_bytes or 0)
        if text := view_refusal(size, sticks.buffer(spec).bank_bytes):
            return f"{text}\nchannels: give those of the tensor"
    return None
