"""A convolution with the library's cores, blocks and order of blocks."""

from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import choose_cores, partition_conv, scheme_alignment


def planned_work(problem, options, scheme, spec, *, fidelity_phases, activation=None):
    alignment = scheme_alignment(problem, scheme)
    config = choose_cores(problem, options, spec, scheme, alignment=alignment)
    layout = partition_conv(problem, options, spec, config, alignment=alignment)
    return Conv2dOp.of(layout, fidelity_phases=fidelity_phases, activation=activation)
