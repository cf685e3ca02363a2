"""The path of 1x1 convolutions, which run as a matmul: reference, section 2.5.

The input becomes tiles, sharded unless the library chose the layout, and is multiplied by the weights. Rules: tt-metal
0.81.1 on a device without kernels, and the recorded runs of 1x1 kernels.
"""

from dataclasses import replace
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout, MemoryConfig, ShardOrientation
from device.memory.tiles import TILE
from device.numbers.integers import div_up, round_up
from device.plan import Allocate, Free, Operation
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments
from ops.calls.convolution.convolution_input import uploaded_image
from ops.calls.convolution.l1_path import LaidOut, operand_names, upload_weights
from ops.calls.convolution.matmul_config import sharded_config
from ops.calls.convolution.matmul_input import matmul_host_input, matmul_input, matmul_tiles
from ops.calls.convolution.problem import compute_config, lower
from ops.programs.conv2d.auto_shard import choose_scheme
from ops.programs.conv2d.layout import choose_cores, lay_out, sharded_input
from ops.programs.conv2d.partition import BLOCK, WIDTH
from ops.programs.eltwise.work import Activate, AddRow
from ops.programs.matmul.circular_buffers import matmul_circular_buffers
from ops.programs.matmul.config import MatmulConfig, MatmulProblem
from ops.programs.matmul.interleaved import interleaved_config
from ops.programs.matmul.work import MatmulWork
from ops.programs.movement import placement
from ops.programs.movement.staged import Staged, owning

# Activations that a matmul program can apply itself (tt-metal 0.81.1).
FUSED_ACTIVATIONS: Final = frozenset(
    {"relu", "silu", "tanh", "gelu", "relu6", "sigmoid", "hardsigmoid", "hardtanh", "selu", "softplus"}
)


def matmul_path(a: ConvArguments, spec: DeviceSpec, *, from_dram: bool, free_l1_bytes: int) -> Staged:
    """Steps from the caller's input to the output of a 1x1 convolution.

    Args:
        a: The call.
        spec: The device.
        from_dram: It is on the DRAM path, which uploads a host input before anything else; conv_transpose2d then does
            not use it.
        free_l1_bytes: Free bytes of every L1 bank when the call begins: they limit the blocks of an interleaved matmul.

    Returns:
        Steps that end in the output, in `a.memory_config` if that is given; prepared weights and bias, where the call
        uploads them, are the tensors "weight.prepared" and "bias.prepared". ``owned`` is for the caller to free.
    """
    call, shard = lay_out_matmul(a, spec)
    deallocate = a.conv_config.deallocate_activation
    source = Staged(name=a.input.name or "input", spec=a.input.spec)
    start, place = source, call.input_memory
    if a.input.on_host and from_dram:
        start = uploaded_image(source.name, source.spec, spec)
    if start is not source and not isinstance(a, ConvTranspose2dArguments):
        image = Staged(name=start.name, spec=start.spec)
        given = matmul_input(image, place, spec, "input.sharded", deallocate=deallocate, shard=shard)
    elif a.input.on_host:
        given = matmul_host_input(source.name, source.spec, place, spec, "input.sharded", shard=shard)
    else:
        given = matmul_input(source, place, spec, "input.sharded", deallocate=deallocate, shard=shard)
    tiles = matmul_tiles(given, spec, "input.tiled", deallocate=deallocate)
    result = owning(given.followed_by(upload_weights(call, spec)).followed_by(tiles))
    if tiles.spec.memory_config.is_sharded():
        output = _sharded_matmul(call, tiles, spec)
    else:
        output = _interleaved_matmul(call, tiles, spec, free_l1_bytes=free_l1_bytes - held_l1_bytes(result, spec))
    result = result.followed_by(output)
    early = deallocate and not a.input.on_host and source.in_l1
    frees = tuple(Free(name) for name in tiles.owned)
    if early:
        result = result.then(*frees)
    if a.memory_config is not None:
        result = result.followed_by(placement.to_config(output, a.memory_config, spec, "output.placed"))
    if not early:
        result = result.then(*frees)
    return replace(start.followed_by(result), owned=start.owned)


