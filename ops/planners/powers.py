"""The plan of ttnn.pow of integers with a number as exponent. Rules: ttnn 0.81.1, compared with its plans."""

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.eltwise.powers import IntegerPower, power_buffers

EXPONENTS = 2**31  # the first number that is no exponent


def plan_integer_power(
    source: TensorSpec,
    exponent: float,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan an integer power of the tensor "input", in the caller's tensor "target" if given.

    Raises DeviceError for an exponent or a target that is refused.
    """
    dtype = f"DataType::{source.data_format.name.upper()}"
    if exponent % 1 or not -EXPONENTS <= exponent < EXPONENTS:
        raise DeviceError(
            f"pow: {dtype} input requires an integral exponent, got {exponent:.8g}\npow: typecast the tensor"
        )
    if exponent < 0:
        raise DeviceError(
            f"pow: integers to negative integer powers are not allowed, got {exponent:g}\npow: typecast the tensor"
        )
    where = source.memory_config if place is None else place
    if where.is_sharded() and target is None:
        if where.shard_spec is None:
            raise DeviceError("bad optional access\nmemory_config: give it a ShardSpec")
        source.changed(memory_config=where, layout=Layout.TILE, padded_shape=None)  # which the library makes first
    if source.layout is not Layout.TILE:
        raise DeviceError(
            "pow_int: input must be in TILE layout, got Layout::ROW_MAJOR\npow: bring the tensor into TILE_LAYOUT"
        )
    if target is not None:
        where = target.memory_config
        if target.data_format != source.data_format:
            raise DeviceError(
                f"pow_int: output dtype DataType::{target.data_format.name.upper()} must match input dtype {dtype}\n"
                "output_tensor: give one like the input"
            )
        if target.layout is not Layout.TILE:
            raise DeviceError(
                "pow_int: output must be in TILE layout, got Layout::ROW_MAJOR\noutput_tensor: give one like the input"
            )
        if target.shape != source.shape:
            shapes = list(target.shape), list(source.shape)
            raise DeviceError(
                f"pow_int: output shape Shape({shapes[0]}) must match input shape Shape({shapes[1]})\n"
                "output_tensor: give one like the input"
            )

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        op = IntegerPower(exponent=int(exponent), data_format=source.data_format)
        output = PlanTensor("output", source.changed(memory_config=where))
        buffers = power_buffers(source, spec)
        made = builder.run("PowIntDeviceOperation", op, [tensor], output, buffers, dataflow=True)
        return made if into is None else builder.written_into(made, into)

    return plan_of({"input": source, "target": target}, spec, write)
