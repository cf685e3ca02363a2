"""What a conv2d program takes at least, found out without walking through it.

Each processor does its steps one after the other, and the compute threads end last (`walk`). So the steps of any one
processor, added up without a wait, are never more than the program takes.
"""

from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.block_costs import ConvSteps, conv_steps
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.conv2d.walk import fetches_partials
from ops.programs.conv2d.work import ConvWork


def least_cycles(work: ConvWork, spec: DeviceSpec) -> float:
    """Cycles that a program is never faster than: the busiest of its processors, as if it never waited.

    Where readers keep what neighboring rows share, only the products count.
    """
    steps = conv_steps(work, spec)
    blocks, scheme = work.layout.blocks, work.layout.scheme
    gathers = rounds = blocks.k_blocks
    if scheme is not HEIGHT:
        rounds = div_up(blocks.k_blocks, work.layout.config.channel_cores)
        gathers = rounds * (blocks.act_h_tiles if scheme is WIDTH else 1)
    if steps.reused_reads is not None:
        gathers = 0
    tilize = steps.tilize.cycles + (0.0 if steps.second_tilize is None else steps.second_tilize.cycles)
    finish = 0.0 if steps.finish is None else steps.finish.cycles
    compute = work.out_blocks * (gathers * tilize + _products(work, steps) + finish)
    reading = work.out_blocks * gathers * steps.read.cycles
    weights = work.weight_passes * blocks.k_blocks * steps.weights[0].cycles
    return steps.start.cycles + max(compute, reading, weights)


def _products(work: ConvWork, steps: ConvSteps) -> float:
    """The products of one output block."""
    fetching = sum(fetches_partials(work, number) for number in range(work.layout.blocks.k_blocks))
    plain = work.layout.blocks.k_blocks - fetching
    return plain * steps.matmul.cycles + fetching * steps.matmul_reload.cycles