def lay_out_matmul(a: ConvArguments, spec: DeviceSpec) -> tuple[LaidOut, bool]:
    """How a 1x1 convolution lies on the device, and whether its input is sharded.

    It is not if the library chose the scheme: then the layout says only how the weights are prepared.

    Raises:
        DeviceError: The input must be sharded anew, but no scheme is given.
    """
    problem, options = lower(a)
    memory = DRAM_MEMORY_CONFIG if a.input.on_host else a.input.spec.memory_config
    scheme = a.conv_config.shard_layout
    if memory.is_sharded():
        if not _must_reshard(a, memory):
            layout = lay_out(problem, options, spec, sharded_input(memory), alignment=TILE, matmul=True)
            return LaidOut(arguments=a, problem=problem, options=options, layout=layout, input_memory=memory), True
        if _parts_channels(a, memory):
            scheme = BLOCK
        if scheme is None:
            raise DeviceError(
                "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::INTERLEAVED\n"
                "The shards of the input do not suit a 1x1 convolution: set shard_layout to choose others"
            )
    chosen = scheme or choose_scheme(problem, options, spec, matmul=True)
    config = choose_cores(problem, options, spec, chosen, alignment=TILE, matmul=True)
    layout = lay_out(problem, options, spec, config, alignment=TILE, matmul=True)
    call = LaidOut(arguments=a, problem=problem, options=options, layout=layout, input_memory=layout.input_memory)
    return call, scheme is not None


def _must_reshard(a: ConvArguments, memory: MemoryConfig) -> bool:
    """Whether a sharded input does not suit a matmul: shards must be whole tiles, BLOCK ones hold just the channels."""
    shards, config = memory.shard_spec, a.conv_config
    if shards is None or config.reshard_if_not_optimal or config.override_sharding_config:
        return True
    turned = memory.memory_layout is not BLOCK and shards.orientation is not ShardOrientation.ROW_MAJOR
    return turned or any(side % TILE for side in shards.shape) or _parts_channels(a, memory)


def _parts_channels(a: ConvArguments, memory: MemoryConfig) -> bool:
    """Whether BLOCK shards hold more or less than the channels."""
    if memory.memory_layout is not BLOCK or memory.shard_spec is None:
        return False
    return a.in_channels != sharded_input(memory).channel_cores * memory.shard_spec.shape[1]


def held_l1_bytes(staged: Staged, spec: DeviceSpec) -> int:
    """Bytes of every L1 bank that are taken when some steps are done."""
    held: dict[str, int] = {}
    for step in staged.steps:
        match step:
            case Allocate():
                made: tuple[Allocate, ...] = (step,)
            case Operation(outputs=outputs):
                made = outputs
            case Free(tensor=tensor):
                held.pop(tensor, None)
                continue
            case _:
                continue
        for one in made:
            held[one.tensor] = one.buffer.bank_bytes if one.buffer.buffer_type is BufferType.L1 else 0
    return sum(held.values())


def _problem(call: LaidOut, tiles: Staged, *, bias: bool) -> MatmulProblem:
    shards, compute = call.layout.shards, compute_config(call.arguments)
    return MatmulProblem(
        m_tiles=round_up(tiles.spec.padded_shape[-2], TILE) // TILE,
        k_tiles=round_up(call.problem.in_channels, call.layout.config.channel_cores * TILE) // TILE,
        n_tiles=shards.out_channels // TILE,
        in_format=tiles.spec.data_format,
        weight_format=call.problem.weight_format,
        out_format=call.problem.out_format,
        bias=bias,
        fp32_dest=compute.fp32_dest,
        packer_l1_acc=compute.packer_l1_acc,
    )


def _sharded_matmul(call: LaidOut, tiles: Staged, spec: DeviceSpec) -> Staged:
    """A matmul with the blocks of the convolution; its output lies as the convolution's does."""
    problem = _problem(call, tiles, bias=call.problem.bias)
    rows, columns = call.problem.in_rows, call.problem.out_channels
    # To the real library, what PadDeviceOperation adds is part of the tensor, so the output has those rows, too.
    padded = (1, 1, round_up(tiles.spec.shape[-2], TILE), round_up(columns, TILE))
    made = TensorSpec((1, 1, rows, columns), problem.out_format, Layout.TILE, call.layout.output_memory, padded)
    return _matmul(call, tiles, made, problem, sharded_config(call.layout), spec, call.arguments.conv_config.activation)


