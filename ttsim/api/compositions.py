"""ttnn's element-wise functions that select one of several device operations, or make several calls."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from math import prod
from numbers import Integral, Real
from typing import Final, ParamSpec

from device.cores import CoreRangeSet
from device.errors import DeviceError, shown
from device.memory.layouts import no_such_axis
from device.memory.memory_config import MemoryConfig
from device.numbers.formats import FLOAT32, INT32, UINT32
from ops.planners.eltwise import RANGES, broadcast, places_on_shards, require_integer
from ops.planners.ternary import TernaryArguments, has_kernel, plan_ternary, repeats
from ops.programs.eltwise.op import BITCAST
from ops.programs.eltwise.refusals import Activation
from ops.programs.eltwise.shards import repeated
from ops.programs.eltwise.ternary import Ternary
from ttsim.api.conversions import typecast
from ttsim.api.copies import copy
from ttsim.api.eltwise import LEGACY, activations_of, allowed, combined, device_of
from ttsim.api.shape import reshape, slice as part_of
from ttsim.api.unary import GELUS, KEYWORD_TEXTS, GeluVariant, applied
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import checked_as, wrong
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam
from ttsim.runtime.types.docs import RAISES, documented
from ttsim.runtime.types.tensors import DataType

P = ParamSpec("P")
TEXTS: Final[Mapping[str, str]] = {
    "use_legacy": LEGACY,
    "memory_config": "Memory of the result; None lets the call choose.",
    "output_tensor": "A tensor of the result's shape that receives the result and is returned.",
    "sub_core_grids": "Cores that may be used; None for all.",
    "sub_device_id": "Not simulated; None for all cores.",
    "dtype": "Data type of the result; None for that of the first tensor.",
    "activations": "Functions applied to the result.",
    "input_tensor_a_activations": "Functions applied to the first operand before the operation.",
    "input_tensor_b_activations": "Functions applied to the second operand before the operation.",
    "fast_and_approximate_mode": "Whether the matrix unit computes the quotient.",
    "rounding_mode": 'None, "floor" or "trunc".',
    "value": "A number.",
    "ops_chain": "Functions as UnaryWithParam, in order.",
    "reduction": "Whether to return all losses, their mean or their sum.",
    "variant": KEYWORD_TEXTS["variant"],
}
TENSOR: Final = "A tensor on the device."
OPERAND: Final = "A tensor on the device, or a number."
ROUNDINGS: Final = (None, "trunc", "floor")
ROW_OR_COLUMN: Final = ("row", "column")
MATRIX_RANK: Final = 2


def public(
    text: str, example: str, result: str, others: Mapping[str, Sequence[str]] | None = None
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """A decorator that makes a public function of ttnn, with checked arguments and a docstring.

    The example is a call with `x`, a tensor of 1 and 2, and `y`, one of 2 and 2; `others` are those of `Signature`.
    """

    def decorator(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        made = on_device(checked_as(others=others)(function))
        texts = {
            name: TEXTS.get(name, TENSOR if parameter.annotation is Tensor else OPERAND)
            for name, parameter in signature(function).parameters.items()
        }
        tail = f"""

Returns:
    A tensor of the broadcast shape, or ``output_tensor``.

Examples:
    >>> x = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
    >>> y = ttnn.full_like(x, 2.0)
    >>> ttnn.{example}.to_list()
    {result}"""
        head = f"{text}\n\nIts numbers were never compared with recordings of the real kernels."
        made.__doc__ = documented(head + tail, {"Args": texts, "Raises": RAISES})
        return made

    return decorator


def _three(
    name: str,
    operands: tuple[Tensor | float, ...],
    *,
    numbers: tuple[float, ...] = (),
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    cores: object = None,
) -> Tensor:
    """Runs the device operation of three operands; one operand may be a number."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    scalar = next((float(operand) for operand in operands if not isinstance(operand, Tensor)), None)
    roles = dict(zip(("input", "input_b", "input_c"), tensors, strict=False))
    roles |= {} if output_tensor is None else {"target": output_tensor}
    device = device_of(roles)
    result = (output_tensor.dtype if output_tensor is not None else dtype or tensors[0].dtype).format
    op = Ternary(
        operation=name,
        formats=tuple(each.spec.data_format if isinstance(each, Tensor) else None for each in operands),
        scalar=scalar,
        numbers=numbers,
        data_format=result,
        cores=allowed(name, cores),
    )
    target = None if output_tensor is None else output_tensor.spec
    call = TernaryArguments(op=op, tensors=tuple(tensor.spec for tensor in tensors), place=memory_config, target=target)
    plan = plan_ternary(call, device.spec)
    with device.function(f"ttnn.{name}"):
        return run(plan, roles, device)["output"]


