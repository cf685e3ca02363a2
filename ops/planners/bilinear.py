"""The plan of ttnn.upsample, mode "bilinear": shard, halo, interpolate.

Rules: ttnn 0.81.1, compared with the real planner.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from device.cores import first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
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
from device.plan import CircularBuffer, Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.to_config import placed
from ops.planners.upsample import OPERATION
from ops.programs.bilinear import BilinearUpsample, bilinear_buffers
from ops.programs.data_movement.placement import flattened, viewed
from ops.programs.data_movement.reshape import reshaped
from ops.programs.halo.plan import HaloArguments, HaloOp, halo_output, plan_halo, upsampled_ranges, walk_refusal
from ops.window import PaddedAxis, PaddedInput


@dataclass(frozen=True, slots=True, kw_only=True)
class BilinearArguments:
    """A call."""

    source: TensorSpec  # [N, H, W, C]
    scale: tuple[float, float]  # Down and across
    place: MemoryConfig | None = None  # Of the result; None for the shards that the program leaves it in
    fidelity_phases: int = 4
    fp32_dest: bool = False

    @property
    def factors(self) -> tuple[int, int]:
        """The scale truncated to integers, as in the library."""
        return int(self.scale[0]), int(self.scale[1])

    @property
    def frame(self) -> PaddedInput:
        """The images with a pixel around them, and windows of two pixels each way; the padding of tiles counts."""
        batch, height, width, _ = self.source.padded_shape
        rows, columns = (
            PaddedAxis(input_length=side, before=1, after=1, kernel=2, dilation=1, stride=1) for side in (height, width)
        )
        return PaddedInput(batch=batch, rows=rows, columns=columns)


def plan_bilinear(call: BilinearArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensor "input"; it ends in a DeviceError where the library refuses it."""
    if min(call.factors) < 1:
        raise DeviceError(_whole_factors(call))

    def write(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
        sharded, place = source, call.place or source.spec.memory_config
        if not source.spec.memory_config.is_sharded():
            place = _shards(source.spec, spec)
            sharded = placed(builder, source, place, "input.sharded")
        rows = _rows(builder, sharded)
        sticks = _halo(builder, call, rows, cores=sharded.spec.shards.num_cores())
        if rows.name != sharded.name:
            builder.free(rows)
        result = _upsampled(builder, call, sticks, place)
        wanted = result if call.place is None else placed(builder, result, call.place, "output.placed")
        builder.free_own(result, keep=[wanted])
        builder.free(sticks)
        builder.free_own(sharded)
        return wanted

    return plan_of(call.source, spec, write, attempts=True)


def require_whole_tiles(call: BilinearArguments, plan: Plan) -> None:
    """Raises ArgumentError for tiles with padding, which the real library takes for pixels if it accepts the call."""
    refused = plan.refused or any(isinstance(step, Operation) and step.refused for step in plan.steps)
    if not refused and call.source.padded_shape[1:3] != call.source.shape[1:3]:
        raise ArgumentError(
            f"upsample: the real library takes the padding of tiles of {list(call.source.shape)} for pixels; give the "
            "tensor in ROW_MAJOR_LAYOUT"
        )


def _shards(images: TensorSpec, spec: DeviceSpec) -> MemoryConfig:
    """The shards that the library cuts interleaved images into: equally many pixels on as many cores as there are."""
    pixels = prod(images.shape[:-1])
    cores = first_cores(min(pixels, spec.grid.cores), spec.grid.cols, spec.grid.rows)
    shards = ShardSpec(cores, (div_up(pixels, cores.num_cores()), images.shape[-1]))
    return MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, shards)


def _rows(builder: PlanBuilder, sharded: PlanTensor) -> PlanTensor:
    """The pixels of sharded images as one image of a single row; raises DeviceError if it cannot be sharded."""
    shape = flattened(sharded.spec.shape)
    if sharded.spec.layout is Layout.ROW_MAJOR:
        return PlanTensor(sharded.name, viewed(sharded.spec, shape, builder.device_spec))
    rows = reshaped(builder, sharded, shape, "input.rows")
    if not rows.spec.memory_config.is_sharded():
        raise DeviceError(
            "Halo expects sharded input tensor\ninput_tensor: give shards of whole tiles on a rectangle of cores"
        )
    return rows


