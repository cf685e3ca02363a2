"""Operations on single elements as steps of a plan: each makes a new tensor and releases the old one."""

from device.numbers.formats import DataFormat
from device.plan import CircularBuffer
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.eltwise.activation_rules import operation_refusal
from ops.programs.eltwise.circular_buffers import activation_buffers, added_row_buffers
from ops.programs.eltwise.operations import Activate, AddRow


def with_row(
    builder: PlanBuilder, matrix: PlanTensor, row: PlanTensor, row_format: DataFormat, name: str
) -> PlanTensor:
    """A row added to every row of a matrix.

    Args:
        matrix: The matrix; it is released.
        row_format: What its elements are read as.
    """
    work = AddRow(data_format=matrix.spec.data_format, row_format=row_format)
    buffers = added_row_buffers(matrix.spec, row.spec, builder.device_spec)
    return _followed(builder, "BinaryNgDeviceOperation", work, [matrix, row], name, buffers)


def activated(
    builder: PlanBuilder, source: PlanTensor, activation: tuple[str, tuple[float, ...]], name: str
) -> PlanTensor:
    """A function of every element.

    Args:
        source: Its argument, which is released.
        activation: ttnn's name in lower case, and its parameters.
    """
    work = Activate(name=activation[0], parameters=activation[1], data_format=source.spec.data_format)
    buffers = activation_buffers(source.spec, source.spec, builder.device_spec)
    refused = operation_refusal(activation, source.spec.data_format)
    return _followed(builder, "UnaryDeviceOperation", work, [source], name, buffers, dataflow=True, refused=refused)


def _followed(
    builder: PlanBuilder,
    operation: str,
    work: AddRow | Activate,
    reads: list[PlanTensor],
    name: str,
    circular_buffers: tuple[CircularBuffer, ...],
    *,
    dataflow: bool = False,
    refused: str | None = None,
) -> PlanTensor:
    spec = reads[0].spec
    result = builder.run(
        operation,
        work,
        reads,
        output=PlanTensor(name, spec),
        circular_buffers=circular_buffers,
        dataflow=dataflow,
        key=(operation, spec, work),
        refused=refused,
    )
    builder.free(reads[0])
    return result
