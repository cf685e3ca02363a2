"""Element-wise operations: arguments, the program that the real library takes, its circular buffers."""

from dataclasses import dataclass, replace
from math import inf, prod

from device.cores import CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT8, UINT16, UINT32, DataFormat
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.buffer_shapes import BUFFERING, require_cores
from ops.programs.eltwise.functions import FUNCTIONS, RELU, without_numbers
from ops.programs.eltwise.op import Activate, Activations, Binary, keeps_bits
from ops.programs.eltwise.pairs import PAIRS
from ops.programs.eltwise.refusals import OF_INTEGERS, operation_refusal, parameter_refusals
from ops.programs.eltwise.shards import (
    NOT_REPEATED,
    Repeated,
    lies_in_place,
    on_all_cores,
    repeated,
    rescaled,
    rows_on_all_cores,
    shard_view,
    shards_beside,
    shards_beyond,
    shards_outside,
    tiles_of,
    unary_buffers,
    works_on_shards,
)

RANGES = {UINT32: (0, 2**32 - 1), INT32: (-(2**31), 2**31 - 1)}  # of numbers that such a tensor is combined with
ALONE = frozenset(("hardswish", "identity", "lgamma", "logit", "logsigmoid", "where_tss"))  # with kernels of their own
# Data types in the order of their numbers, which messages name
DATA_TYPES = ("bfloat16", "float32", "uint32", "bfloat8_b", "bfloat4_b", "uint8", "uint16", "int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryArguments:
    """A call."""

    op: Binary  # What is done, of which formats
    left: TensorSpec  # The first tensor, "input"
    right: TensorSpec | None = None  # The second, "input_b"; None for a number
    place: MemoryConfig | None = None  # Where the result goes; None lets the call choose
    target: TensorSpec | None = None  # The caller's tensor "target" that the result is written into, if there is one
    wanted: DataFormat | None = None  # The format that the caller asks for, which must be that of the target


def require_wanted(target: TensorSpec | None, wanted: DataFormat | None) -> None:
    """Raises DeviceError if the requested format differs from that of the caller's tensor."""
    if target is not None and wanted not in (None, target.data_format):
        raise DeviceError(
            "If both output dtype and output tensor are provided, their dtypes should match\n"
            f"dtype: leave it out; output_tensor is {target.data_format}, not {wanted}"
        )


def require_formats(op: Binary) -> None:
    """Raises DeviceError for formats that the library does not combine."""
    left, right, pair, name = op.left_format, op.right_format, PAIRS[op.operation], op.operation
    operation = f"BinaryOpType::{pair.op}"
    for operand, data_format in (("A", left), ("B", right)):
        if data_format is not None and data_format not in pair.formats:
            shown = POWERS if name == "pow" and operand == "A" and data_format != UINT8 else operation
            raise DeviceError(
                f"Input tensor {operand} dtype {_named(data_format)} is not supported for binary operation {shown}\n"
                f"{name}: typecast the tensor"
            )
    if right is not None and right != left and not {left, right} <= set(pair.mixed):
        raise DeviceError(
            f"Mixed dtype is not supported for binary operation {operation}, dtype A: {_named(left)}, dtype B: "
            f"{_named(right)}\n{name}: typecast one of the tensors"
        )
    if op.scalar is not None and left in RANGES:
        require_integer(op.scalar, left, name)


POWERS = "POWER: tensor exponents are not supported for integer inputs, use a scalar integer exponent"


def require_integer(
    number: float, data_format: DataFormat, name: str, *, caller: str | None = None, tensor: str = "input"
) -> None:
    """Raises for a number outside the range of an integer format.

    ``caller`` and ``tensor`` are the library's words: None for those of the row ``name`` of `PAIRS`.
    """
    least, most = RANGES.get(data_format, (0, 2**16 - 1))
    if number.is_integer() and least <= number <= most:
        return
    if data_format not in RANGES:
        raise NotSimulatedError(
            f"{name}: {number:g} with a tensor of {data_format} is not simulated; typecast the tensor to floats"
        )
    caller = caller or f"Binary operation BinaryOpType::{PAIRS[name].op}"
    raise DeviceError(
        f"{caller} with a {_named(data_format)} tensor cannot represent the scalar {number:g}: only a finite integer "
        f"within the range of {_named(data_format)} survives being packed as one, and this value would be changed "
        f"silently. Typecast the {tensor} to a floating-point dtype first.\n"
        f"{name}: give a whole number from {least} to {most}"
    )


def _require_bfloat16(op: Binary) -> None:
    """Raises DeviceError for an exact sum in another format."""
    if op.exact and op.data_format != BFLOAT16:
        raise DeviceError(
            "fast_and_approximate_mode=false is only supported for a BFLOAT16 output on binary operation "
            f"BinaryOpType::{PAIRS[op.operation].op}, got output dtype {_named(op.data_format)}. The accurate path "
            "exists to round the bfloat16 result to nearest even, so it has no effect for other output dtypes; leave "
            f"the flag unset (or pass true) for those.\n{op.operation}: leave fast_and_approximate_mode out"
        )


def _require_tolerances(op: Binary) -> None:
    """Raises DeviceError for tolerances of isclose that no difference has."""
    if op.operation != "isclose":
        return
    for name, tolerance in zip(("rtol", "atol"), op.numbers, strict=False):
        if not 0 <= tolerance < inf:
            raise DeviceError(
                f"isclose: {name} must be a finite, non-negative value, got {tolerance:g}\n"
                f"{name}: give how far the operands of an element may differ, 0 or more"
            )


def _refused_activation(op: Binary) -> str | None:
    """Why the library does not make the program of an operation with these functions of operands and result."""
    functions = (*op.left_activations, *op.right_activations, *op.activations)
    refusals = (operation_refusal(function, op.left_format) for function in functions)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _named(data_format: DataFormat) -> str:
    return f"DataType::{data_format.name.upper()}"


VECTOR_UNIT_TILES = 2  # that the vector unit works on before they are packed
DST_TILES = 8  # of 16 bits that a half of Dst holds


def binary_buffers(
    op: Binary,
    left: PlanTensor,
    right: PlanTensor | None,
    result: PlanTensor,
    kind: Repeated,
    spec: DeviceSpec,
    *,
    on_shards: bool,
) -> tuple[CircularBuffer, ...]:
    """The program's buffers, on all cores: two tiles each, one tile for a number, shards in place.

    An operand with activations has a second buffer for their results. An operand that ``kind`` repeats within tiles is
    spread over two tiles of its own.
    """

    def buffer_of(name: str, tensor: PlanTensor) -> CircularBuffer:
        if on_shards and tensor.spec.memory_config.is_sharded():
            return shard_view(name, tensor, spec)
        return tiles_of(name, BUFFERING, tensor.spec.data_format, spec, cores=op.cores)

    spread, before = op.left_format if kind.left else op.second_format, op.before
    on_the_way = 1
    sharded = all(tensor.spec.memory_config.is_sharded() for tensor in (left, right, result) if tensor is not None)
    if on_shards and sharded and not kind.what:  # as many tiles of shards as are computed before they are packed
        wide = any(each in (FLOAT32, *RANGES) for each in (op.left_format, op.second_format, op.data_format))
        on_the_way = VECTOR_UNIT_TILES if op.by_vector_unit else DST_TILES // (2 if wide else 1)
    return (
        buffer_of("left", left),
        *((tiles_of("left_activated", on_the_way, before[0], spec, cores=op.cores),) if before[0] else ()),
        tiles_of("number", 1, op.scalar_format, spec, cores=op.cores) if right is None else buffer_of("right", right),
        *((tiles_of("right_activated", on_the_way, before[1], spec, cores=op.cores),) if before[1] else ()),
        *((tiles_of("spread", BUFFERING, spread, spec, cores=op.cores),) if kind.what else ()),
        buffer_of("result", result),
    )


ARGUMENTS = 23  # of the reader of a core
LONGEST_REPEATED = 6  # axes that may be repeated, counted from the last


def plan_binary(call: BinaryArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensors "input", "input_b" and "target"; raises DeviceError for unfit shapes or memory."""
    in_rows = [tensor.layout is Layout.ROW_MAJOR for tensor in (call.left, call.right) if tensor is not None]
    as_they_are = call.op.operation.startswith("where_")  # not brought into tiles
    require_cores(call.op.cores, spec, call.op.operation)
    if call.op.scalar is not None and call.left.data_format in RANGES and call.op.operation != "pow":
        require_integer(call.op.scalar, call.left.data_format, call.op.operation)
    require_wanted(call.target, call.wanted)
    by_rows = all(in_rows) and (
        as_they_are
        or not any(tensor is not None and tensor.memory_config.is_sharded() for tensor in (call.left, call.right))
    )
    if all(in_rows) and call.target is not None and not as_they_are:
        raise DeviceError(
            "Optional output tensor with Row Major input is not supported right now for Elementwise operations\n"
            "output_tensor: leave it out, or give the inputs in TILE_LAYOUT"
        )
    if call.op.operation == "pow" and call.left.data_format in (*RANGES, UINT16):
        require_formats(call.op)
    if call.op.scalar is not None and call.left.data_format in RANGES:
        require_integer(call.op.scalar, call.left.data_format, call.op.operation)

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        read = list(tensors[: len(in_rows)])
        if not by_rows and not as_they_are:
            read = [in_other_layout(builder, tensor, Layout.TILE, f"{tensor.name}.tiles") for tensor in read]
        result = _combined(builder, call, read, by_rows=by_rows)
        if all(in_rows) and not by_rows:
            tiles, result = result, in_other_layout(builder, result, Layout.ROW_MAJOR, "output.rows")
            builder.free(tiles)
        builder.free_own(*reversed(read), keep=[result])
        return result

    inputs = {"input": call.left, "input_b": call.right, "target": call.target}
    return plan_of(inputs, spec, write, attempts=True)  # rows become tiles before operands are looked at


def _combined(builder: PlanBuilder, call: BinaryArguments, read: list[PlanTensor], *, by_rows: bool) -> PlanTensor:
    op, left, right, spec = call.op, read[0], read[1] if len(read) > 1 else None, builder.device_spec
    other = None if right is None else right.spec
    kind = NOT_REPEATED if other is None else repeated(left.spec.shape, other.shape)
    _require_bfloat16(op)
    activations = (*op.activations, *op.left_activations, *op.right_activations)
    if not op.left_format.is_float and any(function != RELU for function, _ in activations):
        builder.leave_out_values(
            f"{op.operation}: numbers of activations of integers but relu are not simulated; typecast the tensors"
        )
    if op.scalar is not None and op.left_format == UINT8:
        builder.leave_out_values(f"{op.operation}: a number beside a tensor of uint8 is not simulated; typecast it")
    shape = left.spec.shape if other is None else joined(left.spec.shape, other.shape)
    if call.target is not None:
        result, ones = builder.tensor("target"), (1,) * abs(len(call.target.shape) - len(shape))
        if (*ones, *call.target.shape) != shape and call.target.shape != (*ones, *shape):
            raise DeviceError(
                f"Shape of Output tensor Shape({list(call.target.shape)}) provided does not match the broadcasted "
                f"output shape Shape({list(shape)})\noutput_tensor: give one of that shape, or leave it out"
            )
    else:
        layout = Layout.ROW_MAJOR if by_rows else Layout.TILE
        place = _place(call, left.spec, other, shape, spec, by_rows=by_rows)
        result = PlanTensor("output", TensorSpec(shape, op.data_format, layout, place))
    require_formats(op)  # the library looks at the tensors that it brought into tiles, and at their result first
    _require_tolerances(op)
    if other is not None:
        broadcast(left.spec.shape, other.shape)
    tensors = [tensor for tensor in (left.spec, other, result.spec) if tensor is not None]
    on_shards = works_on_shards(left.spec, other, result.spec, spec.release)
    shards = [tensor.memory_config.shard_spec for tensor in tensors if on_shards]
    if by_rows and other is not None and other.matrix[0] and not other.matrix[1]:
        raise NotSimulatedError(
            f"{op.operation}: the real library divides by the length of rows, which is 0 here; such tensors are not "
            "simulated"
        )
    refused = _refused_activation(op)
    if on_shards:
        refused = refused or shards_beyond(op.cores, result.spec, op.operation, ARGUMENTS)
        if refused is None and (reason := shards_beside(op.cores, result.spec, op.operation)):
            builder.leave_out_values(reason)
    return builder.run(
        "BinaryNgDeviceOperation",
        op,
        read if call.target is None else [*read, result],
        result if call.target is None else None,
        binary_buffers(op, left, right, result, kind, spec, on_shards=on_shards),
        refused=refused,
        key=(
            "binary",
            op.operation,
            op.fast,
            op.exact,
            op.numbers,
            op.scalar_first,
            op.cores,
            (op.left_activations, op.right_activations, op.activations),
            other is None,
            kind,
            tuple((tensor.data_format, tensor.layout, tensor.memory_config) for tensor in tensors),
            tuple(prod(shard.shape) for shard in shards if shard is not None),
        ),
    )


def joined(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast shape: the sides of the first shape, or of the second where they are 1."""
    return tuple(b if a == 1 else a for a, b in zip(*_aligned(left, right), strict=True))


def _aligned(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both shapes with as many axes."""
    rank = max(len(left), len(right))
    return (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right


def broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the result; raises DeviceError where two sides differ and neither is 1."""
    first, second = _aligned(left, right)
    rank = len(first)
    for axis in range(1, rank + 1):
        a, b = first[-axis], second[-axis]
        if a != b and 1 not in (a, b):
            raise DeviceError(
                f"Broadcasting rule violation at dimension index {-axis} (output rank {rank}), "
                f"{named_lengths((a, b))}\nthe sides of both tensors must be equal, or one of them 1"
            )
        require_near(-axis, rank, (a, b))
    return joined(left, right)


def require_near(index: int, rank: int, lengths: tuple[int, ...]) -> None:
    """Raises DeviceError if operands of these lengths are repeated along an axis before the last six."""
    if -index > LONGEST_REPEATED and len({*lengths}) > 1:
        raise DeviceError(
            f"Broadcasting rule violation for rank >= 7 at dimension index {index} (output rank {rank}). Broadcast is "
            f"supported up to rank 6. {named_lengths(lengths)}\nreshape the tensors to fewer axes"
        )


def named_lengths(lengths: tuple[int, ...]) -> str:
    """The lengths of an axis of two or three operands, as the library's messages list them."""
    return ", ".join(f"dim {letter}: {length}" for letter, length in zip("abc", lengths, strict=False))


def _place(
    call: BinaryArguments,
    left: TensorSpec,
    right: TensorSpec | None,
    shape: tuple[int, ...],
    spec: DeviceSpec,
    *,
    by_rows: bool,
) -> MemoryConfig:
    """The memory of the result: the caller's, or that of the operand with more cores."""
    if call.place is not None and (not call.place.is_sharded() or call.place.shard_spec is not None):
        return call.place
    padded = TensorSpec(shape, left.data_format, left.layout).padded_shape
    if call.place is None and right is None:
        return left.memory_config
    sharded = [
        operand for operand in (left, right) if operand is not None and operand.memory_config.shard_spec is not None
    ]
    chosen = sharded[0] if sharded else None
    if call.place is None and right is not None:
        chosen = _holder(left, right)
        sides = joined(right.shape, left.shape) if chosen is right else shape  # which differ in sides that do not fit
        padded = TensorSpec(sides, left.data_format, left.layout).padded_shape
    if chosen is not None and chosen.memory_config.shard_spec is not None:
        place = call.place if call.place is not None and right is None else chosen.memory_config
        return replace(place, shard_spec=rescaled(chosen.memory_config.shard_spec, chosen, padded))
    if call.place is not None:
        unit = 1 if by_rows else TILE
        return replace(
            call.place, shard_spec=on_all_cores(padded, call.place.memory_layout, spec, "BinaryNg", unit=unit)
        )
    return left.memory_config


def places_on_shards(tensor: TensorSpec, shape: tuple[int, ...]) -> MemoryConfig:
    """The memory of a tensor for a result of another shape: its shards are scaled like the shape."""
    if tensor.memory_config.shard_spec is None:
        return tensor.memory_config
    padded = TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape
    return replace(tensor.memory_config, shard_spec=rescaled(tensor.memory_config.shard_spec, tensor, padded))


def _holder(left: TensorSpec, right: TensorSpec) -> TensorSpec:
    """The operand whose memory the result of two operands gets by default."""
    left_shards, right_shards = left.memory_config.shard_spec, right.memory_config.shard_spec
    if right_shards is None:
        return left
    if left_shards is None:
        return right if left.memory_config.buffer_type is BufferType.DRAM else left
    return right if right_shards.num_cores() > left_shards.num_cores() else left


def plan_unary(
    source: TensorSpec,
    function: tuple[str, tuple[float, ...]],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    target: TensorSpec | None = None,
    cores: CoreRangeSet | None = None,
    then: Activations | None = None,
    seen_as: DataFormat | None = None,
) -> Plan:
    """Plan a function of the tensor "input", written into the caller's tensor "target" if given, on some cores.

    One program applies the functions ``then`` to the results as well, as unary_chain has them; None for other calls. A
    bitcast gives elements of the format ``seen_as``.
    """
    name, parameters = function
    chain = (function, *(then or ()))
    if seen_as is None:
        _require_target_format(source, target, name)
    elif target is not None and target.data_format != seen_as:
        raise DeviceError(
            "If both output dtype and output tensor provided dtype should match\n"
            f"output_tensor: give one of {seen_as}, not {target.data_format}"
        )
    written = PlanTensor("output" if target is None else "target", target or _result(source, place, spec, seen_as))
    for each, _ in chain if seen_as is None else ():
        _require_format(source, each)
    if then is not None:
        _require_chain(source, chain)
    _require_target_shape(source, target)
    stays = written.spec.memory_config.is_sharded()
    if stays and source.memory_config.is_sharded() and len(source.padded_shape) < 2:
        raise DeviceError(f"Rank must be at least 2\n{name}: reshape the vector of rows in shards to rank 2")
    format_after = written.spec.data_format
    op = Activate(
        name=name,
        parameters=parameters,
        data_format=source.data_format,
        out_format=None if format_after == source.data_format else format_after,
        cores=cores,
        then=then or (),
    )
    refused, unknown = _unary_reasons(source, written.spec, chain, spec, cores=cores, chained=then is not None)
    if seen_as is not None and not keeps_bits(source.data_format, seen_as):
        unknown = f"bitcast: elements of {source.data_format} seen as {seen_as}, of other bits, have no numbers here"
    shape_key = None if source.layout is Layout.TILE else source.padded_shape  # tiles have one program for all shapes

    def write(builder: PlanBuilder, read: PlanTensor, *into: PlanTensor) -> PlanTensor:
        if unknown is not None:
            builder.leave_out_values(unknown)
        return builder.run(
            "UnaryDeviceOperation",
            op,
            [read, *into],
            None if into else written,
            unary_buffers(read, written, spec, name, cores),
            dataflow=True,
            refused=refused,
            key=("unary", op, source.layout, source.memory_config, written.spec.memory_config, shape_key),
        )

    return plan_of({"input": source, "target": target}, spec, write)


def _unary_reasons(
    source: TensorSpec,
    result: TensorSpec,
    chain: Activations,
    spec: DeviceSpec,
    *,
    cores: CoreRangeSet | None,
    chained: bool,
) -> tuple[str | None, str | None]:
    """Why the library has no program for a chain of functions, and why ttsim has no values; None if they exist."""
    name, parameters = chain[0]
    refused = next(parameter_refusals(name, parameters), None)
    if chained:
        reasons = (operation_refusal(each, source.data_format) for each in chain)
        refused = next((reason for reason in reasons if reason is not None), None)
    if refused is None:
        require_cores(cores, spec, name, unit="eltwise_unary")
    unknowns = (without_numbers(each, source.layout) for each in chain)
    unknown = next((reason for reason in unknowns if reason is not None), None)
    if refused is None and lies_in_place(source, result, spec):
        refused = shards_outside(cores, source, name)
        if refused is None:
            unknown = unknown or shards_beside(cores, source, name)
    return refused, unknown


def _require_target_format(source: TensorSpec, target: TensorSpec | None, name: str) -> None:
    """Raises DeviceError for a caller's tensor of a format that such results can not have."""
    data_format = source.data_format
    result = data_format if target is None else target.data_format
    if result != data_format and not {result, data_format} <= {BFLOAT16, FLOAT32, BFLOAT8_B}:
        raise DeviceError(
            f"Preallocated output dtype {_named(result)} is not compatible with input dtype {_named(data_format)}. "
            "Integer and float dtypes cannot be mixed; mixed floating-point output is limited to BFLOAT16, FLOAT32, "
            f"and BFLOAT8_B.\n{name}: give an output_tensor of {data_format}"
        )


def _require_format(source: TensorSpec, name: str) -> None:
    """Raises DeviceError for a format that a function does not take."""
    data_format = source.data_format
    if not data_format.is_float and (name not in FUNCTIONS or data_format not in FUNCTIONS[name].integer_formats):
        raise DeviceError(
            f"Unary: UnaryOpType::{name.upper()} does not support integer input dtype "
            f"DataType::{data_format.name.upper()}\n{name}: typecast the tensor to floats"
        )
    if name in OF_INTEGERS and (refusal := operation_refusal((name, (0.0,)), data_format)) and data_format.is_float:
        raise DeviceError(refusal)
    floats = FUNCTIONS[name].floats
    if floats and data_format not in floats:
        raise DeviceError(
            f"Unary: {name.upper()} requires BFLOAT16 or FLOAT32 input, got dtype "
            f"{DATA_TYPES.index(data_format.name)}\n{name}: typecast the tensor"
        )


def _require_chain(source: TensorSpec, chain: Activations) -> None:
    """Raises DeviceError for functions that cannot be part of a chain in one program."""
    for name, _ in chain:
        if name == "abs" and source.data_format == INT32:  # ttnn.abs takes ABS_INT32 by itself
            raise DeviceError(
                "Unary: UnaryOpType::ABS does not support integer input dtype DataType::INT32\n"
                "unary_chain: call ttnn.abs"
            )
    alone = next((name for name, _ in chain if name in ALONE), None)
    if alone is not None and len(chain) > 1:
        raise DeviceError(
            f"Unary: UnaryOpType::{alone.upper()} uses a dedicated compute kernel and must be the only op in the chain "
            f"(chain has {len(chain)} ops)\nunary_chain: call it before or after"
        )


def _require_target_shape(source: TensorSpec, target: TensorSpec | None) -> None:
    """Raises DeviceError for a caller's tensor of another shape or layout than the input's."""
    if target is None:
        return
    if target.shape != source.shape:
        raise DeviceError(
            f"Unary: Preallocated output shape must match computed shape. Computed: Shape({list(source.shape)}), "
            f"Preallocated: Shape({list(target.shape)})\noutput_tensor: give one of the input's shape"
        )
    if target.layout is not source.layout:
        raise DeviceError(
            "Unary: Output format (tile/row-major) must match input when preallocated. Output: "
            f"{int(target.layout is Layout.TILE)}, Input: {int(source.layout is Layout.TILE)}\n"
            "output_tensor: give one of the input's layout"
        )


def _result(
    source: TensorSpec, place: MemoryConfig | None, spec: DeviceSpec, data_format: DataFormat | None
) -> TensorSpec:
    """The spec of the result, padded as the tensor is, unless its shards demand otherwise; None for its format."""
    where = source.memory_config if place is None else place
    if not where.is_sharded():
        return source.changed(memory_config=where, padded_shape=source.padded_shape, data_format=data_format)
    if where.shard_spec is None:
        source_shards = source.memory_config.shard_spec
        if source_shards is None and source.layout is Layout.TILE:
            source_shards = on_all_cores(source.padded_shape, where.memory_layout, spec, "Unary")
        elif source_shards is None:
            source_shards = rows_on_all_cores(source, where.memory_layout, spec, "Unary")
        else:  # the tensor's own, which hold a tile at least
            high, wide = source_shards.shape
            source_shards = source_shards.changed(shape=(max(high, TILE), max(wide, TILE)))
        where = replace(where, shard_spec=source_shards)
    return source.changed(memory_config=where, data_format=data_format)
