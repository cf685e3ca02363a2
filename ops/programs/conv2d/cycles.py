"""What a conv2d program takes: a walk through its blocks, and cycles, bytes and products of every group of cores."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE, ShardOrientation
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import (
    BEGIN,
    Moment,
    Processor,
    Slots,
    Task,
    after,
    check_emptied,
    critical_cycles,
    repeat,
    stage_report,
)
from device.time.network import movers
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.conv2d.block_costs import (
    ConvSteps,
    ConvTiming,
    Core,
    Ending,
    Shipment,
    buffers_of,
    conv_steps,
    processors_of,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import HEIGHT, WIDTH, ConvProblem, ParallelConfig
from ops.window import PaddedAxis, count_met_taps


def time_conv(op: Conv2dOp, spec: DeviceSpec, *, contention: bool = True) -> ConvTiming:
    """The cores of a program after its end."""
    steps = conv_steps(op, spec, contention=contention)
    timing = begin([op], steps, spec)
    biases = iter([steps.bias])  # read behind the first block's weights

    def finish(cores: Sequence[Core]) -> None:
        bring_bias(next(biases, None), cores)
        if steps.finish is not None:
            for core in cores:
                core.compute.work(steps.finish)

    walk_blocks(op, steps, timing.cores, Ending(begun=lambda cores: None, finish=finish))
    check_emptied("conv2d", buffers_of(timing.cores))
    return timing


def begin(ops: Sequence[Conv2dOp], steps: ConvSteps, spec: DeviceSpec) -> ConvTiming:
    """Cores at the beginning of a program that runs some convolutions in sequence on the same cores."""
    layout = ops[0].layout
    shared = layout.scheme is not WIDTH and layout.out_config.nhw_cores > 1
    timing = ConvTiming(_core(ops, spec), (_core(ops, spec),) if shared else ())
    for core in timing.cores:
        for processor in core.processors:
            processor.work(steps.start)
        if steps.config is not None:
            core.reader.work(steps.config)
            core.splitter.wait(core.reader.now if steps.second_read is not None else BEGIN)
    return timing


def walk_blocks(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """All output blocks of a convolution; only the weights of the first block, and the end of a block, may differ."""
    if op.layout.scheme is HEIGHT:
        _height_block(op, steps, cores, ending, first=True)
        again = partial(_height_block, op, steps, cores, ending, first=False)
    else:
        again = partial(_multicast_block, op, steps, cores, ending)
        again()
    repeat(op.out_blocks - 1, again, processors_of(cores), [*buffers_of(cores), *ending.buffers])


def _core(ops: Sequence[Conv2dOp], spec: DeviceSpec) -> Core:
    """A core whose buffers serve several convolutions; HEIGHT with several output blocks keeps all weights of each."""
    reader, second, splitter = movers(spec.data_movement.processors, 3)
    options, scheme = ops[0].options, ops[0].layout.scheme
    act_blocks = 2 if options.act_double_buffer else 1
    resident = [op.layout.blocks.k_blocks for op in ops if scheme is HEIGHT and op.out_blocks > 1]
    weights = max(resident, default=2 if options.weights_double_buffer else 1)
    if options.reuses_activations(scheme):
        act_blocks = div_up(ops[0].problem.frame.columns.outputs, TILE)
    return Core(
        reader=reader,
        second=second,
        splitter=splitter,
        act=Slots("act", act_blocks),
        second_act=Slots("act_second_reader", act_blocks),
        row_major=Slots("act_row_major", 2 if scheme is WIDTH else 1),
        tilized=Slots("act_tilized", 1),
        weights=Slots("weights", weights),
    )


def _height_block(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending, *, first: bool) -> None:
    """Every core gathers its rows; one core reads the weights for all, once if there are several output blocks."""
    for k_block in range(op.layout.blocks.k_blocks):
        for core in cores:
            if steps.reused_reads is not None:
                _gather_reusing(op, steps, steps.reused_reads, core)
                continue
            core.reader.wait(core.act.reserve())
            core.act.fill(core.reader.work(steps.read))
            if steps.second_read is not None:
                core.splitter.wait(core.second_act.reserve())
                core.second_act.fill(core.splitter.work(steps.second_read))
        if first:
            _ship_weights(steps.weights, cores)
        else:
            for core in cores:
                core.second.wait(core.weights.reserve())
                core.weights.fill(core.second.now)
        if k_block == 0:
            ending.begun(cores)
        for core in cores:
            compute = core.compute
            if steps.reused_reads is None:
                compute.wait(core.act.front())
                core.act.empty(compute.work(steps.tilize))
                if steps.second_tilize is not None:
                    compute.wait(core.second_act.front())
                    core.second_act.empty(compute.work(steps.second_tilize))
            compute.wait(core.weights.front())
            core.weights.empty(compute.work(_matmul(op, steps, k_block)))
    ending.finish(cores)


def _gather_reusing(op: Conv2dOp, steps: ConvSteps, again: tuple[Task, Task], core: Core) -> None:
    """A block whose readers keep the data that the row of the image above shares, and hold one such row.

    Each reader begins its part with whole windows; of every further row of the image it reads the last kernel row, as
    soon as all of the row before is tilized. Tile rows of the two readers are tilized in turn.
    """
    height, row_tiles = op.layout.blocks.act_h_tiles, div_up(op.problem.frame.columns.outputs, TILE)
    second = height // 2 if steps.second_read is not None else 0
    parts = [
        (core.reader, core.act, height - second, steps.read, again[0], steps.tilize),
        (core.splitter, core.second_act, second, steps.second_read, again[1], steps.second_tilize),
    ]
    for row in range(height - second):
        for reader, buffer, rows, read, reused_read, tilize in parts:
            if row >= rows or read is None or tilize is None:
                continue
            reader.wait(buffer.reserve())
            if row % row_tiles == 0:
                reader.wait(buffer.last_emptied)
            buffer.fill(reader.work(read if row < row_tiles else reused_read))
            core.compute.wait(buffer.front())
            buffer.empty(core.compute.work(tilize))


def _multicast_block(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """BLOCK and WIDTH: every core tilizes its own channels, then the cores of a row send their blocks in turn."""
    layout = op.layout
    senders = layout.config.channel_cores
    sends = layout.multicasts_activations
    for first_k_block in range(0, layout.blocks.k_blocks, senders):
        for core in cores:
            _gather(steps, core, layout.blocks.act_h_tiles if layout.scheme is WIDTH else 1)
        for sender in range(senders):
            _ship_weights(steps.weights, cores)
            if first_k_block == sender == 0:
                ending.begun(cores)
            for core in cores:
                core.reader.wait(core.act.reserve())
                if sends:
                    _pass_on(steps.activations, core, own=sender == 0)
                else:
                    core.reader.wait(core.tilized.front())
                core.act.fill(core.reader.now)
                core.compute.wait(core.act.front())
                core.compute.wait(core.weights.front())
                core.act.empty(core.compute.work(_matmul(op, steps, first_k_block + sender)))
                core.weights.empty(core.compute.now)
        for core in cores:
            core.tilized.empty(core.reader.now)
    ending.finish(cores)


def _gather(steps: ConvSteps, core: Core, tile_rows: int) -> None:
    """Gather and tilize a block of a core's own channels."""
    reader, splitter, compute = core.reader, core.splitter, core.compute
    splitter.wait(core.row_major.reserve())
    begun = reader.now
    for _ in range(tile_rows):
        reader.wait(core.row_major.reserve())
        reader.work(steps.read)
        if steps.second_read is not None:
            splitter.wait(begun)
            reader.wait(splitter.work(steps.second_read))
        core.row_major.fill(reader.now)
        compute.wait(core.row_major.front())
        compute.work(steps.tilize)
        if steps.second_tilize is not None:
            compute.work(steps.second_tilize)
        core.row_major.empty(compute.now)
    core.tilized.fill(compute.now)


