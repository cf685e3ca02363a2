"""Cycles, bytes and products of every group of cores of a conv2d program, from the walk through its blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Any, Final, NamedTuple

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import critical_cycles, stage_report
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles
from ops.programs.conv2d.block_costs import (
    WHOLE,
    ConvSteps,
    Share,
    conv_steps,
    gathering_cores,
    gathers_of,
    issued_flops,
    product_block,
    sent_activation_bytes,
    sent_weight_bytes,
    share_of_slice,
    useful_flops,
    weight_bytes,
    weight_reader_cores,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import HEIGHT, SUBBLOCKS, WIDTH, ConvPartition
from ops.programs.conv2d.walk import ConvTiming, Core, fetches_partials, time_conv
from ops.programs.conv2d.work import conv_transfers, conv_work
from ops.programs.kernel_costs import multiply_tasks

READS_WEIGHTS: Final = frozenset({Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST, Stage.DRAM})
GATHERS: Final = frozenset({Stage.READER, Stage.SECOND_READER, Stage.TILIZE, Stage.ACT_MULTICAST})
MULTIPLIES: Final = READS_WEIGHTS | {
    Stage.UNPACK,
    Stage.MATH,
    Stage.PACK,
    Stage.BIAS,
    Stage.UNTILIZE,
    Stage.WRITER,
}
ALL_WORK: Final = frozenset[Stage]()  # no idle stage


class Role(NamedTuple):
    """Cores that are like a core of the walk, except for stages in which they only wait or have less to do."""

    cores: CoreRangeSet
    core: Core  # The core of the walk
    idle: frozenset[Stage]  # Stages in which they only wait
    share: Share  # The part of the tile rows that their readers read

    @property
    def multiplies(self) -> bool:
        """Whether the cores end with their products; cores without products end with their reader."""
        return not self.idle >= MULTIPLIES

    @property
    def end(self) -> float:
        """The cycle in which they are done."""
        return (self.core.compute if self.multiplies else self.core.reader).now.cycles


def conv_cycles(op: Conv2dOp, spec: DeviceSpec) -> OperationCycles:
    """Cycles of a convolution on a device."""
    return operation_cycles(
        op,
        time_conv(op, spec),
        dram_read_bytes=weight_bytes(op),
        issued_flops=issued_flops(op),
        useful_flops=partial(useful_flops, op.problem),
        moved=partial(_moved, op),
        transfers=partial(conv_transfers, op, spec),
        tile_work=partial(conv_work, op, spec),
    )


def operation_cycles(op: Conv2dOp, timing: ConvTiming, **amounts: Any) -> OperationCycles:
    """The report of a walk; ``amounts`` are the bytes and products of the program."""
    groups = _Groups(op, timing)
    return OperationCycles(
        cycles=timing.end.cycles,
        groups=lambda: tuple(map(groups.of, groups.roles)),
        slowest=lambda: groups.of(max(groups.roles, key=lambda role: role.end)),
        cores=lambda: sum(role.cores.num_cores() for role in groups.roles),
        working=partial(_working, op, timing),
        contention_cycles=lambda: critical_cycles(timing.end).get(Stage.DRAM, 0.0),
        **amounts,
    )


class _Groups:
    """Groups of the cores of a walk by role, computed on access."""

    def __init__(self, op: Conv2dOp, timing: ConvTiming) -> None:
        self._op, self._timing = op, timing
        self._known: dict[tuple[int, bool], tuple[StageCycles, ...]] = {}

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """As `core_roles`."""
        return core_roles(self._op, self._timing)

    def of(self, role: Role) -> CoreGroupCycles:
        """The cores of a role; stages are computed once for all cores that are like the same core of the walk."""
        key = id(role.core), role.multiplies
        if key not in self._known:
            self._known[key] = _stages(role.core, role.multiplies)
        return _group(role, self._known[key])


def core_roles(op: Conv2dOp, timing: ConvTiming) -> tuple[Role, ...]:
    """Cores that read weights from DRAM and cores that receive them, by their other work.

    In BLOCK and WIDTH programs inputs and outputs can have different numbers of cores: some cores only gather and
    tilize for other cores, and some only multiply.
    """
    multiplying, readers = op.layout.out_config.cores, weight_reader_cores(op)
    parts = [(multiplying.without(op.layout.config.cores), GATHERS, WHOLE)]
    for share, cores in gathering_cores(op).items():
        parts += [(multiplying.shared(cores), ALL_WORK, share), (cores.without(multiplying), MULTIPLIES, share)]
    roles = []
    for cores, idle, share in parts:
        if not cores.empty():
            roles.append(Role(cores.shared(readers), timing.cores[0], idle, share))
            roles.append(Role(cores.without(readers), timing.cores[-1], idle | READS_WEIGHTS, share))
    return tuple(role for role in roles if not role.cores.empty())


def _working(op: Conv2dOp, timing: ConvTiming) -> frozenset[Stage]:
    """The stages that work on some core: the stages of the walk, without readers that read nothing on any core.

    The cores with the first slice of the rows read most.
    """
    most = dict(zip((Stage.READER, Stage.SECOND_READER), share_of_slice(op, 0), strict=True))
    return frozenset(
        stage
        for core in timing.cores
        for processor in core.processors
        for stage, cycles in processor.busy_cycles().items()
        if most.get(stage, 1.0) * cycles > 0
    )


def _parts(role: Role) -> dict[Stage, float]:
    """The part of the work of the core of the walk that the cores of a role do, of stages in which they do less."""
    return dict(zip((Stage.READER, Stage.SECOND_READER), role.share, strict=True)) | dict.fromkeys(role.idle, 0.0)


def _stages(core: Core, multiplies: bool) -> tuple[StageCycles, ...]:
    """Stages of a core of the walk up to its products, or up to the end of its reader."""
    end = core.compute.now if multiplies else core.reader.now
    waits = {Stage.READER: core.reader, Stage.WEIGHT_READER: core.second, Stage.MATH: core.compute}
    return stage_report(core.processors, end, waits=waits)


def _group(role: Role, stages: Sequence[StageCycles]) -> CoreGroupCycles:
    """The cores of a role with the stages of the core of the walk that they are like.

    In a stage in which they have less to do they wait for the rest of the time.
    """
    parts, own = _parts(role), []
    for stage in stages:
        busy = parts.get(stage.stage, 1.0) * stage.busy_cycles
        waited = stage.stall_cycles + stage.busy_cycles - busy
        own.append(StageCycles(stage.stage, busy, waited, stage.critical_cycles) if stage.stage in parts else stage)
    return CoreGroupCycles(cores=role.cores, cycles=role.end, stages=tuple(own))


def _moved(op: Conv2dOp) -> tuple[MovedBytes, ...]:
    """Bytes of weights by reading core, and of activations by the core that holds them."""
    return (
        MovedBytes(weight_reader_cores(op), weight_bytes(op), sent_weight_bytes(op)),
        MovedBytes(op.layout.config.cores, 0, sent_activation_bytes(op)),
    )


def least_cycles(op: Conv2dOp, steps: ConvSteps) -> float:
    """A lower bound of a program's cycles: the busy cycles of its busiest processor.

    If readers reuse activations of neighboring rows, only the products count.
    """
    blocks = op.layout.blocks
    gathers = 0 if steps.reused_reads is not None else gathers_of(op)
    tilize = steps.tilize.cycles + (0.0 if steps.second_tilize is None else steps.second_tilize.cycles)
    finish = 0.0 if steps.finish is None else steps.finish.cycles
    fetching = sum(fetches_partials(op, number) for number in range(blocks.k_blocks))
    products = (blocks.k_blocks - fetching) * steps.matmul.cycles + fetching * steps.matmul_reload.cycles
    compute = op.out_blocks * (gathers * tilize + products + finish)
    gathering = op.out_blocks * gathers * steps.read.cycles
    weights = op.weight_passes * blocks.k_blocks * steps.weights[0].cycles
    return steps.start.cycles + max(compute, gathering, weights)


def least_cycles_of_blocks(op: Conv2dOp, spec: DeviceSpec, *, any_cores: bool = False, joins_rows: bool) -> float:
    """A lower bound of `least_cycles` of all programs on the cores of a program, whatever their blocks and readers.

    With `any_cores`, of all programs of the same scheme: the given one has the most cores for rows. With `joins_rows`,
    kernel rows may be joined. Block heights only divide the tile rows, and depths the K tiles: so costs per block
    count once, and each core of a WIDTH program gathers and tilizes all rows of its own channels.
    """
    layout, scheme = _in_whole_shards(op.layout), op.layout.scheme
    rows = layout.shards.out_row_tiles if scheme is not WIDTH else max(1, layout.shards.out_rows // TILE)
    blocks = replace(layout.blocks, act_h_tiles=rows)
    op = replace(op, layout=replace(layout, blocks=blocks, split_reader=scheme is not WIDTH and rows > 1))
    steps, highest = conv_steps(op, spec), None if any_cores else rows
    alone = steps.start.cycles + (0.0 if steps.finish is None else steps.finish.cycles)
    rounds = blocks.k_blocks if scheme is HEIGHT else div_up(blocks.k_blocks, layout.config.channel_cores)
    tilize = steps.tilize.cycles + (0.0 if steps.second_tilize is None else steps.second_tilize.cycles)
    if scheme is WIDTH or joins_rows or (any_cores and scheme is not HEIGHT):  # K blocks of any number and depth
        k_tiles = prod(op.problem.kernel) * op.problem.in_channels / TILE
        if fixed := scheme is WIDTH and not any_cores:
            k_tiles = blocks.k_blocks * blocks.act_w_tiles
        (products,) = _least_products(op, spec, k_tiles, False, highest=highest)
        if fixed:
            return max(alone + rows * tilize + products, steps.start.cycles + rows * steps.read.cycles)
        if scheme is WIDTH or joins_rows:
            return alone + products
        return max(alone + rounds * tilize + products, steps.start.cycles + rounds * steps.read.cycles)
    fetching = sum(fetches_partials(op, number) for number in range(blocks.k_blocks))
    first, again = _least_products(op, spec, blocks.act_w_tiles, False, True, highest=highest)
    compute = alone + rounds * tilize + (blocks.k_blocks - fetching) * first + fetching * again
    reads = max(rounds * steps.read.cycles, blocks.k_blocks * steps.weights[0].cycles)
    return max(compute, steps.start.cycles + reads)


def _in_whole_shards(layout: ConvPartition) -> ConvPartition:
    """A layout whose K blocks are whole channel shards: a WIDTH program may cut each into parts."""
    parts, blocks = layout.options.act_block_w_div, layout.blocks
    if layout.scheme is not WIDTH or parts == 1:
        return layout
    blocks = replace(blocks, k_blocks=blocks.k_blocks // parts, act_w_tiles=blocks.act_w_tiles * parts)
    return replace(layout, blocks=blocks, options=replace(layout.options, act_block_w_div=1))


def _least_products(
    op: Conv2dOp, spec: DeviceSpec, depth: float, *reloads: bool, highest: int | None
) -> Iterator[float]:
    """The least cycles of the products of one K block, over all sub-blocks of at most `highest` rows of tiles.

    `reloads` are those of `multiply_tasks`.
    """
    width, most = op.layout.shards.out_col_tiles, spec.compute.dst_half_tiles(fp32_dest=op.options.fp32_dest)
    tiles, block = op.layout.blocks.act_h_tiles * width, product_block(op)
    tasks = [
        multiply_tasks(
            spec,
            block._replace(subblock_height=high, subblock_width=wide, subblocks=tiles / (high * wide), depth=depth),
            *reloads,
        )
        for high, wide in SUBBLOCKS
        if high * wide <= most and width % wide == 0 and (wide == width or high == 1) and high <= (highest or high)
    ]
    return (min(task.cycles for task in alike) for alike in zip(*tasks, strict=True))
