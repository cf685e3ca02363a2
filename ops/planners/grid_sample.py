"""The plan of ttnn.grid_sample. Rules: ttnn 0.81.1, compared with the real planner."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT16, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import ONLY_L1, in_dram
from ops.programs.grid_sample import (
    COORDINATES,
    FORMATS,
    PREPARED,
    WIDEST,
    WIDEST_FP32,
    GridSample,
    bilinear_buffers,
    nearest_buffers,
    points_of,
    row_cores,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSampleArguments:
    """A call."""

    images: TensorSpec  # [N, H, W, C]
    grid: TensorSpec  # [N, GH, GW, K points]
    mode: str = "bilinear"
    padding_mode: str = "zeros"
    align_corners: bool = False
    prepared: bool = False
    batch_channels: bool = False  # The K samples of a place follow each other in channels, and not in columns
    place: MemoryConfig | None = None  # Of the result; None for that of the grid
    fidelity_phases: int = 4
    fp32_dest: bool = False
    full_sync: bool = False  # Dst is not shared with the packer


NARROW_LINK_BYTES = 32  # of a link that is slower than unpacking for any channels
READ_LONGEST_CHANNELS = 224  # up to which reading over a wider link takes longer than unpacking
INSIDE = (Scheme.INTERLEAVED, Scheme.HEIGHT_SHARDED)


def refusals(call: GridSampleArguments) -> Iterator[str]:
    """The real library's errors for a call, in its order."""
    images, grid = call.images, call.grid
    for name, tensor, axes in (("Input", images, "N, H, W, C"), ("Grid", grid, "N, H_out, W_out, coords")):
        if len(tensor.shape) != 4:
            yield (
                f"{name} tensor must be 4D ({axes}), but got shape Shape({list(tensor.shape)}) with "
                f"{len(tensor.shape)} dimensions\nreshape it"
            )
    size = PREPARED["nearest" if call.mode == "nearest" else "bilinear"] if call.prepared else COORDINATES
    last, shape = grid.shape[-1], f"Shape({list(grid.shape)})"
    if last % size or not last:
        kind, numbers = "Standard", "x, y coordinates"
        if call.prepared:
            kind, numbers = "Precomputed", "h_nw, w_nw, weight_nw, weight_ne, weight_sw, weight_se"
        yield (
            f"{kind} grid tensor last dimension must be a multiple of {size} (for {numbers}), but got {last} in shape "
            f"{shape}\ngrid: give whole points"
        )
    if images.shape[0] != grid.shape[0]:
        yield (
            f"Batch size mismatch: input tensor shape Shape({list(images.shape)}) has batch size {images.shape[0]}, "
            f"but grid tensor shape {shape} has batch size {grid.shape[0]}\ngrid: give one for every image"
        )
    if call.batch_channels and last // size <= 1:
        yield (
            "batch_output_channels=True requires grid batching factor K > 1. Use a batched grid with multiple "
            "coordinate sets per row of grid.\nbatch_output_channels: leave it out"
        )
    if images.data_format not in FORMATS:
        yield f"Input tensor must be BFLOAT16 or FLOAT32\ninput_tensor: typecast {images.data_format}"
    if call.prepared and grid.data_format != BFLOAT16:
        yield "Precomputed grid tensor must be BFLOAT16\ngrid: use ttnn.prepare_grid_sample_grid"
    if grid.data_format not in FORMATS:
        yield f"Grid tensor must be BFLOAT16 or FLOAT32\ngrid: typecast {grid.data_format}"
    for name, tensor in (("Input", images), ("Grid", grid)):
        if tensor.layout is not Layout.ROW_MAJOR:
            yield f"{name} tensor must be ROW_MAJOR layout\nuse ttnn.to_layout"
    if call.padding_mode != "zeros":
        yield "Only zeros padding mode is currently supported\npadding_mode: leave it out"
    if call.mode == "nearest" and not call.prepared:
        yield (
            "use_precomputed_grid = false is not supported with mode = 'nearest'. Please use precomputed grid with "
            "nearest mode.\ngrid: use ttnn.prepare_grid_sample_grid"
        )
    place = call.place or grid.memory_config
    for name, memory in (("Input", images.memory_config), ("Grid", grid.memory_config), ("Output", place)):
        if memory.memory_layout not in INSIDE:
            yield f"{name} tensor must have INTERLEAVED or HEIGHT_SHARDED memory layout\nmove it first"
    channels = images.shape[-1]
    if channels % TILE:
        yield (
            f"Input tensor last dimension must be divisible by TILE_WIDTH ({TILE}), but got {channels} in padded shape "
            f"Shape({list(images.shape)})\ninput_tensor: pad the channels"
        )