def _pass_on(shipment: Shipment, core: Core, *, own: bool) -> None:
    """A core of a row sends its tilized block to the whole row: this core, or one as far into the row."""
    reader = core.reader
    ready = after(reader.now, shipment.notice)
    front = core.tilized.front()
    begin = front if front.cycles > ready.cycles else ready
    if own:
        reader.wait(begin)
        sent = reader.work(shipment.send)
    else:
        sent = after(begin, shipment.send)
    reader.wait(after(sent, shipment.arrive))


def _ship_weights(steps: tuple[Task, Shipment], cores: Sequence[Core]) -> None:
    """A K block of weights comes from DRAM and goes on to the cores that have said that they have room."""
    read, shipment = steps
    sender, *receivers = cores
    sender.second.wait(sender.weights.reserve())
    sender.second.work(read)
    for core in receivers:
        core.second.wait(core.weights.reserve())
    _send(shipment, sender, receivers)
    for core in cores:
        core.weights.fill(core.second.now)


def _send(shipment: Shipment, sender: Core, receivers: Sequence[Core]) -> None:
    """A block of the second processor goes to all receivers, which have room for it."""
    for core in receivers:
        sender.second.wait(after(core.second.now, shipment.notice))
    if receivers:
        sent = sender.second.work(shipment.send)
        for core in receivers:
            core.second.wait(after(sent, shipment.arrive))


