"""What the conv2d micro-op computes of a call, or of some of its output phases, and what both ask of its tensors."""

from ops.builder import PlanTensor
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import compute_config
from ops.programs.conv2d.blocks import KBlock
from ops.programs.conv2d.circular_buffers import ConvBuffersArguments, partials_format
from ops.programs.conv2d.layout import ConvLayout
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.conv2d.work import ConvWork


def micro_op_work(
    call: ConvArguments,
    problem: ConvProblem,
    options: ConvOptions,
    layout: ConvLayout,
    *,
    k_blocks: tuple[KBlock, ...],
    buffers: ConvBuffersArguments,
) -> ConvWork:
    """What it computes.

    Args:
        problem: Its convolution, or that of some phases.
        options: The choices that hold for it.
        k_blocks: In their order.
        buffers: What decides its circular buffers, and so where partial sums lie.
    """
    return ConvWork(
        problem=problem,
        options=options,
        layout=layout,
        k_blocks=k_blocks,
        fidelity_phases=compute_config(call).fidelity_phases,
        partials_format=partials_format(buffers),
        l1_accumulation=buffers.l1_accumulation,
        activation=call.conv_config.activation,
    )


def sticks_bytes(halo: PlanTensor, problem: ConvProblem) -> int:
    """Bytes of a core's sticks; 0 if the tensor is not sharded."""
    shards = halo.spec.memory_config.shard_spec
    return 0 if shards is None else shards.shape[0] * shards.shape[1] * (problem.act_format.element_bytes or 0)
