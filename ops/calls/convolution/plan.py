"""The plan of a convolution, transposed or not: which path, and what every step of it allocates and runs."""

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.dram_path import dram_path
from ops.calls.convolution.l1_path import l1_path
from ops.calls.convolution.matmul_path import matmul_path
from ops.calls.convolution.no_outputs import plan_without_outputs
from ops.calls.convolution.operands import operand_names
from ops.calls.convolution.output_lengths import plans_without_outputs
from ops.calls.convolution.problem import is_matmul, takes_l1_path
from ops.meanings import MEANINGS


def plan_convolution(
    call: ConvArguments, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """Plan a call.

    Args:
        free_l1_bytes: Free bytes of every L1 bank when the call begins: they decide how many slices are needed.
        returns_weights: The caller gets prepared weights and bias; otherwise they are released at the end.

    Raises:
        DeviceError: The real library refuses the call for a reason that needs a plan to see.
    """
    builder = builder_of(call, device_spec)
    if plans_without_outputs(call):
        output = plan_without_outputs(builder, call)
    elif is_matmul(call):
        source = builder.tensor("input")
        output = matmul_path(builder, call, source, from_dram=not takes_l1_path(call), free_l1_bytes=free_l1_bytes)
    elif takes_l1_path(call):
        output = l1_path(builder, call, builder.tensor("input"))
    else:
        output = dram_path(builder, call, builder.tensor("input"), free_l1_bytes=free_l1_bytes)
    return finished(builder, call, output, returns_weights=returns_weights)


def reads_free_l1(call: ConvArguments) -> bool:
    """Whether the free bytes of L1 can change the plan of a call; on the L1 path only those of a matmul do."""
    return is_matmul(call) or not takes_l1_path(call)


def builder_of(call: ConvArguments, device_spec: DeviceSpec) -> PlanBuilder:
    """An empty plan of a call; its tensors are "input", "weight" and, if there is one, "bias"."""
    given = {"input": call.input, "weight": call.weight, "bias": call.bias}
    return PlanBuilder(device_spec, {name: one.spec for name, one in given.items() if one is not None})


def finished(builder: PlanBuilder, call: ConvArguments, output: PlanTensor, *, returns_weights: bool) -> Plan:
    """The plan of a call whose steps are written: what it releases at the end, and what it returns, if anything."""
    if builder.refused:
        return builder.finish({})
    names = operand_names(call)
    builder.free_adopted()
    if not returns_weights:
        builder.free(*(one for one in map(builder.tensor, names) if builder.is_own(one)))
    operands = dict(zip(("weight", "bias"), names, strict=False)) if returns_weights else {}
    return builder.finish({"output": output.name, **operands}, {output.name: output.spec}, known_works=MEANINGS)