def _halo(builder: PlanBuilder, call: BilinearArguments, rows: PlanTensor, *, cores: int) -> PlanTensor:
    """The pixels that the outputs of every core interpolate, with those around the images.

    The outputs are distributed over the number of cores of the images, for any shard scheme.
    """
    halo = HaloArguments.of(
        call.frame,
        rows.spec.memory_config,
        builder.device_spec,
        nhw_cores=cores,
        output_rows=div_up(call.frame.batch * prod(_sides(call)), cores),
        data_format=rows.spec.data_format,
        tiled=rows.spec.layout is Layout.TILE,
        input_matrix=rows.spec.matrix,
        upsampled=call.factors,
    )
    shards, refused = rows.spec.shards, None
    walked = walk_refusal(shards.grid, row_major=shards.orientation is ShardOrientation.ROW_MAJOR)
    if call.frame.data > cores * halo.input_rows:
        if walked:
            raise DeviceError(walked)
        halo_output(halo, upsampled_ranges(halo, call.factors).max_sticks)  # the library checks the shards before
        raise DeviceError(
            "std::bad_alloc\ninput_tensor: the library takes the padding of tiles for pixels, which do not fit the "
            "shards, and often crashes; give the tensor in ROW_MAJOR_LAYOUT"
        )
    plan = plan_halo(halo, input_tensor=rows.name, output_tensor="halo")
    if not rows.in_l1:
        refused = "Only L1 buffers can have an associated circular buffer!\ninput_tensor: move its shards to L1"
    elif walked:
        refused = f"{walked}\ninput_tensor: reshard it to cores from 0-0 on, row by row"
    op = HaloOp(plan=plan, fp32_dest=False)
    return builder.run(
        "HaloDeviceOperation",
        op,
        [rows],
        PlanTensor("halo", plan.output),
        plan.circular_buffers,
        resident=plan.resident,
        refused=refused,
        key=("bilinear halo", op),
    )


def _sides(call: BilinearArguments) -> tuple[int, int]:
    """Rows and columns of the result; the padding of tiles counts."""
    height, width = call.source.padded_shape[1:3]
    return height * call.factors[0], width * call.factors[1]


def _upsampled(builder: PlanBuilder, call: BilinearArguments, sticks: PlanTensor, place: MemoryConfig) -> PlanTensor:
    """The interpolated pixels, on the cores of ``place``."""
    batch, height, width, channels = images = (*call.source.padded_shape[:3], call.source.shape[-1])
    shape = (batch, height * call.factors[0], width * call.factors[1], channels)
    if not all(factor.is_integer() for factor in call.scale):
        raise DeviceError(_whole_factors(call))
    require_shard_spec(place, in_rows=False)
    shards = place.shard_spec
    if shards is not None:
        rows = div_up(prod(shape[:-1]), shards.num_cores())
        place = MemoryConfig(
            place.memory_layout, place.buffer_type, shards.changed(shape=(rows, sticks.spec.shards.shape[1]))
        )
    result = PlanTensor("upsampled", TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, place))
    for text in _refusals(call, sticks.spec):
        raise DeviceError(text)
    op = BilinearUpsample(shape=images, scale=call.factors, fidelity_phases=call.fidelity_phases)
    refused = _refused(call, place)
    buffers: tuple[CircularBuffer, ...] = ()
    if refused is None:
        buffers = bilinear_buffers(op, sticks, result, sticks.spec.shards.grid)
    return builder.run(OPERATION, op, [sticks], result, buffers, refused=refused)


def _refusals(call: BilinearArguments, sticks: TensorSpec) -> Iterator[str]:
    """The library's checks after it has the sticks, in its order."""
    if sticks.data_format != BFLOAT16:
        yield f"Bilinear upsample requires BFLOAT16 input\ninput_tensor: typecast {sticks.data_format}"
    if sticks.memory_config.memory_layout is not Scheme.HEIGHT_SHARDED:
        yield (
            "Bilinear upsample requires HEIGHT_SHARDED input tensor\ninput_tensor: reshard it, or give it interleaved"
        )


def _whole_factors(call: BilinearArguments) -> str:
    return (
        f"bilinear mode requires integer scale factors, got ({call.scale[0]:g}, {call.scale[1]:g})\n"
        "scale_factor: give whole numbers, or use mode 'nearest'"
    )


def _refused(call: BilinearArguments, place: MemoryConfig) -> str | None:
    """Why the program cannot be built."""
    if (channels := call.source.shape[-1]) % TILE:
        return f"input channels should be divisible by {TILE}\ninput_tensor: pad {channels} channels"
    if place.shard_spec is None:
        return "bad optional access\nmemory_config: leave it out, and move the result afterwards"
    if call.fp32_dest:
        return (
            "fp32_dest_acc_en as true not supported for upsample bilinear\n"
            "compute_kernel_config: leave fp32_dest_acc_en out"
        )
    return None
