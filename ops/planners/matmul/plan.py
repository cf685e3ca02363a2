"""The plan of ttnn.matmul and ttnn.linear, for single matrices or batches of them.

Rules: ttnn 0.81.1, compared with its device operations, buffers and dataflow buffers on a device without kernels.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from device.cores import CoreCoord, core_rectangle, first_cores
from device.errors import ArgumentError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    ShardOrientation,
    ShardSpec,
    no_bank,
)
from device.numbers.formats import div_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.spec.releases import release_of
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.grid_rules import matmul_rules, name_rules
from ops.planners.matmul.arguments import MatmulArguments, with_defaults
from ops.planners.matmul.checks import block_refusals, refusals, require_sides
from ops.planners.matmul.choice import choose_config, laid_out, of_banks, whole_tiles
from ops.planners.matmul.validation import (
    INTEGER_OUTPUT,
    bias_of_integers,
    check_batches,
    check_target,
    expected_shape,
    require_bias,
)
from ops.planners.shape.permute import transposed_by
from ops.planners.shape.reshape import plan_other_volume, plan_reshape
from ops.programs.buffer_shapes import beyond_shards
from ops.programs.eltwise.op import activated, with_row
from ops.programs.eltwise.refusals import fused_by_matmul_refusal
from ops.programs.matmul.buffers import matmul_circular_buffers
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram, place_of

_Made = tuple[MatmulProblem, MatmulConfig, TensorSpec]


def plan_matmul(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call of the tensors "input", "weight", "bias" and "target"; raises ArgumentError if it cannot run.

    A product that is sharded, that is written into the caller's tensor, or whose bias has several rows, lacks a bias
    and an activation that are operations of their own (`left_over`); then operands that the plan transposed are
    results as well, which the caller releases. ``free_l1_bytes``: below the lowest L1 buffer.
    """
    call = with_defaults(arguments, device_spec)
    tensors = {"input": call.first, "weight": call.second, "bias": call.bias, "target": call.target}
    builder = PlanBuilder(device_spec, tensors)
    made = _made(call, call.tiles, device_spec, free_l1_bytes)
    inputs = [
        _transposed(builder, builder.tensor(name)) if turned else builder.tensor(name)
        for name, turned in zip(("input", "weight"), _turns(call, made[1]), strict=True)
    ]
    problem, config, output_spec = _checked(call, made, device_spec)
    op = MatmulOp(
        problem=problem,
        config=config,
        fidelity_phases=call.fidelity_phases or 1,
        out_channels=output_spec.shape[-1],
        activation=config.activation,
    )
    _leave_out_values(builder, call, problem, config)
    if call.program is None and call.core_grid is None and not call.first.memory_config.is_sharded():
        name_rules(builder, matmul_rules(op, free_l1_bytes))
    bias, target = (None if tensors[name] is None else builder.tensor(name) for name in ("bias", "target"))
    fused = [bias] if problem.bias and bias is not None else []
    result = run_matmul(builder, op, [*inputs, *fused], output_spec, key=(call.first, call.second), target=target)
    bias_later, activation_later = later(call, problem)
    whole = _lacks_nothing(call, output_spec, bias_later=bias_later)
    if bias is not None and bias_later and whole:
        result = with_row(builder, result, bias, bias.spec.data_format, "output.biased")
    if call.activation is not None and activation_later and whole:
        result = activated(builder, result, call.activation, "output.activated")
    transposed = [tensor for tensor in reversed(inputs) if builder.is_own(tensor)]
    if not whole and (bias_later or activation_later):  # which lie there until the product lacks nothing
        return builder.finish({"output": result, **{tensor.name: tensor for tensor in transposed}})
    builder.free(*transposed)
    return builder.finish({"output": result})


