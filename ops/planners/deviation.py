"""Plans of std and var. Rules: ttnn 0.81.1 (reduction/generic), compared with its plans.

One program reduces the last axis, the last but one, or several up to the last; others are moved first.
"""

from dataclasses import dataclass
from typing import Final

from device.cores import CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.reduction import require_no_dram_blocks, sharded_place, tiles_of_rows
from ops.planners.shape.permute import permuted_by, transposed_by
from ops.planners.shape.reshape import reshaped_by
from ops.planners.to_config import check_rows
from ops.programs.buffer_shapes import require_cores
from ops.programs.reduction.welford import Welford, welford_buffers

FORMATS: Final = (FLOAT32, BFLOAT16, BFLOAT8_B)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationArguments:
    """A call of std or var."""

    name: str
    axes: tuple[int, ...]  # Sorted, from the first
    keeps: bool = False  # Reduced axes stay with length 1
    scalar: float = 1.0
    corrected: bool = True
    place: MemoryConfig | None = None
    fp32_dest: bool = True
    cores: CoreRangeSet | None = None  # That may be used; None for all


def plan_deviation(source: TensorSpec, call: DeviationArguments, spec: DeviceSpec) -> Plan:
    """Plan the deviation of the tensor "input", which has axes; raises DeviceError if the library refuses the call."""
    return plan_of(source, spec, lambda builder, tensor: _Deviation(builder, tensor, call).planned(), attempts=True)


class _Deviation:
    """Writes one call."""

    def __init__(self, builder: PlanBuilder, source: PlanTensor, call: DeviationArguments) -> None:
        self.builder, self.source, self.call = builder, source, call
        self.place = source.spec.memory_config if call.place is None else call.place

    def planned(self) -> PlanTensor:
        """The result."""
        builder, source, call = self.builder, self.source, self.call
        rank, axes = len(source.spec.shape), call.axes
        gone = set(axes)
        final = tuple(1 if axis in gone else side for axis, side in enumerate(source.spec.shape))
        shape = final if call.keeps else tuple(side for axis, side in enumerate(final) if axis not in gone)
        alone = len(axes) == 1 and axes[0] < rank - 2
        if alone:
            turned = transposed_by(builder, source, (axes[0], rank - 2), self.place, "turned")
        else:
            order = (*(axis for axis in range(rank) if axis not in gone), *axes)
            turned = source if len(axes) == 1 else permuted_by(builder, source, order, self.place, "turned")
        if rank == 1 and turned.spec.layout is Layout.ROW_MAJOR:
            turned = reshaped_by(builder, turned, (1, *turned.spec.shape), None, None, "row")
        read = turned
        if turned.spec.layout is Layout.ROW_MAJOR:
            check_rows(turned.spec, builder.device_spec)
            read = tiles_of_rows(builder, turned, "tiles", self.place, call.cores)
        builder.free_own(turned, keep=[read, source])
        last = (-2,) if alone or (len(axes) == 1 and axes[0] == rank - 2) else tuple(range(-len(axes), 0))
        result = reduced = self._run(read, last)
        if alone:
            result = transposed_by(builder, reduced, (axes[0], rank - 2), self.place, "back")
        shaped = reshaped_by(builder, result, shape, None, None, "shaped")
        builder.free_own(result, keep=[shaped])
        if result.name != reduced.name:
            builder.free_own(reduced, keep=[shaped])
        builder.free_own(read, keep=[shaped, source])
        return shaped

    def _run(self, read: PlanTensor, axes: tuple[int, ...]) -> PlanTensor:
        call, spec, builder = self.call, read.spec, self.builder
        shape = tuple(1 if axis - len(spec.shape) in axes else side for axis, side in enumerate(spec.shape))
        target = TensorSpec(shape, spec.data_format, Layout.TILE, sharded_place(spec, shape, self.place))
        if spec.data_format not in FORMATS:
            raise DeviceError(
                "Only FLOAT32, BFLOAT16, and BFLOAT8_B are supported for Std/Var reduction - got "
                f"DataType::{spec.data_format.name.upper()}\n{call.name}: typecast the tensor"
            )
        require_no_dram_blocks("Std/Var reduction", call.name, spec.memory_config, self.place)
        if spec.data_format == FLOAT32 and not call.fp32_dest:
            raise DeviceError(
                "ttnn.std/var with Float32 input requires fp32_dest_acc_en=true in the compute kernel config; "
                f"otherwise precision is silently lost in the unpacker format conversion.\n{call.name}: set it"
            )
        op = Welford(
            root=call.name == "std",
            shape=spec.shape,
            axes=axes,
            scalar=call.scalar,
            corrected=call.corrected,
            data_format=spec.data_format,
            fp32_dest=call.fp32_dest,
            allowed=call.cores,
        )
        self._require_cores(op)
        buffers = welford_buffers(op, spec, builder.device_spec)
        made = PlanTensor("reduced", target)
        return builder.run("WelfordReduceDeviceOperation", op, [read], made, buffers, dataflow=True)

    def _require_cores(self, op: Welford) -> None:
        """Raises DeviceError for no cores, and for working cores outside the device, by group of equal work."""
        spec, name = self.builder.device_spec, self.call.name
        used = op.cores(spec).cores()
        more = op.items % len(used) if used else 0  # cores with one item more than the others
        groups = {"wu_g1": used[:more], "wu_g2": used[more:]} if more else {"wu_g1": used}
        for unit, cores in groups.items():
            group = CoreRangeSet([CoreRange(core, core) for core in cores])
            require_cores(self.call.cores, spec, name, unit=unit, used=group)
