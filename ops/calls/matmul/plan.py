"""The plan of ttnn.matmul and ttnn.linear for interleaved tensors.

Rules: ttnn 0.81.1, compared with its device operations, buffers and dataflow buffers on a device without kernels.
"""

from dataclasses import dataclass, replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import FLOAT32, DataFormat
from device.numbers.integers import div_up
from device.plan import Allocate, Free, Operation, Plan, Step
from device.spec.device_spec import DeviceSpec
from ops.programs.eltwise.work import Activate, AddRow
from ops.programs.matmul.circular_buffers import matmul_circular_buffers
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram
from ops.programs.matmul.interleaved import interleaved_config
from ops.programs.matmul.work import MatmulWork

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
        fp32_dest: Dst is 32 bits wide; read only with phases given, as packer_l1_acc.
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


def with_defaults(a: MatmulArguments, spec: DeviceSpec) -> MatmulArguments:
    """The call with the library's compute config, where the caller gave none.

    Two float32 operands get HiFi4, but HiFi3 on devices whose HiFi4 errs with a 32-bit Dst.
    """
    if a.fidelity_phases is not None:
        return a
    formats, wide = (a.first.data_format, a.second.data_format), a.output_format == FLOAT32
    fidelity_phases = LOW_PRECISION_PHASES if all(one.is_block for one in formats) else DEFAULT_PHASES
    if formats == (FLOAT32, FLOAT32):
        fidelity_phases = 3 if spec.compute.minus_one_quirk else 4
    return replace(a, fidelity_phases=fidelity_phases, fp32_dest=wide, packer_l1_acc=not wide)


def plan_matmul(arguments: MatmulArguments, spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """Plan a call; its operands are the tensors "input", "weight" and "bias".

    Args:
        arguments: The call, validated.
        spec: The device.
        free_l1_bytes: Free bytes of every L1 bank.
    """
    a = with_defaults(arguments, spec)
    problem, config = _program(a, spec, free_l1_bytes)
    shape = (*a.first.shape[:-1], a.second.shape[-1])
    made = TensorSpec(shape, a.output_format, Layout.TILE, a.memory_config)
    steps: list[Step] = [_matmul(a, problem, config, made, spec)]
    names = ["output"]

    def follow(operation: str, inputs: tuple[str, ...], name: str, work: AddRow | Activate) -> None:
        step = Operation(
            name=operation,
            inputs=(names[-1], *inputs),
            outputs=(Allocate(name, made.buffer(spec)),),
            work=work,
            key=(operation, made, work),
        )
        steps.extend([step, Free(names[-1])])
        names.append(name)

    if a.bias is not None and not problem.bias:
        work = AddRow(data_format=a.output_format, row_format=a.bias.data_format)
        follow("BinaryNgDeviceOperation", ("bias",), "output.biased", work)
    if a.activation is not None:
        name, parameters = a.activation
        follow("UnaryDeviceOperation", (), "output.activated", Activate(
            name=name, parameters=parameters, data_format=a.output_format
        ))  # fmt: skip
    given = {"input": a.first, "weight": a.second} | ({} if a.bias is None else {"bias": a.bias})
    tensors = given | dict.fromkeys(names, made)
    return Plan(steps=tuple(steps), tensors=tensors, results={"output": names[-1]})


def _program(a: MatmulArguments, spec: DeviceSpec, free_l1_bytes: int) -> tuple[MatmulProblem, MatmulConfig]:
    """What is multiplied, and how; a program of single tiles leaves the bias to an operation of its own."""
    rows, depth = a.first.shape[-2:]
    places = (a.first.memory_config, a.second.memory_config, a.memory_config)
    in_dram = all(place.buffer_type is BufferType.DRAM for place in places)
    problem = MatmulProblem(
        m_tiles=div_up(rows, TILE),
        k_tiles=div_up(depth, TILE),
        n_tiles=div_up(a.second.shape[-1], TILE),
        in_format=a.first.data_format,
        weight_format=a.second.data_format,
        out_format=a.output_format,
        bias=a.bias is not None,
        fp32_dest=a.fp32_dest,
        packer_l1_acc=a.packer_l1_acc,
    )
    config = interleaved_config(problem, spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    if problem.bias and (config.program is MatmulProgram.SINGLE_TILES or not in_dram):
        problem = replace(problem, bias=False)
        config = interleaved_config(problem, spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes)
    return problem, config


def _matmul(
    a: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, made: TensorSpec, spec: DeviceSpec
) -> Operation:
    work = MatmulWork(
        problem=problem, config=config, fidelity_phases=a.fidelity_phases or 1, out_channels=made.shape[-1]
    )
    return Operation(
        name="MatmulDeviceOperation",
        inputs=("input", "weight", *(("bias",) if problem.bias else ())),
        outputs=(Allocate("output", made.buffer(spec)),),
        circular_buffers=matmul_circular_buffers(
            problem, config, source="input", in_memory=a.first.memory_config, output="output", out_sharded=False
        ),
        dataflow=True,
        work=work,
        key=("matmul", work, a.first, made),
    )
