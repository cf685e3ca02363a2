"""The plan of ttnn.plus_one. Rules: ttnn 0.81.1 (experimental/plusone), compared with its plans."""

from collections.abc import Iterator

from device.cores import CoreRangeSet, first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import INT32, UINT32
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import beyond_shards, in_dram, not_in_l1
from ops.programs.data_movement.plus_one import PlusOne, plus_one_buffers

MOST_AXES = 4
MISCOUNT = (
    "plus_one: the real library has every core count all rows of interleaved tensors, and the first row of its own "
    "shard; give one core, or the cores of shards of one row each"
)


def plan_plus_one(
    source: TensorSpec, spec: DeviceSpec, *, cores: CoreRangeSet | None = None, keeps_negative: bool = False
) -> Plan:
    """Plan the increment of all integers of the tensor "input", in place."""
    for text in _refusals(source):
        raise DeviceError(f"{text}\nplus_one: give int32 or uint32 in ROW_MAJOR layout, with up to {MOST_AXES} axes")
    where = counting_cores(cores, spec)
    op = PlusOne(cores=where, keeps_negative=keeps_negative)

    def write(builder: PlanBuilder, numbers: PlanTensor) -> PlanTensor:
        if not counts_once(source, where):
            builder.leave_out_values(MISCOUNT)
        buffers = plus_one_buffers(source, op, spec)
        refused = next(_buffer_refusals(source, buffers, spec), None)
        buffers = () if refused else buffers
        return builder.run("PlusOneDeviceOperation", op, [numbers], buffers=buffers, dataflow=True, refused=refused)

    return plan_of(source, spec, write)


def counting_cores(cores: CoreRangeSet | None, spec: DeviceSpec) -> CoreRangeSet:
    """The caller's cores, or the first core."""
    return first_cores(1, spec.grid.cols, spec.grid.rows) if cores is None else cores


def counts_once(source: TensorSpec, cores: CoreRangeSet) -> bool:
    """Whether the library counts every number once: cores count all rows, or of shards the first row of their own."""
    if not source.memory_config.is_sharded():
        return cores.num_cores() == 1
    shards = source.shards
    return tuple(shards.shape) == (1, source.shape[-1]) and set(cores.cores()) == set(source.data_cores.cores())


def require_counts(source: TensorSpec, cores: CoreRangeSet) -> None:
    """Raises ArgumentError for a call that increments some elements twice, or not at all."""
    if not counts_once(source, cores):
        raise ArgumentError(MISCOUNT)


def _buffer_refusals(source: TensorSpec, buffers: tuple[CircularBuffer, ...], spec: DeviceSpec) -> Iterator[str]:
    """Why the shards of a tensor do not hold a row."""
    if source.memory_config.is_sharded():
        if in_dram(source):
            yield f"{not_in_l1('in0', 'input')}\nplus_one: move the shards to L1"
        bank_bytes = source.buffer(spec).bank_bytes
        yield from beyond_shards("in0", buffers[0].page_bytes, 1, "input", bank_bytes)


def _refusals(source: TensorSpec) -> Iterator[str]:
    """The refusals of the library, in its order."""
    if source.data_format not in (INT32, UINT32):
        yield "Only INT32 and UINT32 is supported for inputs!"
    if source.layout is not Layout.ROW_MAJOR:
        yield "Only ROW_MAJOR layout is supported for inputs!"
    if not 1 <= len(source.shape) <= MOST_AXES:
        yield f"must have 1 to {MOST_AXES} dimensions for input tensor"
