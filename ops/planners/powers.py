"""The plan of ttnn.pow of integers with a number as exponent. Rules: ttnn 0.81.1, compared with its plans."""

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.eltwise.powers import IntegerPower, power_buffers

EXPONENTS = 2**31  # the first number that is no exponent


def plan_integer_power(
    source: TensorSpec, exponent: float, spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the integers of the tensor "input" to a power; raises DeviceError for an exponent that is refused."""
    dtype = f"DataType::{source.data_format.name.upper()}"
    if exponent % 1 or not -EXPONENTS <= exponent < EXPONENTS:
        raise DeviceError(
            f"pow: {dtype} input requires an integral exponent, got {exponent:.8g}\npow: typecast the tensor"
        )
    if exponent < 0:
        raise DeviceError(
            f"pow: integers to negative integer powers are not allowed, got {exponent:g}\npow: typecast the tensor"
        )
    if source.layout is not Layout.TILE:
        raise DeviceError(
            "pow_int: input must be in TILE layout, got Layout::ROW_MAJOR\npow: bring the tensor into TILE_LAYOUT"
        )
    where = source.memory_config if place is None else place
    if where.is_sharded() and where.shard_spec is None:
        raise NotSimulatedError("pow: a sharded memory_config without a shard_spec is not simulated; give one")

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        op = IntegerPower(exponent=int(exponent), data_format=source.data_format)
        target = PlanTensor("output", source.changed(memory_config=where))
        return builder.run("PowIntDeviceOperation", op, [tensor], target, power_buffers(source, spec), dataflow=True)

    return plan_of(source, spec, write)
