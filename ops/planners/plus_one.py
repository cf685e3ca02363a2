"""The plan of ttnn.plus_one. Rules: ttnn 0.81.1 (experimental/plusone), compared with its plans."""

from collections.abc import Iterator

from device.cores import CoreRangeSet, first_cores
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import INT32, UINT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.data_movement.plus_one import PlusOne, plus_one_buffers

MOST_AXES = 4


def plan_plus_one(
    source: TensorSpec, spec: DeviceSpec, *, cores: CoreRangeSet | None = None, keeps_negative: bool = False
) -> Plan:
    """Plan that the integers of the tensor "input" become larger by one, in its own buffer."""
    for text in _refusals(source):
        raise DeviceError(f"{text}\nplus_one: give int32 or uint32 in ROW_MAJOR layout, with up to {MOST_AXES} axes")
    where = first_cores(1, spec.grid.cols, spec.grid.rows) if cores is None else cores
    if source.memory_config.is_sharded() or where.num_cores() != 1:
        raise NotSimulatedError("plus_one: ttsim simulates interleaved tensors, on one core; move shards to DRAM first")
    op = PlusOne(cores=where, keeps_negative=keeps_negative)

    def write(builder: PlanBuilder, numbers: PlanTensor) -> PlanTensor:
        buffers = plus_one_buffers(source, op, spec)
        return builder.run("PlusOneDeviceOperation", op, [numbers], buffers=buffers, dataflow=True)

    return plan_of(source, spec, write)


def _refusals(source: TensorSpec) -> Iterator[str]:
    """What the library refuses, in its order."""
    if source.data_format not in (INT32, UINT32):
        yield "Only INT32 and UINT32 is supported for inputs!"
    if source.layout is not Layout.ROW_MAJOR:
        yield "Only ROW_MAJOR layout is supported for inputs!"
    if not 1 <= len(source.shape) <= MOST_AXES:
        yield f"must have 1 to {MOST_AXES} dimensions for input tensor"
