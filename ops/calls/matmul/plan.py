"""The plan of ttnn.matmul and ttnn.linear for interleaved tensors.

Rules: ttnn 0.81.1, compared with its device operations, buffers and dataflow buffers on a device without kernels.
"""

from dataclasses import dataclass, replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import FLOAT32, DataFormat
from device.numbers.integers import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.eltwise.plan import activated, with_row
from ops.programs.matmul.circular_buffers import matmul_circular_buffers
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork
from ops.programs.matmul.interleaved import interleaved_config

DEFAULT_PHASES = 2  # HiFi2
LOW_PRECISION_PHASES = 1  # LoFi, where both operands are block floats


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulArguments:
    """One call of matmul or linear.

    Attributes:
        first: [..., M, K], its leading axes all 1.
        second: [..., K, N], its leading axes all 1.
        bias: A single row of N; None without.
        out_format: Output format; None for the first operand's.
        memory_config: Where the output lies, interleaved.
        activation: Its name in lower case and its parameters; None without.
        fidelity_phases: Fidelity phases; None for the library's default.
        fp32_dest: Dst is 32 bits wide; read only with fidelity phases given, as packer_l1_acc.
        packer_l1_acc: Partial sums are added in L1.
    """

    first: TensorSpec
    second: TensorSpec
    bias: TensorSpec | None
    out_format: DataFormat | None
    memory_config: MemoryConfig
    activation: tuple[str, tuple[float, ...]] | None = None
    fidelity_phases: int | None = None
    fp32_dest: bool = False
    packer_l1_acc: bool = False

    @property
    def output_format(self) -> DataFormat:
        """Format of the output."""
        return self.out_format or self.first.data_format


def with_defaults(call: MatmulArguments, device_spec: DeviceSpec) -> MatmulArguments:
    """The call with the library's compute config, where the caller gave none.

    Two float32 operands get HiFi4, but HiFi3 on devices whose HiFi4 errs with a 32-bit Dst.
    """
    if call.fidelity_phases is not None:
        return call
    formats, wide = (call.first.data_format, call.second.data_format), call.output_format == FLOAT32
    fidelity_phases = LOW_PRECISION_PHASES if all(one.is_block for one in formats) else DEFAULT_PHASES
    if formats == (FLOAT32, FLOAT32):
        fidelity_phases = 3 if device_spec.compute.minus_one_quirk else 4
    return replace(call, fidelity_phases=fidelity_phases, fp32_dest=wide, packer_l1_acc=not wide)


def plan_matmul(arguments: MatmulArguments, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call; its operands are the tensors "input", "weight" and "bias".

    Args:
        arguments: The call, validated.
        device_spec: The device.
        free_l1_bytes: Free bytes of every L1 bank.
    """
    call = with_defaults(arguments, device_spec)
    given = {"input": call.first, "weight": call.second, "bias": call.bias}
    builder = PlanBuilder(device_spec, {name: spec for name, spec in given.items() if spec is not None})
    problem, config = _program(call, device_spec, free_l1_bytes)
    shape = (*call.first.shape[:-1], call.second.shape[-1])
    made = TensorSpec(shape, call.output_format, Layout.TILE, call.memory_config)
    result = _matmul(builder, call, problem, config, made)
    if call.bias is not None and not problem.bias:
        result = with_row(builder, result, builder.tensor("bias"), call.bias.data_format, "output.biased")
    if call.activation is not None:
        result = activated(builder, result, call.activation, "output.activated")
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _program(call: MatmulArguments, device_spec: DeviceSpec, free_l1_bytes: int) -> tuple[MatmulProblem, MatmulConfig]:
    """What is multiplied, and how; a program of single tiles leaves the bias to an operation of its own."""
    rows, depth = call.first.shape[-2:]
    places = (call.first.memory_config, call.second.memory_config, call.memory_config)
    in_dram = all(place.buffer_type is BufferType.DRAM for place in places)
    problem = MatmulProblem(
        m_tiles=div_up(rows, TILE),
        k_tiles=div_up(depth, TILE),
        n_tiles=div_up(call.second.shape[-1], TILE),
        in_format=call.first.data_format,
        weight_format=call.second.data_format,
        out_format=call.output_format,
        bias=call.bias is not None,
        fp32_dest=call.fp32_dest,
        packer_l1_acc=call.packer_l1_acc,
    )
    config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    if problem.bias and (config.program is MatmulProgram.SINGLE_TILES or not in_dram):
        problem = replace(problem, bias=False)
        config = interleaved_config(problem, device_spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    return problem, config


def _matmul(
    builder: PlanBuilder, call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, made: TensorSpec
) -> PlanTensor:
    work = MatmulWork(
        problem=problem, config=config, fidelity_phases=call.fidelity_phases or 1, out_channels=made.shape[-1]
    )
    names = ("input", "weight", *(("bias",) if problem.bias else ()))
    return builder.run(
        "MatmulDeviceOperation",
        work,
        [builder.tensor(name) for name in names],
        output=PlanTensor("output", made),
        circular_buffers=matmul_circular_buffers(
            problem, config, source="input", in_memory=call.first.memory_config, output="output", out_sharded=False
        ),
        dataflow=True,
        key=("matmul", work, call.first, made),
    )
