"""The plan of ttnn.rotate. Rules: ttnn 0.81.1, compared with the real planner."""

from collections.abc import Iterator
from dataclasses import dataclass

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout as Scheme
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import view_refusal
from ops.programs.rotate import WIDEST, Rotate, bilinear_buffers, nearest_buffers, rotating_cores

FORMATS = (BFLOAT16, FLOAT32)
MODES = ("nearest", "bilinear")
LAYOUT_NUMBERS = {Scheme.HEIGHT_SHARDED: 2, Scheme.WIDTH_SHARDED: 3, Scheme.BLOCK_SHARDED: 4}  # as the library's


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateArguments:
    """A call."""

    images: TensorSpec  # [N, H, W, C]
    angle: float
    center: tuple[float, float] | None = None
    fill: float = 0.0
    expand: bool = False
    mode: str = "nearest"
    place: MemoryConfig | None = None  # Of the result; None for that of the images


def refusals(call: RotateArguments) -> Iterator[str]:
    """The real library's errors for a call, in its order."""
    images = call.images
    if len(images.shape) != 4:
        yield f"Input tensor must be 4D (N, H, W, C), got rank {len(images.shape)}\ninput_tensor: reshape it"
    if images.layout is not Layout.ROW_MAJOR:
        yield "Input tensor must be in ROW_MAJOR layout\ninput_tensor: use ttnn.to_layout"
    if images.data_format not in FORMATS:
        named = f"DataType::{images.data_format.name.upper()}"
        yield f"Input tensor dtype must be bfloat16 or float32, got {named}\ninput_tensor: typecast it"
    if call.expand:
        yield (
            "expand=True is not supported. Only same-size rotation (expand=False) is implemented\n"
            "expand: pad the images first"
        )
    if call.mode not in MODES:
        yield (
            f"Only 'nearest' and 'bilinear' interpolation_mode are supported, got '{call.mode}'\n"
            "interpolation_mode: choose one of these"
        )
    scheme = images.memory_config.memory_layout
    if images.memory_config.is_sharded() and scheme is not Scheme.HEIGHT_SHARDED:
        yield (
            "Only height sharding is supported for rotate operation. Got memory layout "
            f"{LAYOUT_NUMBERS[scheme]}\ninput_tensor: reshard it"
        )
    if call.mode == "bilinear":
        channels = images.padded_shape[-1]
        if channels % TILE:
            yield (
                f"Input tensor last dimension must be divisible by TILE_WIDTH ({TILE}), but got {channels} in padded "
                f"shape Shape({list(images.padded_shape)})\ninput_tensor: pad the channels"
            )
        if (tiles := div_up(channels, TILE)) > WIDEST:
            yield (
                "Wide reduction (in_ntiles_c > MAX_TILES_PER_REDUCTION) is not supported for bilinear rotate. "
                f"in_ntiles_c={tiles} exceeds MAX_TILES_PER_REDUCTION={WIDEST}. Reduce channel count to <= "
                f"{WIDEST * TILE}.\ninput_tensor: rotate parts of the channels"
            )


def plan_rotate(call: RotateArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensor "input"; raises DeviceError if the library refuses the call."""
    images, place = call.images, call.place or call.images.memory_config
    result = TensorSpec(images.shape, images.data_format, Layout.ROW_MAJOR, place)
    require_shard_spec(place, in_rows=True)
    result.buffer(spec)  # refuses cores that the device lacks
    for text in refusals(call):
        raise DeviceError(text)
    op = Rotate(
        shape=images.shape,
        angle=call.angle,
        center=call.center,
        fill=call.fill,
        bilinear=call.mode == "bilinear",
        data_format=images.data_format,
    )

    def write(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
        output = PlanTensor("output", result)
        if op.bilinear:
            shards = None if images.memory_config.is_sharded() else place.shard_spec
            cores = rotating_cores(images, result, spec) if shards is None else shards.grid
            buffers = bilinear_buffers(source, output, cores)
        else:
            buffers = nearest_buffers(source, output, rotating_cores(images, result, spec), spec)
        bank_bytes, refused = result.buffer(spec).bank_bytes, None
        if buffers[-1].view_of is not None:
            if place.buffer_type is BufferType.DRAM:
                refused = "Only L1 buffers can have an associated circular buffer!\nmemory_config: leave it out"
            elif text := view_refusal(buffers[-1].size_bytes, bank_bytes):
                refused = f"{text}\nmemory_config: leave it out"
        return builder.run("RotateDeviceOperation", op, [source], output, () if refused else buffers, refused=refused)

    return plan_of(images, spec, write)


def require_numbers(call: RotateArguments) -> None:
    """Raises ArgumentError for a float32 fill, which the nearest program writes as two bfloat16 numbers."""
    if call.mode == "nearest" and call.images.data_format == FLOAT32 and call.fill:
        raise ArgumentError(
            f"rotate: the real library fills float32 with other numbers than {call.fill:g}; use 0, bfloat16, or "
            "interpolation_mode='bilinear'"
        )
