"""A convolution laid out on the device: its scheme, cores, shards and blocks, and where its input is put."""

from dataclasses import dataclass, replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.integers import round_up
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import flattened_memory, input_alignment, lower, needs_new_shards, placed_options
from ops.frame.frame import Frame
from ops.programs.conv2d.auto_shard import SchemeChoice, choose_scheme
from ops.programs.conv2d.blocks import input_shard
from ops.programs.conv2d.layout import (
    ConvLayout,
    choose_cores,
    lay_out,
    scheme_alignment,
    sharded_input,
    sharded_memory,
)
from ops.programs.conv2d.partition import WIDTH, ParallelConfig
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.conv2d.reader_indices import UnknownRatesError
from ops.programs.movement.reshape import flattened


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """A call and how it lies on the device."""

    arguments: ConvArguments
    problem: ConvProblem
    options: ConvOptions  # The caller's choices
    layout: ConvLayout  # Partition, shards and blocks
    input_memory: MemoryConfig  # Where the halo finds its input
    sharded: bool = True  # The input is sharded; else the layout says only how weights are prepared for a plain matmul
    reshards: bool = True  # The input on the device is dealt to shards anew
    prefix: str = ""  # What the names of its tensors begin with: empty, or the slice it is
    choice: SchemeChoice | None = None  # Of its scheme, where the library made it
    refused: str | None = None  # Why no program can be built of the layout, if none can


def lay_out_call(
    call: ConvArguments, device_spec: DeviceSpec, *, prefix: str = "", frame: Frame | None = None
) -> LaidOut:
    """Choose shard scheme and cores for a call, and lay its convolution out.

    Args:
        prefix: What the names of its tensors begin with.
        frame: The call's, where it is at hand.

    Raises:
        DeviceError: The blocks do not fit the shares of the cores.
    """
    problem, estimated = lower(call, frame)
    options = placed_options(call, estimated)
    memory = DRAM_MEMORY_CONFIG if call.input.on_host else call.input.spec.memory_config
    before = input_alignment(call, memory)
    choice = refused = None
    if not needs_new_shards(call, memory):
        layout, refused = _laid_out(problem, options, device_spec, sharded_input(memory), before)
        place = memory
    else:
        scheme = call.conv_config.shard_layout
        if scheme is None:
            choice = choose_scheme(problem, estimated, device_spec, matmul=False)
            scheme = choice.scheme
        config = choose_cores(problem, options, device_spec, scheme, alignment=before)
        if choice is not None and options == estimated and config == choice.layout.config:
            layout = choice.layout
        else:
            aligned = scheme_alignment(problem, scheme)
            layout, refused = _laid_out(problem, options, device_spec, config, aligned)
        shards = memory.shard_spec
        stays = shards is not None and config == sharded_input(memory) and not shards.shape[1] % before
        place = memory if stays else dealt_anew(call, problem, config)
        held = input_alignment(call, place)
        if layout.shards.in_channels != round_up(problem.in_channels, config.channel_cores * held):
            layout, refused = _laid_out(problem, options, device_spec, config, held)
    reshards = place != memory
    if not reshards:  # a reshape may deal them anew, which the convolution is not laid out for
        place = flattened_memory(call)
        if place.shard_spec is not None and place.shard_spec.grid != layout.config.cores:
            layout = replace(layout, config=layout.config._replace(cores=place.shard_spec.grid))
    return LaidOut(
        arguments=call,
        problem=problem,
        options=options,
        layout=layout,
        input_memory=place,
        reshards=reshards,
        prefix=prefix,
        choice=choice,
        refused=refused,
    )


def _laid_out(
    problem: ConvProblem, options: ConvOptions, spec: DeviceSpec, config: ParallelConfig, alignment: int
) -> tuple[ConvLayout, str | None]:
    """The layout on some cores, and why its program is refused: where no rates tell whether a second reader pays."""
    try:
        return lay_out(problem, options, spec, config, alignment=alignment), None
    except UnknownRatesError as error:
        known = replace(problem, out_format=problem.act_format)
        return lay_out(known, options, spec, config, alignment=alignment), str(error)


def dealt_anew(
    call: ConvArguments, problem: ConvProblem, config: ParallelConfig, *, matmul: bool = False
) -> MemoryConfig:
    """Shards of all rows and channels of the input tensor, which may be others than the call says.

    WIDTH shards of rows keep the rows that fill the last tiles of a window that was cut out of tiles.

    Args:
        matmul: It runs as a matmul.
    """
    given = call.input.spec
    rows, channels = flattened(given.shape)[-2:]
    if config.scheme is WIDTH and given.layout is Layout.ROW_MAJOR and not call.input.on_host:
        rows = given.matrix[0]
    height, width = input_shard(
        config,
        rows=rows,
        channels=channels,
        alignment=scheme_alignment(problem, config.scheme, matmul=matmul),
        row_major=problem.row_major,
    )
    return sharded_memory(config, height, width)


def output_spec(laid_out: LaidOut) -> TensorSpec:
    """The output on the L1 path: [1, 1, N*OH*OW, O], sharded."""
    problem, place = laid_out.problem, laid_out.layout.output_memory
    out_layout = Layout.ROW_MAJOR if laid_out.options.untilize_out else Layout.TILE
    shape = (1, 1, problem.out_rows, problem.out_channels)
    return TensorSpec(shape, problem.out_format, out_layout, place, alignment=(TILE, TILE))
