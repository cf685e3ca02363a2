"""The plan of ttnn.experimental.dropout. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT16
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.eltwise import DATA_TYPES
from ops.programs.eltwise.dropout import Dropout, dropout_buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class DropoutArguments:
    """A call."""

    probability: float
    scale: float
    seed: int
    place: MemoryConfig | None = None


def plan_dropout(
    source: TensorSpec, call: DropoutArguments, spec: DeviceSpec, *, target: TensorSpec | None = None
) -> Plan:
    """Plan the tensor "input" without some elements, in the caller's "target" if given; raises DeviceError."""
    place = source.memory_config if call.place is None else call.place
    if target is None:
        require_shard_spec(place, in_rows=False)
    result = target or TensorSpec(source.shape, BFLOAT16, Layout.TILE, place)
    result.require_on(spec)
    for text in _refusals(source, result, target):
        raise DeviceError(text)

    def write(builder: PlanBuilder, read: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        if call.probability:
            builder.leave_out_values("dropout: a device chooses at random which elements vanish; give probability=0")
        op = Dropout(probability=call.probability, scale=call.scale, seed=call.seed, data_format=result.data_format)
        buffers = dropout_buffers(source, result, spec)
        reads, output = ([read], PlanTensor("output", result)) if into is None else ([read, into], None)
        return builder.run("DropoutDeviceOperation", op, reads, output, buffers, dataflow=True)

    return plan_of({"input": source, "target": target}, spec, write)


def _refusals(source: TensorSpec, result: TensorSpec, target: TensorSpec | None) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    numbers = [DATA_TYPES.index(tensor.data_format.name) for tensor in (source, result)]
    if result.data_format != source.data_format:
        yield (
            "Dropout operation requires input and output data types to match. Input data type: "
            f"{numbers[0]}, Output data type: {numbers[1]}\n"
            "dropout: give a tensor of bfloat16"
        )
    layouts = [tensor.memory_config.memory_layout for tensor in (source, result)]
    if layouts[0] is not layouts[1]:
        yield (
            "Dropout operation requires Input and Output memory layout to match. Input layout: "
            f"{layouts[0].value}, Output layout: {layouts[1].value}\nmemory_config: leave it out"
        )
    sharded = source.memory_config.is_sharded()
    if not sharded and source.layout is not Layout.TILE:
        yield (
            "Dropout operation requires tensor to be in Tile layout when working with non-sharded input tensor. Input "
            "tensor layout: 0\ninput_tensor: bring it into TILE_LAYOUT"
        )
    if target is not None and target.shape != source.shape:
        yield (
            "When preallocated output tensor is used, Dropout operation requires its shape to match the input shape. "
            f"Input shape: Shape({list(source.shape)}), Shape in preallocated output tensor: "
            f"Shape({list(target.shape)})\noutput_tensor: give one of the input's shape"
        )
    if target is not None and not sharded and target.layout is not Layout.TILE:
        yield (
            "Dropout operation requires output tensor to be in Tile layout when working with non-sharded tensor.\n"
            "output_tensor: give one in TILE_LAYOUT"
        )
