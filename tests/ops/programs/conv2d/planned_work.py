"""A convolution with the library's cores, blocks and order of blocks."""

from ops.programs.conv2d.blocks import k_block_order
from ops.programs.conv2d.buffers import l1_accumulation, partials_format
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import buffers_arguments, choose_cores, partition_conv, scheme_alignment


def planned_work(problem, options, scheme, spec, *, fidelity_phases, activation=None):
    alignment = scheme_alignment(problem, scheme)
    config = choose_cores(problem, options, spec, scheme, alignment=alignment)
    layout = partition_conv(problem, options, spec, config, alignment=alignment)
    buffers = buffers_arguments(problem, options, layout, halo_bytes=0, reader_indices_bytes=0)
    return Conv2dOp(
        problem=problem,
        options=options,
        layout=layout,
        k_blocks=k_block_order(
            layout.config, layout.shards, layout.blocks, problem.kernel, full_inner_dim=options.full_inner_dim
        ),
        fidelity_phases=fidelity_phases,
        partials_format=partials_format(buffers),
        l1_accumulation=l1_accumulation(
            requested=options.packer_l1_acc, bias=problem.bias, k_blocks=buffers.accumulation_blocks
        ),
        activation=activation,
    )