def _matmul(op: Conv2dOp, steps: ConvSteps, k_block: int) -> Task:
    return steps.matmul_reload if fetches_partials(op, k_block) else steps.matmul


def fetches_partials(op: Conv2dOp, k_block: int) -> bool:
    """Whether a K block fetches partial sums back; if the packer adds them in L1, only the last K block does."""
    last = k_block == op.layout.blocks.k_blocks - 1
    return k_block > 0 and (not op.l1_accumulation or (last and not op.problem.bias))


def bring_bias(bias: tuple[Task, Shipment] | None, cores: Sequence[Core]) -> None:
    """Read and send the bias, unless there is none or it has been sent already."""
    if bias is None:
        return
    read, shipment = bias
    cores[0].second.work(read)
    _send(shipment, cores[0], cores[1:])
    for core in cores:
        core.compute.wait(core.second.now)


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
Share: TypeAlias = tuple[float, float]  # of the tile rows of the first and of the second reader
WHOLE: Final[Share] = (1.0, 1.0)


class Role(NamedTuple):
    """Cores that are like a core of the walk, except for stages in which they only wait or have less to do."""

    cores: CoreRangeSet
    core: tuple[Processor, ...]  # Processors of the core of the walk, as `Core.processors`
    waits: tuple[tuple[Stage, Processor], ...]  # Whose waiting counts as a stage's
    end: Moment  # When they are done
    idle: frozenset[Stage]  # Stages in which they only wait
    share: Share  # The part of the tile rows that their readers read


