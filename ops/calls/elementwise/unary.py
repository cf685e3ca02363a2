"""The plan of a function of every element of a tensor on the device.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.eltwise.circular_buffers import unary_buffers
from ops.programs.eltwise.integers import SUPPORTED
from ops.programs.eltwise.operations import Activate
from ops.programs.eltwise.sharding import on_all_cores, with_shards


def plan_unary(
    source: TensorSpec,
    function: tuple[str, tuple[float, ...]],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan a function of the tensor "input".

    Args:
        function: ttnn's name in lower case, and its parameters.
        place: Where the result goes; None for where the tensor is.
        target: The caller's tensor "target" that the result is written into, if there is one.

    Raises:
        DeviceError: The result does not fit the place, or the caller's tensor.
    """
    given = {"input": source} if target is None else {"input": source, "target": target}
    builder = PlanBuilder(spec, given)
    read = builder.tensor("input")
    _require_format(source, function[0], target)
    stays = (source.memory_config if place is None else place).is_sharded()
    if stays and source.memory_config.is_sharded() and len(source.padded_shape) < 2:
        raise DeviceError(f"Rank must be at least 2\n{function[0]}: reshape the vector of rows in shards to rank 2")
    if target is not None and (target.shape, target.layout) != (source.shape, source.layout):
        raise DeviceError(
            f"Unary: Preallocated output shape must match computed shape. Computed: Shape({list(source.shape)}), "
            f"Preallocated: Shape({list(target.shape)})\noutput_tensor: give one of the input's shape and layout"
        )
    written = builder.tensor("target") if target is not None else PlanTensor("output", _result(source, place, spec))
    made_format = written.spec.data_format
    work = Activate(
        name=function[0],
        parameters=function[1],
        data_format=source.data_format,
        out_format=None if made_format == source.data_format else made_format,
    )
    made = builder.run(
        "UnaryDeviceOperation",
        work,
        [read] if target is None else [read, written],
        output=written if target is None else None,
        circular_buffers=unary_buffers(read, written, spec),
        dataflow=True,
        key=("unary", work, source.layout, source.memory_config, written.spec.memory_config, _shape_key(source)),
    )
    return builder.finish({"output": made.name}, known_works=MEANINGS)


def _require_format(source: TensorSpec, name: str, target: TensorSpec | None) -> None:
    """Raises for integers that a function does not take (DeviceError), or with a result of another format."""
    given = source.data_format
    if not given.is_float and given not in SUPPORTED.get(name, ()):
        raise DeviceError(
            f"Unary: UnaryOpType::{name.upper()} does not support integer input dtype DataType::{given.name.upper()}\n"
            f"{name}: typecast the tensor to floats"
        )
    made = given if target is None else target.data_format
    if made != given and not (made.is_float and given.is_float):
        raise ArgumentError(
            f"{name}: a result of {made} from {given} is not simulated; give an output_tensor of {given}"
        )


def _result(source: TensorSpec, place: MemoryConfig | None, spec: DeviceSpec) -> TensorSpec:
    """What the result is: padded as the tensor is, unless its shards say otherwise."""
    where = source.memory_config if place is None else place
    if not where.is_sharded():
        return TensorSpec(source.shape, source.data_format, source.layout, where, source.padded_shape)
    if where.shard_spec is None:
        held = source.memory_config.shard_spec
        shards = on_all_cores(source.padded_shape, where.memory_layout, spec) if held is None else held
        where = with_shards(where, shards)
    return TensorSpec(source.shape, source.data_format, source.layout, where)


def _shape_key(source: TensorSpec) -> tuple[int, ...] | None:
    """Rows have a program for each shape, tiles one for all."""
    return None if source.layout is Layout.TILE else source.padded_shape
