"""The model of a halo: values, cycles and description."""

from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from device.matrix_unit.packer import unpack
from device.numbers.formats import FLOAT32, Array
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from device.time.stages import OperationCycles, Stage
from ops.op_model import Description, Detail, Ends, OpModel, counted, either, values_of_first
from ops.programs.halo.cycles import halo_cycles, halo_sent
from ops.programs.halo.plan import HaloArguments, HaloOp, HaloPlan
from ops.window import sliding_window_text

STAGES: Final = MappingProxyType(
    {
        Stage.READER: "the first processor fills padding and copies sticks to the cores whose windows read them",
        Stage.SECOND_READER: "the second processor fills padding and copies its half of the sticks",
        Stage.UNTILIZE: "tiles of the input become sticks",
        Stage.NETWORK: "transfers wait for others on the same links",
    }
)


def halo_class(halo: HaloArguments, spec: DeviceSpec) -> str:
    """The class of a halo's program, as error bars are sorted: older kernels are a class of their own."""
    kernels = " by task" if release_of(spec.release).halo_by_task else ""
    return f"Halo of {'tiles' if halo.tiled else 'rows'}{kernels}"


def describe_halo(op: HaloOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a halo was planned."""
    halo = op.plan.arguments
    return Description(
        facts=partial(_facts, op.plan),
        stages=STAGES,
        measured_as=halo_class(halo, spec),
        attributes=partial(_attributes, halo),
    )


def _facts(plan: HaloPlan) -> tuple[Detail, ...]:
    halo, sticks = plan.arguments, plan.ranges.max_sticks
    lists = "config tensors in DRAM", "config tensors in L1_SMALL"
    return (
        Detail("scheme", halo.scheme.name, halo.scheme.name),
        counted("cores", halo.cores.num_cores(), "core"),
        Detail("sticks_a_core", sticks, f"up to {sticks:,} sticks of the frame on a core"),
        either("untilizes", halo.tiled, "tiles untilized on the way", "input in rows already"),
        either("config_tensors_in_dram", halo.config_tensors_in_dram, *lists),
    )


def _attributes(halo: HaloArguments) -> tuple[tuple[str, str], ...]:
    windows = sliding_window_text(
        halo.outputs_of or halo.frame, halo.cores, nhw_cores=halo.nhw_cores, channel_cores=halo.channel_cores
    )
    memory = f"MemoryConfig(memory_layout=TensorMemoryLayout::{halo.scheme.name},buffer_type=BufferType::L1)"
    return (("config", windows), ("output_memory_config", memory))


def halo_values(op: HaloOp, sticks: Array) -> Array:
    """The input as the convolution reads it; the frame around it is left to the convolution, which knows the zeros.

    Untilizing passes a float32 through the matrix unit's registers, which cuts it.
    """
    arguments = op.plan.arguments
    if arguments.tiled and arguments.data_format == FLOAT32:
        return unpack(np.ascontiguousarray(sticks), FLOAT32, fp32_dest=op.fp32_dest)
    return sticks


def _cycles(op: HaloOp, ends: Ends, spec: DeviceSpec) -> OperationCycles:
    filled_by_stick = op.filled_by_stick
    return halo_cycles(op.plan, spec, filled_by_stick=filled_by_stick)


OP_MODELS: Final = (
    OpModel(op=HaloOp, values=values_of_first(halo_values), cycles=_cycles, describe=describe_halo, sent=halo_sent),
)
