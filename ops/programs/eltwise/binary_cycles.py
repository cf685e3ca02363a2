"""What a program takes that combines two tensors, or a tensor and a number: the steps of `eltwise.cycles`.

Composed of measured parts: an addition by the matrix unit and a function of the vector unit are measured as such, a
product of two tensors is not. The second tensor is taken to lie where the first one does.
"""

from device.memory.layouts import TensorSpec
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.programs.actions.compute import pack_tile_cycles, unpack_tile_cycles
from ops.programs.actions.costs import ComputeCosts
from ops.programs.eltwise.binary import Binary
from ops.programs.eltwise.cycles import Steps, operation_cycles, wait_cycles, write_cycles


def binary_cycles(
    work: Binary, read: TensorSpec, written: TensorSpec, spec: DeviceSpec, *, contention: bool = True
) -> OperationCycles:
    """Cycles of a program that combines two tensors, or a tensor and a number.

    Args:
        work: The program.
        read: The first tensor.
        written: The result.
        spec: The device.
        contention: Whether the cores share the bandwidth of DRAM.
    """
    left = work.left_format.tile_bytes
    right = 0 if work.right_format is None else work.right_format.tile_bytes
    costs = spec.costs_of(ComputeCosts)
    functions = len(work.activations) + work.by_vector_unit
    fetched = wait_cycles(read, spec, left + right)
    steps = Steps(
        read=fetched,
        unpack=unpack_tile_cycles(spec, left) + (unpack_tile_cycles(spec, right) if right else 0.0),
        math=functions * costs.vector_tile_cycles + (0.0 if work.by_vector_unit else costs.add_tile_cycles),
        pack=pack_tile_cycles(spec, work.data_format.tile_bytes),
        write=write_cycles(written, spec),
    )
    return operation_cycles(steps, read, written, left + right if fetched else 0, spec, contention=contention)