def _interleaved_matmul(call: LaidOut, tiles: Staged, spec: DeviceSpec, *, free_l1_bytes: int) -> Staged:
    """A matmul from DRAM or L1 to DRAM; operations of their own add the bias, if it is from L1, and activate."""
    fused_bias = call.problem.bias and not tiles.in_l1
    problem = _problem(call, tiles, bias=fused_bias)
    rows, columns = tiles.spec.shape[-2], call.problem.out_channels
    made = TensorSpec((1, 1, rows, columns), problem.out_format, Layout.TILE, DRAM_MEMORY_CONFIG)
    config = interleaved_config(problem, spec.grid, in_dram=not tiles.in_l1, l1_bytes=free_l1_bytes)
    result = _matmul(call, tiles, made, problem, config, spec, None)
    if call.problem.bias and not fused_bias:
        bias = operand_names(call.arguments)[1]
        add = AddRow(data_format=problem.out_format, row_format=problem.weight_format)
        result = _next(result, "BinaryNgDeviceOperation", (result.name, bias), "output.biased", spec, add)
    activation = call.arguments.conv_config.activation
    if activation is not None:
        work = Activate(name=activation[0], parameters=activation[1], data_format=problem.out_format)
        result = _next(result, "UnaryDeviceOperation", (result.name,), "output.activated", spec, work)
    return result


def _next(
    result: Staged, operation: str, inputs: tuple[str, ...], name: str, spec: DeviceSpec, work: AddRow | Activate
) -> Staged:
    """One more operation on the output, which makes a new tensor of it and releases the old one."""
    step = Operation(
        name=operation,
        inputs=inputs,
        outputs=(Allocate(name, result.spec.buffer(spec)),),
        work=work,
        key=(operation, result.spec, work),
    )
    made = Staged(name=name, spec=result.spec, steps=(step, Free(result.name)), tensors={name: result.spec})
    return result.followed_by(made)


def _matmul(
    call: LaidOut,
    tiles: Staged,
    made: TensorSpec,
    problem: MatmulProblem,
    config: MatmulConfig,
    spec: DeviceSpec,
    activation: tuple[str, tuple[float, ...]] | None,
) -> Staged:
    """One matmul program from tiles to the tensor "output"."""
    operands = operand_names(call.arguments)
    work = MatmulWork(
        problem=problem,
        config=config,
        fidelity_phases=compute_config(call.arguments).fidelity_phases,
        out_channels=call.problem.out_channels,
        activation=activation,
    )
    step = Operation(
        name="MatmulDeviceOperation",
        inputs=(tiles.name, *(operands if problem.bias else operands[:1])),
        outputs=(Allocate("output", made.buffer(spec)),),
        circular_buffers=matmul_circular_buffers(
            problem,
            config,
            source=tiles.name,
            in_memory=tiles.spec.memory_config,
            output="output",
            out_sharded=made.memory_config.is_sharded(),
        ),
        dataflow=True,
        work=work,
        key=("matmul", work, tiles.spec, made),
        refused=_refusal(call, problem, tiles.spec.memory_config, activation),
    )
    return Staged(name="output", spec=made, steps=(step,), tensors={"output": made})


def _refusal(
    call: LaidOut, problem: MatmulProblem, memory: MemoryConfig, activation: tuple[str, tuple[float, ...]] | None
) -> str | None:
    """Why no such program can be built, if so."""
    held = div_up(call.problem.in_channels, TILE)
    if held != problem.k_tiles:
        cores = call.layout.config.channel_cores
        return (
            f"K dimension in tiles must match between input A ({held}) and input B ({problem.k_tiles})\n"
            f"core_grid: {cores} cores do not divide the {held} channel tiles; give a grid that does"
        )
    if memory.memory_layout is WIDTH:
        return (
            f"MatmulMultiCoreReuseMultiCastProgramConfig: Unsupported memory layout TensorMemoryLayout::{WIDTH.name}.\n"
            "A 1x1 convolution takes HEIGHT_SHARDED and BLOCK_SHARDED inputs: set shard_layout "
            "and reshard_if_not_optimal"
        )
    if activation is not None and activation[0] not in FUSED_ACTIVATIONS:
        return (
            f"Unsupported UnaryOpType for fused activation: UnaryOpType::{activation[0].upper()}\n"
            f"A sharded 1x1 convolution fuses {', '.join(sorted(FUSED_ACTIVATIONS)).upper()}; without shard_layout any "
            "activation runs as an operation of its own"
        )
    return None