def _leave_out_values(
    builder: PlanBuilder, call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig
) -> None:
    """Says why a product has no values, if ttsim knows none."""
    if not call.output_format.is_float:
        builder.leave_out_values(f"matmul into {call.output_format}: {INTEGER_OUTPUT}")
    if problem.bias and call.bias is not None and not call.bias.data_format.is_float:
        builder.leave_out_values(bias_of_integers(call.bias.data_format))
    if (text := _elsewhere(call, config)) is not None:
        builder.leave_out_values(text)


class Leftovers(NamedTuple):
    """What a product lacks once its plan has run."""

    bias: bool  # The bias is not added yet
    activation: bool  # The activation is not applied yet
    shaped: bool  # `plan_expected` gives the biased product its shape
    turned: bool  # Operations of their own transposed operands


def left_over(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Leftovers:
    """What the product of `plan_matmul` lacks; arguments as there."""
    call = with_defaults(arguments, device_spec)
    problem, config, output_spec = _program(call, device_spec, free_l1_bytes)
    bias_later, activation_later = later(call, problem)
    lacks = not _lacks_nothing(call, output_spec, bias_later=bias_later)
    turned = any(_turns(call, config))
    shaped = call.bias is not None and (problem.bias or turned)
    return Leftovers(lacks and bias_later, lacks and activation_later, shaped, turned)


def plan_expected(call: MatmulArguments, biased: TensorSpec, spec: DeviceSpec, *, turned: bool) -> Plan | None:
    """Plan the biased product "input" under the shape that the library gives it; None if it has that shape.

    Raises ArgumentError or DeviceError if the bias or the product do not take that shape.
    """
    shape = expected_shape(call, turned=turned)
    if shape == biased.shape:
        return None
    plan = plan_reshape if prod(shape) == biased.volume else plan_other_volume
    return plan(biased, shape, spec)


def _turns(call: MatmulArguments, config: MatmulConfig) -> tuple[bool, bool]:
    """Whether operations of their own transpose the operands, and not the program."""
    plain = config.program in (MatmulProgram.SINGLE_TILES, MatmulProgram.DRAM_SHARDED)
    return call.transpose_a and plain, call.transpose_b and plain


def _lacks_nothing(call: MatmulArguments, output: TensorSpec, *, bias_later: bool) -> bool:
    """Whether the plan of a product adds its bias and its activation, also where each is an operation of its own."""
    if not call.output_format.is_float:  # functions of integers are checked as calls of their own
        return False
    if bias_later and call.bias is not None:
        if not call.bias.data_format.is_float:
            return False
        row = call.bias.volume == (1, *call.bias.shape)[-1] == call.second_sides[1] and call.bias.layout is Layout.TILE
        if not row:
            return False
    return not output.memory_config.is_sharded() and call.target is None


def later(call: MatmulArguments, problem: MatmulProblem) -> tuple[bool, bool]:
    """Whether the bias, and the activation, are added by operations of their own."""
    return call.bias is not None and not problem.bias, call.activation is not None and call.core_grid is None


def _output_spec(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, device_spec: DeviceSpec, *, of_line: bool
) -> TensorSpec:
    """The output; its shards follow from the program, except for shards on a line (`of_line`), which are as given."""
    place = call.memory_config
    if call.target is not None:
        return call.target
    if not place.is_sharded():
        return TensorSpec(call.output_shape, call.output_format, Layout.TILE, place)
    if config.program is MatmulProgram.DRAM_SHARDED and call.first.memory_config.shard_spec is None:
        raise ArgumentError("bad optional access\ninput_tensor_a: shard it by columns in L1")
    if config.program is MatmulProgram.MCAST_2D and not config.fuse_batch and problem.batches > 1:
        part = config.per_core_m * config.per_core_n
        raise ArgumentError(
            f"Block-sharded output is incompatible with batch > 1 (B={problem.batches}). The output CB is backed by "
            f"the shard buffer which only holds per_core_M * per_core_N = {part} tiles, but the kernel would produce "
            f"B * per_core_M * per_core_N = {problem.batches * part} tiles without draining. Use fuse_batch=True.\n"
            "memory_config: use interleaved memory for the products of batches"
        )
    shards = place.shard_spec if of_line else None
    shards, grid = shards or _output_shards(call, problem, config, device_spec), device_spec.grid
    spec = TensorSpec(call.output_shape, call.output_format, Layout.TILE, replace(place, shard_spec=shards))
    outside = next((core for core in shards.grid.cores() if core.x >= grid.cols or core.y >= grid.rows), None)
    if outside is not None:
        raise ArgumentError(f"{no_bank(outside, grid.cores, 'L1')}{grid.cols}x{grid.rows}")
    return spec


def _output_shards(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, device_spec: DeviceSpec
) -> ShardSpec:
    """A shard for each core with output."""
    rows = config.rows_of(problem)
    down, across = div_up(rows, config.per_core_m), div_up(problem.n_tiles, config.per_core_n)
    shape = config.per_core_m * TILE, config.per_core_n * TILE
    given = call.memory_config.shard_spec
    if config.program is MatmulProgram.SINGLE_TILES:
        raise ArgumentError(
            "Unsupported op for output sharding\nmemory_config: blocks of this product do not fit into L1; use "
            "interleaved memory"
        )
    grid, orientation = device_spec.grid, ShardOrientation.ROW_MAJOR
    if config.program is MatmulProgram.MCAST_2D:
        cores = core_rectangle(*((down, across) if config.transpose_mcast else (across, down)))
        if config.transpose_mcast:
            orientation = ShardOrientation.COL_MAJOR
        return ShardSpec(cores, shape, orientation)
    grid = grid if config.program is MatmulProgram.DRAM_SHARDED else config.grid
    if config.program is MatmulProgram.REUSE:
        operands = (call.first.memory_config.shard_spec, call.second.memory_config.shard_spec)
        orientation = next((shards.orientation for shards in operands if shards), ShardOrientation.COL_MAJOR)
        if given is not None:
            return ShardSpec(given.grid, shape, orientation)
    if down * across > grid.cores:
        raise ArgumentError(
            f"Target number of cores {down * across} is greater than total number of available cores {grid.cores}\n"
            "program_config: give its grid a core for every shard of the output"
        )
    row_wise = orientation is ShardOrientation.ROW_MAJOR
    return ShardSpec(first_cores(down * across, grid.cols, grid.rows, row_wise=row_wise), shape, orientation)


def _transposed(builder: PlanBuilder, operand: PlanTensor) -> PlanTensor:
    """An operand transposed by an operation of its own, in its own memory."""
    rank, place = len(operand.spec.shape), operand.spec.memory_config
    return transposed_by(builder, operand, (rank - 2, rank - 1), place, f"{operand.name}.transposed")


def _program(call: MatmulArguments, device_spec: DeviceSpec, free_l1_bytes: int) -> _Made:
    """The problem, the config and the output of a matmul, without a bias that another operation adds."""
    return _checked(call, _made(call, call.tiles, device_spec, free_l1_bytes), device_spec)


def _checked(call: MatmulArguments, made: _Made, device_spec: DeviceSpec) -> _Made:
    """What the program of a matmul runs with; raises ArgumentError if the program refuses it."""
    grid, (problem, config, output_spec) = device_spec.grid, made
    if _line(call, config) is not None:
        call = laid_out(call, by_rows=config.program is MatmulProgram.MCAST_IN1)
    check_batches(call, problem, config)
    if problem.bias:
        require_bias(call)
    require_sides(config)
    if config.workers > 1 and device_spec.compute.minus_one_quirk:
        raise ArgumentError(
            f"{config.program.config_name}: num_workers_per_dram_bank > 1 is currently supported only on Blackhole\n"
            "num_workers_per_dram_bank: use 1"
        )
    for text in refusals(call, problem, config, grid):
        raise ArgumentError(text)
    if config.workers > 1 and (wide := call.second.shards.shape[1] // TILE) % config.workers:
        raise ArgumentError(
            f"DRAM-sharded matmul weight shard width {wide} tiles per bank must be divisible by workers_per_bank "
            f"{config.workers}\nnum_workers_per_dram_bank: use 1"
        )
    fused = None if config.program is MatmulProgram.SINGLE_TILES else config.activation
    if fused is not None and (unfused := fused_by_matmul_refusal(fused)) is not None:
        raise ArgumentError(unfused)
    if config.unsimulated is not None:
        raise NotSimulatedError(config.unsimulated)
    if any(_turns(call, config)):
        problem = replace(problem, transpose_first=False, transpose_second=False)
    if config.program is MatmulProgram.DRAM_SHARDED:
        config = of_banks(call, problem, config, device_spec)
    if config.fuse_batch and problem.first_batched:
        problem = replace(problem, m_tiles=problem.m_tiles * problem.batches, batches=1, first_batched=False)
    return problem, config, output_spec


def _chosen(
    call: MatmulArguments, tiles: tuple[int, int, int], device_spec: DeviceSpec, free_l1_bytes: int
) -> tuple[MatmulProblem, MatmulConfig]:
    """The problem of ``tiles`` of M, K and N, and its config."""
    m_tiles, k_tiles, n_tiles = tiles
    problem = MatmulProblem(
        m_tiles=m_tiles,
        k_tiles=k_tiles,
        n_tiles=n_tiles,
        in_format=call.first.data_format,
        weight_format=call.second.data_format,
        out_format=call.output_format,
        bias=call.bias is not None,
        fp32_dest=call.fp32_dest,
        packer_l1_acc=call.packer_l1_acc,
        bias_format=None if call.bias is None else call.bias.data_format,
        batches=max(call.batches),
        first_batched=call.batches[0] > 1,
        second_batched=call.batches[1] > 1,
        transpose_first=call.transpose_a,
        transpose_second=call.transpose_b,
        useful=call.multiply_adds,
    )
    grid, release = device_spec.grid, release_of(device_spec.release)
    config = choose_config(call, problem, grid, free_l1_bytes, release)
    if problem.bias and _adds_bias_later(call, problem, config):
        problem = replace(problem, bias=False)
        config = choose_config(call, problem, grid, free_l1_bytes, release)
    return problem, config


def _made(call: MatmulArguments, tiles: tuple[int, int, int], device_spec: DeviceSpec, free_l1_bytes: int) -> _Made:
    """The problem, its config and its output, which the library makes before checks."""
    problem, config = _chosen(call, tiles, device_spec, free_l1_bytes)
    check_target(call, config)
    require_sides(config, "per_core_m", "per_core_n")
    line = _line(call, config)
    if line is not None:
        call = laid_out(call, by_rows=line.cols == 1)
    return problem, config, _output_spec(call, problem, config, device_spec, of_line=line is not None)


def require_output(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> None:
    """Raises for shards of ROW_MAJOR operands and of their output, as the library does before it checks layouts.

    The library counts only whole tiles. Raises nothing if an axis has no whole tile, since it makes no blocks then.
    """
    call = with_defaults(arguments, device_spec)
    shards = call.first.memory_config.shard_spec
    tiles = (*whole_tiles(call.first, call.transpose_a), whole_tiles(call.second, call.transpose_b)[1])
    in_shards = () if shards is None else tuple(side // TILE for side in shards.shape)
    made = call.program is not None or min(*tiles, *in_shards)
    if made and (in_shards or call.memory_config.is_sharded()):
        _made(call, (max(tiles[0], 1), max(tiles[1], 1), max(tiles[2], 1)), device_spec, free_l1_bytes)


def require_blocks(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> None:
    """Raises for blocks, or a grid, of a given program that do not fit its operands or the device."""
    call = with_defaults(arguments, device_spec)
    if call.program is None:
        return
    problem, config = _chosen(call, call.tiles, device_spec, free_l1_bytes)
    for text in block_refusals(call, problem, config, device_spec.grid):
        raise ArgumentError(text)


def _line(call: MatmulArguments, config: MatmulConfig) -> GridSpec | None:
    """The row of cores whose BLOCK shards are columns of the output, or the column whose shards are rows of it."""
    box = call.box
    if box is None or config.program not in (MatmulProgram.MCAST_IN0, MatmulProgram.MCAST_IN1):
        return None
    across = box.rows if config.program is MatmulProgram.MCAST_IN0 else box.cols
    return box if across == 1 else None


def _elsewhere(call: MatmulArguments, config: MatmulConfig) -> str | None:
    """Why values are unknown if the shards of the first operand do not begin at core (0, 0).

    None if the program runs on their cores. Otherwise the library accepts the call; the output begins at (0, 0).
    """
    shards = call.first.memory_config.shard_spec
    if shards is None or shards.grid.bounding_box().start == CoreCoord(0, 0):
        return None
    one_axis = config.program in (MatmulProgram.MCAST_IN0, MatmulProgram.MCAST_IN1)
    if call.program is None and one_axis and not call.memory_config.is_sharded():
        return None
    return (
        "matmul: ttsim calculates numbers of shards of input_tensor_a that do not begin at core (0, 0) only of HEIGHT "
        "and WIDTH, without a program_config and with an interleaved output; reshard the tensor"
    )


def _adds_bias_later(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> bool:
    """Whether another operation adds the bias: the program cannot for some shapes and memory of tensors."""
    if config.program is MatmulProgram.SINGLE_TILES:
        return True
    if call.bias is not None and (call.bias.matrix[0] != TILE or (1, *call.bias.shape)[-1] < call.second_sides[1]):
        return True
    if call.program is not None and config.program is MatmulProgram.REUSE:
        return True
    if call.program is not None or call.core_grid is not None:
        return problem.second_batched
    places = (call.first.memory_config, call.second.memory_config, call.memory_config)
    if call.memory_config.buffer_type is not BufferType.DRAM or problem.second_batched:
        return True
    in_dram = all(place == DRAM_MEMORY_CONFIG for place in places)
    return not call.first.memory_config.is_sharded() and not in_dram


def _target_fault(buffers: Sequence[CircularBuffer], target: PlanTensor, device_spec: DeviceSpec) -> str | None:
    """The real library's error text for a caller's tensor whose shards do not hold a core's block."""
    bank_bytes = target.spec.buffer(device_spec).bank_bytes
    faults = (
        beyond_shards(buffer.name, buffer.page_bytes, buffer.size_bytes // buffer.page_bytes, "output", bank_bytes)
        for buffer in buffers
        if buffer.name == "out" and buffer.view_of is not None
    )
    line = next((text for texts in faults for text in texts), None)
    return None if line is None else f"{line}\noptional_output_tensor: give a shard for each block of the product"


def run_matmul(
    builder: PlanBuilder,
    op: MatmulOp,
    inputs: Sequence[PlanTensor],
    result_spec: TensorSpec,
    *,
    key: tuple[Hashable, ...],
    refused: str | None = None,
    target: PlanTensor | None = None,
) -> PlanTensor:
    """One matmul program from two operands, and a bias if given, to the tensor "output" or the caller's own one."""
    op = replace(op, second_place=place_of(inputs[1].spec))
    result = PlanTensor("output", result_spec) if target is None else target
    buffers = matmul_circular_buffers(op, inputs[0], inputs[1], result, *inputs[2:])
    if target is not None and refused is None:
        refused = _target_fault(buffers, target, builder.device_spec)
    return builder.run(
        "MatmulDeviceOperation",
        op,
        inputs if target is None else [*inputs, target],
        result if target is None else None,
        buffers,
        dataflow=True,
        key=("matmul", op, *key, result_spec),
        refused=refused,
    )
