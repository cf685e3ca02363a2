"""The plan of ttnn.matmul and ttnn.linear for interleaved tensors, single matrices or batches of them.

Rules: ttnn 0.81.1, compared with its device operations, buffers and dataflow buffers on a device without kernels.
"""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.matmul.arguments import MatmulArguments, with_defaults
from ops.calls.matmul.choice import require_possible
from ops.meanings import MEANINGS
from ops.programs.eltwise.plan import activated, with_row
from ops.programs.matmul.circular_buffers import matmul_circular_buffers
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork
from ops.programs.matmul.interleaved import interleaved_config
from ops.programs.matmul.transpose import Transpose, transpose_buffers, transposed_spec


def plan_matmul(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call; its operands are the tensors "input", "weight" and "bias".

    Args:
        arguments: The call, validated.
        free_l1_bytes: Free bytes of every L1 bank.

    Raises:
        ArgumentError: The program that follows can not do it.
    """
    call = with_defaults(arguments, device_spec)
    given = {"input": call.first, "weight": call.second, "bias": call.bias}
    builder = PlanBuilder(device_spec, {name: spec for name, spec in given.items() if spec is not None})
    problem, config = _program(call, device_spec, free_l1_bytes)
    made = TensorSpec(call.output_shape, call.output_format, Layout.TILE, call.memory_config)
    result = _matmul(builder, call, problem, config, made)
    if call.bias is not None and not problem.bias:
        result = with_row(builder, result, builder.tensor("bias"), call.bias.data_format, "output.biased")
    if call.activation is not None:
        result = activated(builder, result, call.activation, "output.activated")
    builder.free_adopted()
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _program(call: MatmulArguments, device_spec: DeviceSpec, free_l1_bytes: int) -> tuple[MatmulProblem, MatmulConfig]:
    """What is multiplied, and how; a program of single tiles leaves the bias to an operation of its own."""
    (rows, depth), columns = call.first_sides, call.second_sides[1]
    places = (call.first.memory_config, call.second.memory_config, call.memory_config)
    in_dram = all(place.buffer_type is BufferType.DRAM for place in places)
    problem = MatmulProblem(
        m_tiles=div_up(rows, TILE),
        k_tiles=div_up(depth, TILE),
        n_tiles=div_up(columns, TILE),
        in_format=call.first.data_format,
        weight_format=call.second.data_format,
        out_format=call.output_format,
        bias=call.bias is not None,
        fp32_dest=call.fp32_dest,
        packer_l1_acc=call.packer_l1_acc,
        bias_format=None if call.bias is None else call.bias.data_format,
        batches=max(call.first_batches, call.second_batches),
        first_batched=call.first_batches > 1,
        second_batched=call.second_batches > 1,
        transpose_first=call.transpose_a,
        transpose_second=call.transpose_b,
    )
    config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    added_later = config.program is MatmulProgram.SINGLE_TILES or not in_dram or problem.second_batched
    if problem.bias and added_later:
        problem = replace(problem, bias=False)
        config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    require_possible(call, problem, config)
    if config.program is MatmulProgram.SINGLE_TILES:
        problem = replace(problem, transpose_first=False, transpose_second=False)
    return problem, config


def _operand(builder: PlanBuilder, name: str, *, turned: bool) -> PlanTensor:
    """An operand; transposed by an operation of its own if asked for, in its own kind of memory."""
    given = builder.tensor(name)
    if not turned:
        return given
    spec = transposed_spec(given.spec)
    return builder.run(
        "TransposeDeviceOperation",
        Transpose(data_format=spec.data_format),
        [given],
        output=PlanTensor(f"{name}.transposed", spec),
        circular_buffers=transpose_buffers(spec, builder.device_spec.grid),
        dataflow=True,
    )


def _matmul(
    builder: PlanBuilder, call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, made: TensorSpec
) -> PlanTensor:
    work = MatmulWork(
        problem=problem, config=config, fidelity_phases=call.fidelity_phases or 1, out_channels=made.shape[-1]
    )
    first = _operand(builder, "input", turned=call.transpose_a and not problem.transpose_first)
    second = _operand(builder, "weight", turned=call.transpose_b and not problem.transpose_second)
    result = builder.run(
        "MatmulDeviceOperation",
        work,
        [first, second, *((builder.tensor("bias"),) if problem.bias else ())],
        output=PlanTensor("output", made),
        circular_buffers=matmul_circular_buffers(
            problem, config, source="input", in_memory=call.first.memory_config, output="output", out_sharded=False
        ),
        dataflow=True,
        key=("matmul", work, call.first, call.second, made),
    )
    for one in (second, first):
        if builder.is_own(one):
            builder.adopt(one)
    return result
