"""What a conv2d program takes: cycles of every group of cores, bytes and products, read off the walk of `walk`."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import ShardOrientation
from device.memory.tiles import TILE
from device.spec.device_spec import DeviceSpec
from device.time.engine import Moment, Processor, critical_cycles, stage_report
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles, binding_stage
from ops.frame.axis import FrameAxis, count_met_taps
from ops.programs.conv2d.circular_buffers import multicasts_activations
from ops.programs.conv2d.cores import ConvTiming, Core
from ops.programs.conv2d.partition import HEIGHT, WIDTH, ParallelConfig
from ops.programs.conv2d.problem import ConvProblem
from ops.programs.conv2d.walk import time_conv
from ops.programs.conv2d.work import ConvWork

GATHERS = frozenset({Stage.READER, Stage.SECOND_READER, Stage.TILIZE, Stage.ACT_MULTICAST})
MULTIPLIES = frozenset(
    {
        Stage.WEIGHT_READER,
        Stage.WEIGHT_MULTICAST,
        Stage.DRAM,
        Stage.UNPACK,
        Stage.MATH,
        Stage.PACK,
        Stage.BIAS,
        Stage.UNTILIZE,
        Stage.WRITER,
    }
)
READS = (Stage.READER, Stage.SECOND_READER)
READS_WEIGHTS = frozenset({Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST, Stage.DRAM})
Share: TypeAlias = tuple[float, float]  # of the first reader's and of the second one's tile rows
WHOLE: Final[Share] = (1.0, 1.0)


class Role(NamedTuple):
    """Cores that are like one of the walk, but for stages in which they only wait or have less to do."""

    cores: CoreRangeSet
    core: tuple[Processor, ...]  # Processors of the one of the walk, as `Core.processors`
    waits: tuple[tuple[Stage, Processor], ...]  # Whose waiting counts as a stage's
    end: Moment  # When they are done
    idle: frozenset[Stage]  # Stages in which they only wait
    share: Share  # Of the tile rows, those that their readers read


def conv_cycles(work: ConvWork, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """What a convolution takes on a device.

    Args:
        contention: Whether the readers of weights share the bandwidth of DRAM.
    """
    timing = time_conv(work, spec, contention=contention)
    roles = core_roles(work, timing)
    slowest = slowest_group(roles)
    return OperationCycles(
        cycles=timing.end.cycles,
        groups=partial(core_groups, roles),
        slowest=slowest,
        cores=sum(role.cores.num_cores() for role in roles),
        bound_by=binding_stage(slowest.stages),
        dram_read_bytes=weight_bytes(work),
        network_bytes=network_bytes(work),
        issued_flops=issued_flops(work),
        useful_flops=useful_flops(work.problem),
        contention_cycles=critical_cycles(timing.end).get(Stage.DRAM, 0.0),
        moved=partial(_moved, work),
    )


def core_roles(work: ConvWork, timing: ConvTiming) -> tuple[Role, ...]:
    """Cores that read weights from DRAM and those that get them, apart by what else they do.

    BLOCK and WIDTH: where inputs and outputs are dealt to different numbers of cores, some only gather and tilize for
    the others, and some only multiply.
    """
    multiplying, reading = work.layout.out_config.cores, _weight_readers(work)
    roles = [(multiplying.without(work.layout.config.cores), GATHERS, WHOLE)]
    for share, cores in _gathering(work).items():
        roles += [
            (multiplying.shared(cores), frozenset[Stage](), share),
            (cores.without(multiplying), MULTIPLIES, share),
        ]
    return tuple(
        _role(own, core, idle | others, share)
        for cores, idle, share in roles
        if not cores.empty()
        for own, core, others in (
            (cores.shared(reading), timing.sender, frozenset[Stage]()),
            (cores.without(reading), timing.cores[-1], READS_WEIGHTS),
        )
        if not own.empty()
    )


def _role(cores: CoreRangeSet, core: Core, idle: frozenset[Stage], share: Share) -> Role:
    """What some cores do; those that multiply nothing are done with their reader. Arguments as of `Role`."""
    end = core.reader.now if idle >= MULTIPLIES else core.compute.now
    waits = ((Stage.READER, core.reader), (Stage.WEIGHT_READER, core.second), (Stage.MATH, core.compute))
    return Role(cores, core.processors, waits, end, idle, share)


def core_groups(roles: Sequence[Role]) -> tuple[CoreGroupCycles, ...]:
    """All cores of a program; the stages of a core of the walk are found out once for all that are like it."""
    told: dict[tuple[tuple[Processor, ...], float], tuple[StageCycles, ...]] = {}
    for role in roles:
        if (like := (role.core, role.end.cycles)) not in told:
            told[like] = _stages(role)
    return tuple(_group(role, told[role.core, role.end.cycles]) for role in roles)


def slowest_group(roles: Sequence[Role]) -> CoreGroupCycles:
    """The first of `core_groups` that ends last."""
    slowest = max(roles, key=lambda role: role.end.cycles)
    return _group(slowest, _stages(slowest))


def _stages(role: Role) -> tuple[StageCycles, ...]:
    """Those of the core of the walk that some cores are like."""
    return stage_report(role.core, role.end, waits=dict(role.waits))


def _group(role: Role, stages: Sequence[StageCycles]) -> CoreGroupCycles:
    """What some cores do, by the stages of the core of the walk that they are like."""
    parts = dict.fromkeys(role.idle, 0.0) | {
        stage: part for stage, part in zip(READS, role.share, strict=True) if stage not in role.idle
    }
    own = tuple([_part_of(one, parts[one.stage]) if one.stage in parts else one for one in stages])
    return CoreGroupCycles(cores=role.cores, cycles=role.end.cycles, stages=own)


def _part_of(stage: StageCycles, part: float) -> StageCycles:
    """A stage that works for a part of the time and waits for the rest."""
    busy = part * stage.busy_cycles
    return StageCycles(stage.stage, busy, stage.stall_cycles + stage.busy_cycles - busy, stage.critical_cycles)


def _gathering(work: ConvWork) -> dict[Share, CoreRangeSet]:
    """Cores of the input by the part of their tile rows that have outputs: those behind the last one are not read."""
    config = work.layout.config
    full = work.problem.out_rows // work.layout.shards.out_rows  # slices before the last rows
    shares = [_share(work, 0)] * min(full, config.nhw_cores)
    shares += [_share(work, number) for number in range(len(shares), config.nhw_cores)]
    cut = {number: share for number, share in enumerate(shares) if share != WHOLE}
    ragged: dict[Share, list[CoreRange]] = {}
    for place, core in enumerate(config.cores.cores() if cut else ()):
        if (share := cut.get(_slice_of(place, core, config))) is not None:
            ragged.setdefault(share, []).append(CoreRange(core, core))
    found = {share: CoreRangeSet(own).merged() for share, own in ragged.items()}
    rest = config.cores
    for part in found.values():
        rest = rest.without(part)
    return ({} if rest.empty() else {WHOLE: rest}) | found


def _share(work: ConvWork, number: int) -> Share:
    """The parts of a slice of the rows that readers find outputs for; a reader without tile rows has all of them."""
    layout = work.layout
    height = layout.blocks.act_h_tiles * TILE
    second = layout.blocks.act_h_tiles // 2 * TILE if layout.split_reader else 0
    left = min(max(0, work.problem.out_rows - number * layout.shards.out_rows), layout.shards.out_rows)
    blocks = [min(max(0, left - block * height), height) for block in range(work.out_blocks)]
    first = sum(min(rows, height - second) for rows in blocks)
    rest = (sum(blocks) - first) / (second * len(blocks)) if second else 1.0
    return first / ((height - second) * len(blocks)), rest


def _slice_of(place: int, core: CoreCoord, config: ParallelConfig) -> int:
    """Which slice of the rows a core has, by its place among the cores."""
    if config.scheme is WIDTH:
        return 0
    if config.scheme is HEIGHT:
        return place
    return core.x if config.orientation is ShardOrientation.COL_MAJOR else core.y


def _weight_readers(work: ConvWork) -> CoreRangeSet:
    """HEIGHT: the first core; BLOCK: the first core of every channel slice; WIDTH: all."""
    out, origin = work.layout.out_config, CoreCoord(0, 0)
    if out.scheme is WIDTH:
        return out.cores
    if out.scheme is HEIGHT:
        return CoreRangeSet(CoreRange(origin, origin))
    last = out.channel_cores - 1
    end = CoreCoord(0, last) if out.orientation is ShardOrientation.COL_MAJOR else CoreCoord(last, 0)
    return CoreRangeSet(CoreRange(origin, end))


def weight_bytes(work: ConvWork) -> int:
    """Bytes of weights and bias read from DRAM: by BLOCK and WIDTH again for every output block."""
    layout, tile_bytes = work.layout, work.problem.weight_format.tile_bytes
    width = layout.shards.out_col_tiles
    bias_tiles = width if work.problem.bias else 0
    tiles = work.weight_passes * layout.blocks.k_blocks * layout.blocks.act_w_tiles * width + bias_tiles
    return work.weight_readers * tiles * tile_bytes


def network_bytes(work: ConvWork) -> int:
    """Bytes multicast: weights by their readers, activations by every core that holds some."""
    return _sent_weight_bytes(work) + _sent_activation_bytes(work)


def _sent_weight_bytes(work: ConvWork) -> int:
    layout = work.layout
    return 0 if layout.scheme is WIDTH or layout.out_config.nhw_cores == 1 else weight_bytes(work)


def _sent_activation_bytes(work: ConvWork) -> int:
    layout, blocks = work.layout, work.layout.blocks
    if not multicasts_activations(layout.config, layout.out_config):
        return 0
    block_bytes = blocks.act_h_tiles * blocks.act_w_tiles * work.problem.out_format.tile_bytes
    return work.out_blocks * blocks.k_blocks * layout.config.nhw_cores * block_bytes


def _moved(work: ConvWork) -> tuple[MovedBytes, ...]:
    """Weights by the cores that read them, activations by those that hold them."""
    return (
        MovedBytes(_weight_readers(work), weight_bytes(work), _sent_weight_bytes(work)),
        MovedBytes(work.layout.config.cores, 0, _sent_activation_bytes(work)),
    )


def issued_flops(work: ConvWork) -> int:
    """Multiplications and additions of all tile products."""
    layout = work.layout
    cores = layout.out_config.nhw_cores * layout.out_config.channel_cores
    products = layout.shards.out_row_tiles * layout.shards.out_col_tiles
    k_tiles = layout.blocks.act_w_tiles * layout.blocks.k_blocks
    return 2 * TILE**3 * cores * products * k_tiles


def useful_flops(problem: ConvProblem) -> int:
    """Products of an input and a weight, of all outputs: inserted zeros and padding to tiles left out."""
    frame = problem.frame
    taps = frame.batch * _taps(frame.rows) * _taps(frame.columns)
    return 2 * taps * problem.in_channels * problem.out_channels


def _taps(axis: FrameAxis) -> int:
    """Kernel positions that meet an input or padding around the image, of all outputs along an axis."""
    return count_met_taps(axis) if axis.data else 0