def plan_grid_sample(call: GridSampleArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensors "input" and "grid"; raises DeviceError where the library does."""
    if len(call.images.shape) == 4 == len(call.grid.shape):
        return _planned(call, spec)
    for text in refusals(call):
        raise DeviceError(text)
    raise AssertionError("a tensor without four axes is refused")


def _planned(call: GridSampleArguments, spec: DeviceSpec) -> Plan:
    """The plan of tensors with four axes; the library chooses the memory of the result before it checks a call."""
    images, grid, nearest = call.images, call.grid, call.mode == "nearest"
    points = points_of(grid.shape, "nearest" if nearest else "bilinear", prepared=call.prepared)
    batch, high, wide, _ = grid.shape
    channels = images.shape[-1]
    shape = (batch, high, wide, channels * points) if call.batch_channels else (batch, high, wide * points, channels)
    op = GridSample(
        shape=images.shape,
        grid_shape=grid.shape,
        mode="nearest" if nearest else "bilinear",
        align_corners=call.align_corners,
        prepared=call.prepared,
        result_shape=shape,
        data_format=images.data_format,
        fidelity_phases=call.fidelity_phases,
        fp32_dest=call.fp32_dest,
    )
    place = _place(call, points, spec)
    if batch != images.shape[0] and place.is_sharded():
        raise DeviceError(
            f"Tensor with shape Shape({[images.shape[0], *shape[1:]]}) (Shape({list(shape)})) cannot be sharded "
            "because alignment will have rank greater than 2!\ngrid: give one for every image"
        )
    result = PlanTensor("output", TensorSpec(shape, images.data_format, Layout.ROW_MAJOR, place))
    if not place.is_sharded() or place.shard_spec is not None:
        result.spec.buffer(spec)  # refuses cores that the device lacks
    for text in refusals(call):
        raise DeviceError(text)

    def write(builder: PlanBuilder, source: PlanTensor, where: PlanTensor) -> PlanTensor:
        if nearest:
            shards = place.shard_spec
            if shards is None:
                raise NotSimulatedError("grid_sample: ttsim does not simulate such a place of the result; leave it out")
            if shards.shape[0] % (repeats := 1 if call.batch_channels else points):
                raise DeviceError(
                    "Nearest grid_sample output shard height must be divisible by the number of output rows per grid "
                    f"row ({repeats})\nmemory_config: leave it out, or give whole places to every shard"
                )
            buffers = nearest_buffers(op, where, result, shards.grid, spec, shards.shape[0])
        else:
            shards = grid.memory_config.shard_spec
            used = row_cores(grid.shape, spec) if shards is None else shards.grid
            widest = WIDEST_FP32 if call.fp32_dest and not call.full_sync else WIDEST
            buffers = bilinear_buffers(
                op, images, where, result, used, spec, two_readers=_two_readers(call, spec), widest=widest
            )
        borrows = grid.memory_config.is_sharded() and in_dram(grid)
        refused = f"{ONLY_L1}\ngrid: move its shards to L1" if borrows else None
        return builder.run("GridSampleOperation", op, [source, where], result, buffers, refused=refused)

    return plan_of({"input": images, "grid": grid}, spec, write)


def _two_readers(call: GridSampleArguments, spec: DeviceSpec) -> bool:
    """Whether two processors read the corners of a sharded grid.

    With prepared points they do where reading takes longest: of images in L1, unless links are wide and channels many.
    """
    if not call.prepared:
        return True
    wide = spec.noc.flit_bytes > NARROW_LINK_BYTES
    read_longest = not wide or call.images.shape[-1] <= READ_LONGEST_CHANNELS
    return read_longest and call.images.memory_config.buffer_type is not BufferType.DRAM


def _place(call: GridSampleArguments, points: int, spec: DeviceSpec) -> MemoryConfig:
    """The memory of the result: sharded, unless grid and result are interleaved and the mode is bilinear."""
    grid, wanted = call.grid, call.place or call.grid.memory_config
    shards = grid.memory_config.shard_spec
    if shards is None and (wanted.shard_spec is not None or (call.mode != "nearest" and not wanted.is_sharded())):
        return wanted
    if shards is not None:
        cores, orientation, rows = shards.grid, shards.orientation, shards.shape[0]
    else:
        places = prod(grid.shape[:3])
        cores, orientation = row_cores(grid.shape, spec), ShardOrientation.ROW_MAJOR
        rows = div_up(places, cores.num_cores())
    channels = call.images.shape[-1]
    part = (rows, channels * points) if call.batch_channels else (rows * points, channels)
    return MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, part, orientation))
