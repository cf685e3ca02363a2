"""The plan of a convolution, transposed or not: which path, and what every step of it allocates and runs."""

from device.memory.memory_config import BufferType
from device.plan import Free, Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments, SliceType
from ops.calls.convolution.dram_path import dram_path, one_slice_skips_dram
from ops.calls.convolution.l1_path import l1_path, operand_names
from ops.calls.convolution.matmul_path import matmul_path
from ops.calls.convolution.problem import is_matmul
from ops.programs.movement.staged import Staged


def plan_conv_transpose2d(
    a: ConvTranspose2dArguments, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """Plan a call of conv_transpose2d; arguments as of `plan_convolution`."""
    return plan_convolution(a, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)


def plan_convolution(a: ConvArguments, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True) -> Plan:
    """Plan a call.

    Args:
        a: The call, validated.
        spec: The device.
        free_l1_bytes: Free bytes of every L1 bank when the call begins: they decide how many slices are needed.
        returns_weights: The caller gets prepared weights and bias; otherwise they are released at the end.

    Raises:
        DeviceError: The real library refuses the call for a reason that needs a plan to see.
    """
    if is_matmul(a):
        staged = matmul_path(a, spec, from_dram=not _takes_l1_path(a), free_l1_bytes=free_l1_bytes)
    elif _takes_l1_path(a):
        staged = l1_path(a, Staged(name="input", spec=a.input.spec), spec)
    else:
        staged = dram_path(a, spec, free_l1_bytes=free_l1_bytes)
    return assembled(a, staged, returns_weights=returns_weights)


def assembled(a: ConvArguments, staged: Staged, *, returns_weights: bool) -> Plan:
    """The plan of a call whose steps are known: what it releases at the end, and what it returns."""
    operands = dict(zip(("weight", "bias"), operand_names(a), strict=False))
    staged = staged.then(*(Free(name) for name in staged.owned))
    if not returns_weights:
        staged = staged.then(*(Free(name) for name in operands.values() if name in staged.tensors))
    given = {"input": a.input, "weight": a.weight, "bias": a.bias}
    tensors = {name: operand.spec for name, operand in given.items() if operand is not None}
    results = {"output": staged.name, **(operands if returns_weights else {})}
    return Plan(steps=staged.steps, tensors={**tensors, **staged.tensors, staged.name: staged.spec}, results=results)


def _takes_l1_path(a: ConvArguments) -> bool:
    """Inputs in L1 without a slice config, L1_FULL, and a single slice take the L1 path (docs/planning.md, Paths)."""
    if a.slice_config is None:
        return not a.input.on_host and a.input.spec.memory_config.buffer_type is BufferType.L1
    return a.slice_config.slice_type is SliceType.L1_FULL or one_slice_skips_dram(a, a.slice_config.num_slices)
