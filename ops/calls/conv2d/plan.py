"""The plan of ttnn.conv2d."""

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.conv2d.folding import FOLDED, folded_call, folded_input, folds, sliced_as
from ops.calls.conv2d.validation import validate_whole
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.dram_path import dram_path
from ops.calls.convolution.l1_path import l1_path
from ops.calls.convolution.matmul_path import matmul_path
from ops.calls.convolution.plan import builder_of, finished, plan_convolution, reads_free_l1
from ops.calls.convolution.problem import is_matmul, takes_l1_path


def plan_conv2d(
    call: ConvArguments, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """Plan a call of conv2d, validated; arguments and errors as of `plan_convolution`.

    Windows that are folded into channels leave a convolution of stride 1. Side by side, that is a 1x1 kernel, which
    the DRAM path takes to the L1 path, where it is a matmul unless it has a dilation or WIDTH shards.
    """
    if not folds(call):
        return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    builder = builder_of(call, device_spec)
    image = folded_input(builder, call)
    folded = folded_call(call, image.spec)
    validate_whole(folded)
    if is_matmul(folded):
        output = matmul_path(builder, folded, image, from_dram=False, free_l1_bytes=free_l1_bytes)
    elif takes_l1_path(call) or call.kernel_size == call.stride:
        output = l1_path(builder, folded, image)
    else:
        output = dram_path(builder, sliced_as(folded, call), image, free_l1_bytes=free_l1_bytes)
    if builder.is_own(image) and not builder.refused:
        builder.free(image)
    return finished(builder, folded, output, returns_weights=returns_weights)


def conv2d_reads_free_l1(call: ConvArguments) -> bool:
    """Whether the free bytes of L1 can change the plan of a call; folded windows can leave a matmul or slices."""
    return folds(call) or reads_free_l1(call)


def left_of(call: ConvArguments, plan: Plan) -> ConvArguments:
    """What the plan of a call carries out of it: itself, or what was left when its windows were folded."""
    return folded_call(call, plan.tensors[FOLDED]) if folds(call) else call
