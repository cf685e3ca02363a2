"""Plans that split tiles into parts of equal width by one program. Rules: ttnn 0.81.1 and recorded plans."""

from device.errors import NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import is_uneven
from ops.programs.data_movement.split import SplitWidth, split_buffers, split_cores


def plan_split(source: TensorSpec, parts: int, spec: DeviceSpec, *, place: MemoryConfig | None = None) -> Plan:
    """Plan the parts "output_0", "output_1" and so on of the tensor "input", which `split_cores` gives cores."""
    builder, cores = PlanBuilder(spec, {"input": source}), split_cores(source, parts, spec)
    if cores is None:
        raise NotSimulatedError(f"split: the grid has no cores for {parts} parts of {source.shape[-1]} columns; slice")
    shape = (*source.shape[:-1], source.shape[-1] // parts)
    where = source.memory_config if place is None else place
    if (parts > 1 and where.is_sharded()) or is_uneven(source):
        raise NotSimulatedError("split: ttsim does not simulate parts in shards; give an interleaved memory_config")
    result = source.changed(shape=shape, memory_config=where)
    outputs = [PlanTensor(f"output_{number}", result) for number in range(parts)]
    op = SplitWidth(shape=source.shape, parts=parts)
    builder.run(
        "SplitDeviceOperation", op, [builder.tensor("input")], outputs[0], split_buffers(source, cores),
        more_outputs=outputs[1:], dataflow=True, key=("split", op, source, result),
    )  # fmt: skip
    return builder.finish({output.name: output for output in outputs})
