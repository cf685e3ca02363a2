"""The plan of experimental.rotate_half. Rules: ttnn 0.81.1 (experimental/transformer), compared with its plans."""

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.attention.rotate_half import RotateHalf, rotate_half_buffers

HINT = "rotate_half: give interleaved rows of a multiple of 64 columns"


def check_columns(source: TensorSpec) -> None:
    """Raises DeviceError for halves that are not whole tiles, before a tensor is converted to TILE layout."""
    columns = source.padded_shape[-1]
    if columns % (2 * TILE):
        raise DeviceError(f"Input X dimension ({columns}) must be divisible by {2 * TILE} for tiling.\n{HINT}")


def plan_rotate_half(source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None) -> Plan:
    """Plan the exchanged halves of "input", which is in tiles; raises DeviceError."""
    where = source.memory_config if place is None else place
    if where.is_sharded() and where.shard_spec is None:
        raise DeviceError(f"bad optional access\n{HINT}, and an interleaved memory_config")
    result = TensorSpec(source.shape, source.data_format, Layout.TILE, where)
    result.require_on(spec)
    if source.memory_config.is_sharded() or where.is_sharded():
        raise DeviceError(f"RotateHalf does not currently support sharding\n{HINT}")
    op = RotateHalf(data_format=source.data_format)

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        if source.shape[-1] % (2 * TILE):
            builder.leave_out_values("rotate_half: halves would have padding in them; give a multiple of 64 columns")
        if not source.data_format.is_float:
            builder.leave_out_values("rotate_half: ttsim does not simulate products of integers with -1.0")
        buffers = rotate_half_buffers(source.data_format)
        return builder.run("RotateHalfDeviceOperation", op, [tensor], PlanTensor("output", result), buffers)

    return plan_of(source, spec, write)