def conv_cycles(op: Conv2dOp, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a convolution on a device."""
    timing = time_conv(op, spec, contention=contention)
    roles = core_roles(op, timing)
    slowest = slowest_group(roles)
    return OperationCycles(
        cycles=timing.end.cycles,
        groups=partial(core_groups, roles),
        slowest=slowest,
        cores=sum(role.cores.num_cores() for role in roles),
        bound_by=binding_stage(slowest.stages),
        dram_read_bytes=weight_bytes(op),
        network_bytes=network_bytes(op),
        issued_flops=issued_flops(op),
        useful_flops=useful_flops(op.problem),
        contention_cycles=critical_cycles(timing.end).get(Stage.DRAM, 0.0),
        moved=partial(_moved, op),
    )


def core_roles(op: Conv2dOp, timing: ConvTiming) -> tuple[Role, ...]:
    """Cores that read weights from DRAM and cores that receive them, by what else they do.

    In BLOCK and WIDTH programs inputs and outputs can lie on different numbers of cores: some cores only gather and
    tilize for the others, and some only multiply.
    """
    multiplying, context = op.layout.out_config.cores, _weight_readers(op)
    roles = [(multiplying.without(op.layout.config.cores), GATHERS, WHOLE)]
    for share, cores in _gathering(op).items():
        roles += [
            (multiplying.shared(cores), frozenset[Stage](), share),
            (cores.without(multiplying), MULTIPLIES, share),
        ]
    return tuple(
        _role(own, core, idle | others, share)
        for cores, idle, share in roles
        if not cores.empty()
        for own, core, others in (
            (cores.shared(context), timing.sender, frozenset[Stage]()),
            (cores.without(context), timing.cores[-1], READS_WEIGHTS),
        )
        if not own.empty()
    )


def _role(cores: CoreRangeSet, core: Core, idle: frozenset[Stage], share: Share) -> Role:
    """The role of some cores; cores that multiply nothing end with their reader."""
    end = core.reader.now if idle >= MULTIPLIES else core.compute.now
    waits = ((Stage.READER, core.reader), (Stage.WEIGHT_READER, core.second), (Stage.MATH, core.compute))
    return Role(cores, core.processors, waits, end, idle, share)


def core_groups(roles: Sequence[Role]) -> tuple[CoreGroupCycles, ...]:
    """All cores of a program; the stages of a core of the walk are computed once for all cores like it."""
    text: dict[tuple[tuple[Processor, ...], float], tuple[StageCycles, ...]] = {}
    for role in roles:
        if (like := (role.core, role.end.cycles)) not in text:
            text[like] = _stages(role)
    return tuple(_group(role, text[role.core, role.end.cycles]) for role in roles)


def slowest_group(roles: Sequence[Role]) -> CoreGroupCycles:
    """The first of `core_groups` that ends last."""
    slowest = max(roles, key=lambda role: role.end.cycles)
    return _group(slowest, _stages(slowest))


def _stages(role: Role) -> tuple[StageCycles, ...]:
    """Stages of the core of the walk that the role's cores are like."""
    return stage_report(role.core, role.end, waits=dict(role.waits))


def _group(role: Role, stages: Sequence[StageCycles]) -> CoreGroupCycles:
    """The cores of a role with the stages of the core of the walk that they are like."""
    parts = dict.fromkeys(role.idle, 0.0) | {
        stage: part for stage, part in zip(READS, role.share, strict=True) if stage not in role.idle
    }
    own = tuple([_part_of(stage, parts[stage.stage]) if stage.stage in parts else stage for stage in stages])
    return CoreGroupCycles(cores=role.cores, cycles=role.end.cycles, stages=own)


def _part_of(stage: StageCycles, part: float) -> StageCycles:
    """A stage that works for a part of the time and waits for the rest."""
    busy = part * stage.busy_cycles
    return StageCycles(stage.stage, busy, stage.stall_cycles + stage.busy_cycles - busy, stage.critical_cycles)


def _gathering(op: Conv2dOp) -> dict[Share, CoreRangeSet]:
    """Cores of the input by the share of their tile rows with outputs: rows behind the last output are not read."""
    config = op.layout.config
    full = op.problem.out_rows // op.layout.shards.out_rows  # slices before the last rows
    shares = [_share(op, 0)] * min(full, config.nhw_cores)
    shares += [_share(op, number) for number in range(len(shares), config.nhw_cores)]
    cut = {number: share for number, share in enumerate(shares) if share != WHOLE}
    ragged: dict[Share, list[CoreRange]] = {}
    for place, core in enumerate(config.cores.cores() if cut else ()):
        if (share := cut.get(_slice_of(place, core, config))) is not None:
            ragged.setdefault(share, []).append(CoreRange(core, core))
    groups = {share: CoreRangeSet(own).merged() for share, own in ragged.items()}
    rest = config.cores
    for part in groups.values():
        rest = rest.without(part)
    return ({} if rest.empty() else {WHOLE: rest}) | groups


def _share(op: Conv2dOp, number: int) -> Share:
    """The parts of a slice of the rows with outputs for each reader; a reader without tile rows has the whole slice."""
    layout = op.layout
    height = layout.blocks.act_h_tiles * TILE
    second = layout.blocks.act_h_tiles // 2 * TILE if layout.split_reader else 0
    left = min(max(0, op.problem.out_rows - number * layout.shards.out_rows), layout.shards.out_rows)
    blocks = [min(max(0, left - block * height), height) for block in range(op.out_blocks)]
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


def _weight_readers(op: Conv2dOp) -> CoreRangeSet:
    """HEIGHT: the first core; BLOCK: the first core of every channel slice; WIDTH: all."""
    out, origin = op.layout.out_config, CoreCoord(0, 0)
    if out.scheme is WIDTH:
        return out.cores
    if out.scheme is HEIGHT:
        return CoreRangeSet(CoreRange(origin, origin))
    last = out.channel_cores - 1
    end = CoreCoord(0, last) if out.orientation is ShardOrientation.COL_MAJOR else CoreCoord(last, 0)
    return CoreRangeSet(CoreRange(origin, end))


def weight_bytes(op: Conv2dOp) -> int:
    """Bytes of weights and bias read from DRAM: by BLOCK and WIDTH again for every output block."""
    layout, tile_bytes = op.layout, op.problem.weight_format.tile_bytes
    width = layout.shards.out_col_tiles
    bias_tiles = width if op.problem.bias else 0
    tiles = op.weight_passes * layout.blocks.k_blocks * layout.blocks.act_w_tiles * width + bias_tiles
    return op.weight_readers * tiles * tile_bytes


def network_bytes(op: Conv2dOp) -> int:
    """Bytes multicast: weights by their readers, activations by every core that holds some."""
    return _sent_weight_bytes(op) + _sent_activation_bytes(op)


def _sent_weight_bytes(op: Conv2dOp) -> int:
    layout = op.layout
    return 0 if layout.scheme is WIDTH or layout.out_config.nhw_cores == 1 else weight_bytes(op)


def _sent_activation_bytes(op: Conv2dOp) -> int:
    layout, blocks = op.layout, op.layout.blocks
    if not layout.multicasts_activations:
        return 0
    block_bytes = blocks.act_h_tiles * blocks.act_w_tiles * op.problem.out_format.tile_bytes
    return op.out_blocks * blocks.k_blocks * layout.config.nhw_cores * block_bytes


def _moved(op: Conv2dOp) -> tuple[MovedBytes, ...]:
    """Weights by the cores that read them, activations by those that hold them."""
    return (
        MovedBytes(_weight_readers(op), weight_bytes(op), _sent_weight_bytes(op)),
        MovedBytes(op.layout.config.cores, 0, _sent_activation_bytes(op)),
    )


def issued_flops(op: Conv2dOp) -> int:
    """Multiplications and additions of all tile products."""
    layout = op.layout
    cores = layout.out_config.nhw_cores * layout.out_config.channel_cores
    products = layout.shards.out_row_tiles * layout.shards.out_col_tiles
    k_tiles = layout.blocks.act_w_tiles * layout.blocks.k_blocks
    return 2 * TILE**3 * cores * products * k_tiles


def useful_flops(problem: ConvProblem) -> int:
    """Products of an input and a weight, of all outputs: inserted zeros and padding to tiles left out."""
    frame = problem.frame
    tap_products = frame.batch * _taps(frame.rows) * _taps(frame.columns)
    return 2 * tap_products * problem.in_channels * problem.out_channels


def _taps(axis: PaddedAxis) -> int:
    """Kernel positions that meet an input or padding around the image, of all outputs along an axis."""
    return count_met_taps(axis) if axis.data else 0


def least_cycles(op: Conv2dOp, spec: DeviceSpec) -> float:
    """A lower bound of a program's cycles: the busiest of its processors, if it never waited.

    Where readers keep what neighboring rows share, only the products count.
    """
    steps = conv_steps(op, spec)
    blocks, scheme = op.layout.blocks, op.layout.scheme
    gathers = rounds = blocks.k_blocks
    if scheme is not HEIGHT:
        rounds = div_up(blocks.k_blocks, op.layout.config.channel_cores)
        gathers = rounds * (blocks.act_h_tiles if scheme is WIDTH else 1)
    if steps.reused_reads is not None:
        gathers = 0
    tilize = steps.tilize.cycles + (0.0 if steps.second_tilize is None else steps.second_tilize.cycles)
    finish = 0.0 if steps.finish is None else steps.finish.cycles
    compute = op.out_blocks * (gathers * tilize + _products(op, steps) + finish)
    context = op.out_blocks * gathers * steps.read.cycles
    weights = op.weight_passes * blocks.k_blocks * steps.weights[0].cycles
    return steps.start.cycles + max(compute, context, weights)


def _products(op: Conv2dOp, steps: ConvSteps) -> float:
    fetching = sum(fetches_partials(op, number) for number in range(op.layout.blocks.k_blocks))
    plain = op.layout.blocks.k_blocks - fetching
    return plain * steps.matmul.cycles + fetching * steps.matmul_reload.cycles