def _require_numbers(name: str, **operands: object) -> None:
    for key, operand in operands.items():
        if not isinstance(operand, Tensor | Real):
            raise wrong(name, f"{key} must be a Tensor or a number, not {shown(operand)}")


@public("true_value where the predicate is not 0, else false_value.", "where(x, 5.0, y)", "[[5.0, 5.0]]")
def where(
    predicate: Tensor,
    true_value: object,
    false_value: object,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """One operation on one, two or three tensors; an integer predicate is converted if the values are floats."""
    _require_numbers("where", true_value=true_value, false_value=false_value)
    values = [value for value in (true_value, false_value) if isinstance(value, Tensor)]
    whole, condition = not predicate.spec.data_format.is_float, predicate
    floats = all(value.spec.data_format.is_float for value in values)
    if whole and ((values and floats) or (not values and predicate.spec.data_format in (INT32, UINT32))):
        condition = typecast(predicate, values[0].dtype if values else DataType.FLOAT32)
    placed = {"memory_config": memory_config, "output_tensor": output_tensor, "cores": sub_core_grids}
    if len(values) == 2:
        pair = (true_value, false_value)
        return _three("where", (condition, *pair), dtype=values[0].dtype, **placed)  # type: ignore[arg-type]
    numbers = tuple(float(value) for value in (true_value, false_value) if isinstance(value, Real))
    if values and values[0].spec.data_format in RANGES:
        require_integer(numbers[0], values[0].spec.data_format, "where", caller="ttnn.where", tensor="tensor")
    if not values:
        cores = allowed("where", sub_core_grids)
        return applied("where", ("where_tss", numbers), condition, memory_config, output_tensor, cores)
    if memory_config is None:
        repeated(condition.spec.shape, values[0].spec.shape)
        shape = broadcast(condition.spec.shape, values[0].spec.shape)
        placed["memory_config"] = places_on_shards(values[0].spec, shape)
    row = "where_tts" if isinstance(true_value, Tensor) else "where_tst"
    return combined("where", row, (condition, values[0]), numbers=numbers, **placed)  # type: ignore[arg-type]


def _block_floats(*tensors: Tensor) -> bool:
    return any(tensor.spec.data_format.is_block for tensor in tensors)


def _repeats(*tensors: Tensor) -> str:
    return repeats([tensor.spec.shape for tensor in tensors])


def _lacks_kernel(*tensors: Tensor) -> bool:
    """Whether shapes of three tensors send the call to two-operand operations, which name the sides that differ."""
    return not has_kernel([tensor.spec.shape for tensor in tensors])


def _written(result: Tensor, output_tensor: Tensor | None) -> Tensor:
    """The result of several calls, copied into the caller's tensor if there is one, as in ttnn."""
    return result if output_tensor is None else copy(result, output_tensor)


ADDCMUL_FORMATS: Final = ("BFLOAT16", "BFLOAT8_B", "FLOAT32", "INT32", "UINT32")


@public("input_a + value * input_b * input_c.", "addcmul(x, x, y, value=2.0)", "[[5.0, 10.0]]")
def addcmul(
    input_a: Tensor,
    input_b: Tensor,
    input_c: Tensor,
    *,
    value: object = 1.0,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """One operation; several for block floats that are broadcast within tiles."""
    if not isinstance(value, Real):
        raise wrong("addcmul", f"value must be a number, not {shown(value)}")
    if input_a.dtype.name not in ADDCMUL_FORMATS:
        raise DeviceError(
            "Addcmul supports only BFLOAT16, BFLOAT8_B, FLOAT32, INT32, and UINT32 dtypes. Got "
            f"DataType::{input_a.dtype.name}\naddcmul: typecast the tensors"
        )
    tensors = (input_a, input_b, input_c)
    if len({tensor.dtype for tensor in tensors}) > 1:
        listed = ", ".join(f"input_{key}=DataType::{each.dtype.name}" for key, each in zip("abc", tensors, strict=True))
        raise DeviceError(
            f"Addcmul TTT requires all input tensors to have the same dtype. Got {listed}\naddcmul: typecast tensors"
        )
    composed = _block_floats(*tensors) and _repeats(*tensors) in (*ROW_OR_COLUMN, "number")
    if composed or _lacks_kernel(*tensors):
        scaled = combined("multiply", "multiply", (input_b, value), memory_config=memory_config)
        product = combined("multiply", "multiply", (scaled, input_c), memory_config=memory_config)
        del scaled
        return _written(combined("add", "add", (input_a, product), memory_config=memory_config), output_tensor)
    return _three("addcmul", tensors, numbers=(float(value),), memory_config=memory_config, output_tensor=output_tensor)


@public("input_a + value * input_b / input_c.", "addcdiv(x, x, y, value=2.0)", "[[2.0, 4.0]]")
def addcdiv(
    input_a: Tensor,
    input_b: Tensor,
    input_c: Tensor,
    *,
    value: object = 1.0,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """One operation; several for block floats."""
    if not isinstance(value, Real):
        raise wrong("addcdiv", f"value must be a number, not {shown(value)}")
    tensors = (input_a, input_b, input_c)
    if all(tensor.spec.data_format == INT32 for tensor in tensors):
        raise DeviceError("Addcdiv TTT does not support INT32 inputs.\naddcdiv: typecast the tensors")
    if _block_floats(*tensors) or _lacks_kernel(*tensors):
        return _addcdiv_composed(tensors, float(value), memory_config, output_tensor)
    return _three("addcdiv", tensors, numbers=(float(value),), memory_config=memory_config, output_tensor=output_tensor)


def _addcdiv_composed(
    tensors: tuple[Tensor, Tensor, Tensor], value: float, place: MemoryConfig | None, output_tensor: Tensor | None
) -> Tensor:
    """Several calls; a division by zero gives infinity with the sign of the second tensor."""
    first, second, third = tensors
    scaled = combined("multiply", "multiply", (second, value), memory_config=place)
    quotient = combined("div", "div", (scaled, third), memory_config=place)
    result = combined("add", "add", (first, quotient), memory_config=place)
    if result.spec.data_format == FLOAT32:
        result = _written(result, output_tensor)
        del quotient, scaled
        return result
    sign = applied("sign", ("sign", ()), second, place)
    one_or_sign = where(applied("eqz", ("eqz", ()), second, place), 1.0, sign, memory_config=place)
    infinite = combined("multiply", "multiply", (one_or_sign, value * float("inf")), memory_config=place)
    zero = applied("eqz", ("eqz", ()), third, place)
    whole = where(zero, infinite, result, memory_config=place)
    del result, zero
    whole = _written(whole, output_tensor)
    del infinite, one_or_sign, sign, quotient, scaled  # in the library's order
    return whole


@public(
    "input_tensor_a * input_tensor_b + input_tensor_c.",
    "mac(x, y, 1.0)",
    "[[3.0, 5.0]]",
    others={
        "value": ["input_tensor_b", "input_tensor_c"],
        "value1": ["input_tensor_b"],
        "value2": ["input_tensor_c"],
    },
)
def mac(
    input_tensor_a: Tensor,
    input_tensor_b: object,
    input_tensor_c: object,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """One operation for floats, multiply and add for integers; numbers need all cores and a new tensor."""
    _require_numbers("mac", input_tensor_b=input_tensor_b, input_tensor_c=input_tensor_c)
    operands = (input_tensor_a, input_tensor_b, input_tensor_c)
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    numbers = tuple(float(operand) for operand in operands if isinstance(operand, Real))
    if numbers and not (output_tensor is None and sub_core_grids is None):
        raise wrong("mac", "output_tensor and sub_core_grids need three tensors, not numbers")
    repeated = _repeats(*tensors) in (*ROW_OR_COLUMN, *(("number",) if len(tensors) == len(operands) else ()))
    whole = any(not tensor.spec.data_format.is_float for tensor in tensors)
    composed = _block_floats(*tensors) and repeated
    if whole or composed or (len(tensors) == len(operands) and _lacks_kernel(*tensors)):
        if output_tensor is not None:
            raise DeviceError(
                "ttnn::mac: output_tensor is not supported when the operation falls back to the composite path "
                "(unsupported broadcast shape, block-float subtile broadcast, or integer input dtype). Remove "
                "output_tensor or use shapes/dtypes that are supported by the native LLK path.\n"
                "mac: two operations multiply and add these tensors into a new one; leave output_tensor out"
            )
        if sub_core_grids is not None:
            raise DeviceError(
                "ttnn::mac: sub_core_grids is not supported when the operation falls back to the composite path. "
                "Remove sub_core_grids or use shapes/dtypes that are supported by the native LLK path.\n"
                "mac: two operations multiply and add these tensors on all cores; leave sub_core_grids out"
            )
        factor = input_tensor_b if isinstance(input_tensor_b, Tensor) else numbers[0]
        product = combined("multiply", "multiply", (input_tensor_a, factor), memory_config=memory_config)
        addend = input_tensor_c if isinstance(input_tensor_c, Tensor) else numbers[-1]
        return combined("add", "add", (product, addend), memory_config=memory_config)
    if len(tensors) == 1:
        return applied("mac", ("mac_tss", numbers), input_tensor_a, memory_config)
    placed = {"memory_config": memory_config, "output_tensor": output_tensor, "cores": sub_core_grids}
    return _three("mac", operands, **placed)  # type: ignore[arg-type]


OTHER_WIDTH: Final = {DataType.BFLOAT16: DataType.FLOAT32, DataType.FLOAT32: DataType.BFLOAT16}


@public("input + weight * (end - input).", "lerp(x, y, 0.5)", "[[1.5, 2.0]]")
def lerp(
    input: Tensor,
    end: Tensor,
    weight: object,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """One operation; several for integers and for block floats that are broadcast within tiles."""
    _require_numbers("lerp", weight=weight)
    tensors = [input, end, *([weight] if isinstance(weight, Tensor) else [])]
    if any(tensor.spec.data_format == UINT32 for tensor in tensors):
        named = dict(zip(("input", "end", "weight"), tensors, strict=False))
        listed = ", ".join(f"{name}=DataType::{tensor.dtype.name}" for name, tensor in named.items())
        raise DeviceError(f"lerp does not support UINT32 inputs. Got {listed}\nlerp: typecast the tensors")
    whole = all(tensor.spec.data_format == INT32 for tensor in tensors)
    single = ("number",) if isinstance(weight, Tensor) else ()
    composed = _block_floats(*tensors) and _repeats(*tensors) in (*ROW_OR_COLUMN, *single)
    if whole or composed or (isinstance(weight, Tensor) and _lacks_kernel(*tensors)):
        if end.dtype is not input.dtype:
            raise DeviceError("Expected the same dtype as start (input), for end\nlerp: typecast the tensors")
        if isinstance(weight, Tensor) and weight.dtype is not input.dtype:
            raise DeviceError("Expected the same dtype as start (input), for weight\nlerp: typecast the tensors")
        if output_tensor is not None and output_tensor.dtype not in (input.dtype, OTHER_WIDTH.get(input.dtype)):
            raise DeviceError(
                "Output tensor dtype must match input dtype, or be FLOAT32 when inputs are BFLOAT16, or be BFLOAT16 "
                f"when inputs are FLOAT32. Got input dtype: DataType::{input.dtype.name}, output dtype: "
                f"DataType::{output_tensor.dtype.name}\nlerp: give an output_tensor of {input.spec.data_format}"
            )
        factor = weight if isinstance(weight, Tensor) else float(weight)  # type: ignore[arg-type]
        distance = combined("subtract", "subtract", (end, input), memory_config=memory_config)
        part = combined("multiply", "multiply", (distance, factor), memory_config=memory_config)
        if isinstance(weight, Tensor):
            del distance
        result = _written(combined("add", "add", (input, part), memory_config=memory_config), output_tensor)
        del part  # in the library's order
        return result
    operands = (input, end, weight)
    return _three("lerp", operands, memory_config=memory_config, output_tensor=output_tensor)  # type: ignore[arg-type]


def _clamped(
    name: str, tensor: Tensor, least: object, most: object, place: MemoryConfig | None, target: Tensor | None = None
) -> Tensor:
    bounds = [bound for bound in (least, most) if bound is not None]
    if not bounds:
        raise DeviceError(
            f"Only one of 'min' or 'max' can be None. Please provide one value\n{name}: give min, max or both"
        )
    if all(isinstance(bound, Tensor) for bound in bounds):
        return _clamped_by_tensors(tensor, least, most, place or tensor.memory_config(), target)  # type: ignore[arg-type]
    for bound in bounds:
        if not isinstance(bound, Real):
            raise wrong(name, f"a bound must be a number, not {shown(bound)}")
    if len({isinstance(bound, Integral) for bound in bounds}) > 1 and name == "clamp":
        raise DeviceError("std::get: wrong index for variant\nclamp: give two integers, or two floats")
    whole = all(isinstance(bound, Integral) for bound in bounds) and name == "clamp"
    if tensor.spec.data_format == INT32 and not whole:
        tensor = typecast(tensor, DataType.FLOAT32, memory_config=place)
    edge = 2**31 if tensor.spec.data_format == INT32 else float("inf")
    low = -edge if least is None else float(least)  # type: ignore[arg-type]
    high = edge - 1 if most is None else float(most)  # type: ignore[arg-type]
    return applied(name, ("clamp_tss", (low, high)), tensor, place, target)


def _clamped_by_tensors(
    tensor: Tensor, least: Tensor | None, most: Tensor | None, place: MemoryConfig, target: Tensor | None
) -> Tensor:
    """Clamps each element to its own bounds; if the lower bound exceeds the upper one, the upper bound wins."""
    if least is None or most is None:
        name, bound = ("ge", least) if most is None else ("le", most)
        inside = combined(name, name, (tensor, bound), memory_config=place)
        return where(inside, tensor, bound, memory_config=place, output_tensor=target)
    floor = combined("minimum", "minimum", (least, most), memory_config=place)
    below = combined("minimum", "minimum", (tensor, most), memory_config=place)
    result = combined("maximum", "maximum", (below, floor), memory_config=place, output_tensor=target)
    del below, floor  # in the library's order
    return result


@public("The elements, limited to min and max.", "clamp(x, min=1.5)", "[[1.5, 2.0]]")
def clamp(
    input_tensor: Tensor,
    min: object = None,
    max: object = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """One operation; int32 is converted to float32 unless the bounds are integers."""
    return _clamped("clamp", input_tensor, min, max, memory_config, output_tensor)


@public("The elements, limited to min and max.", "clip(x, max=1.5)", "[[1.0, 1.5]]")
def clip(
    input_tensor: Tensor,
    min: object = None,
    max: object = None,
    *,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """One operation; int32 is converted to float32."""
    return _clamped("clip", input_tensor, min, max, memory_config)


@public("1 where an element is 0, else 0, written into the tensor.", "logical_not_(x)", "[[0.0, 0.0]]")
def logical_not_(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One operation in place."""
    return applied("logical_not_", ("logical_not_unary", ()), input_tensor, memory_config, input_tensor)


@public(
    "The functions of a list, applied one after the other.",
    "unary_chain(x, [ttnn.UnaryOpType.NEG, ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU)])",
    "[[0.0, 0.0]]",
)
def unary_chain(
    input_tensor: Tensor,
    ops_chain: Sequence,  # type: ignore[type-arg]
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """One operation."""
    if not all(isinstance(function, UnaryWithParam | UnaryOpType) for function in ops_chain):
        raise wrong("unary_chain", f"ops_chain must be a list of UnaryWithParam, not {shown(ops_chain)}")
    if not ops_chain:
        raise DeviceError("Op chain cannot be empty\nunary_chain: give at least one function")
    first, *then = activations_of("unary_chain", ops_chain)
    placed = (memory_config, output_tensor, sub_core_grids)
    return applied("unary_chain", first, input_tensor, *placed, then=tuple(then))


@public("The bits of x as elements of another data type.", "bitcast(x, ttnn.uint16)", "[[16256, 16384]]")
def bitcast(
    input_tensor: Tensor,
    dtype: DataType,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """One operation; values are simulated between data types of the same width."""
    placed = (memory_config, output_tensor, sub_core_grids)
    return applied("bitcast", (BITCAST, ()), input_tensor, *placed, seen_as=dtype.format)


def _prelu_of_channels(tensor: Tensor, weights: Tensor, place: MemoryConfig | None) -> Tensor:
    shape, volume = tensor.spec.shape, prod(weights.spec.shape)
    if len(shape) < MATRIX_RANK:
        raise DeviceError(f"{no_such_axis(len(shape), 1)}\nprelu: the channels are axis 1")
    if shape[1] != volume:
        raise DeviceError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {volume} and channel "
            f"size = {shape[1]}.\nprelu: give a weight for each channel, axis 1"
        )
    if len(shape) > MATRIX_RANK:
        weights = reshape(weights, (1, volume, *(1,) * (len(shape) - 2)))
    below = applied("ltz", ("ltz", ()), tensor, place)
    product = combined("multiply", "multiply", (tensor, weights))
    return where(below, product, tensor)


@public("x, and weight * x for x below 0.", "prelu(ttnn.neg(x), 0.5)", "[[-0.5, -1.0]]")
def prelu(input_tensor_a: Tensor, weight: object, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """One operation for a number; for weights per channel (axis 1), a product where the elements are negative."""
    if isinstance(weight, Sequence) and len(weight) == 1:
        weight = weight[0]
    if isinstance(weight, Tensor):
        return _prelu_of_channels(input_tensor_a, weight, memory_config)
    if not isinstance(weight, Real):
        raise wrong("prelu", f"weight must be a Tensor or a number, not {shown(weight)}")
    return applied("prelu", ("prelu_sfpu", (float(weight),)), input_tensor_a, memory_config)


def _gated(name: str, gate: Activation, tensor: Tensor, dim: object, place: object) -> Tensor:
    """The first half of the channels times a function of the second half."""
    shape = tensor.spec.padded_shape
    if not isinstance(dim, Integral):
        raise wrong(name, f"dim must be an integer, not {shown(dim)}")
    if dim not in (-1, 3):
        raise DeviceError(
            f"glu-family ops only support the last dimension, got dim={dim}\n{name}: permute the tensor first"
        )
    if len(shape) < GATED_RANK:
        raise DeviceError(f"{no_such_axis(len(shape), 3)}\n{name}: reshape the tensor to rank 4")
    width = shape[GATED_RANK - 1]
    if width // 2 % 32:
        raise DeviceError(
            f"Split tensor dimension should be in full tile\n{name}: {width} channels are not two halves of whole tiles"
        )
    if len(shape) > GATED_RANK:
        raise DeviceError(
            f"Input rank {len(shape)} and begins 4 must have the same size\n{name}: reshape the tensor to rank 4"
        )
    most, whole = shape[:-1], _with_padding(tensor)  # the real library cuts and returns padding as elements
    halves = [
        part_of(whole, (0, 0, 0, at), (*most, at + width // 2), (1,) * 4, memory_config=place)  # type: ignore[arg-type]
        for at in (0, width // 2)
    ]
    factor = applied(gate[0], gate, halves[1], place)  # type: ignore[arg-type]
    result = combined("multiply", "multiply", (halves[0], factor), memory_config=place)  # type: ignore[arg-type]
    del factor
    while halves:
        del halves[0]
    return result


def _with_padding(tensor: Tensor) -> Tensor:
    """The tensor with its last rows padded to whole tiles, as the real library returns it."""
    whole = tensor.spec.changed(shape=tensor.spec.padded_shape)
    if whole == tensor.spec:
        return tensor
    seen = tensor.seen_as(whole)
    if tensor.known:
        seen.buffer.store(tensor.padded_values(), whole)
    return seen


GATED_RANK: Final = 4


def _gate(name: str, gate: str, text: str, result: float) -> Callable[..., Tensor]:
    def function(input_tensor: Tensor, dim: object = -1, *, memory_config: MemoryConfig | None = None) -> Tensor:
        return _gated(name, (gate, ()), input_tensor, dim, memory_config)

    function.__name__ = function.__qualname__ = name
    return _gated_example(name, text, result)(function)


def _gated_example(name: str, text: str, result: float) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    example = f"{name}(ttnn.full((1, 1, 1, 64), 2.0, layout=ttnn.TILE_LAYOUT, device=device))[0, 0, 0, :1]"
    return public(f"The first half of the channels times {text} of the second half.", example, f"[{result}]")


glu = _gate("glu", "sigmoid", "the sigmoid", 1.765625)
reglu = _gate("reglu", "relu", "the ReLU", 4.0)
swiglu = _gate("swiglu", "silu", "the SiLU", 3.53125)


@_gated_example("geglu", "the GELU", 3.90625)
def geglu(
    input_tensor: Tensor,
    dim: object = -1,
    *,
    memory_config: MemoryConfig | None = None,
    variant: GeluVariant = GeluVariant.Accurate,
) -> Tensor:
    """As the others, by one of the variants of GELU."""
    return _gated("geglu", GELUS[variant], input_tensor, dim, memory_config)
