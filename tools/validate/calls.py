"""The public call that a row of an operation measured."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ttsim as ttnn
from device.memory.memory_config import TILE
from device.numbers.formats import round_up
from tools.validate.operands import DTYPES, Asked, whole_numbers
from tools.validate.prediction import NotPredictedError

FUNCTIONS: Final = {  # whose names are not those of ttnn in lower case
    "MUL": "multiply", "SUB": "subtract", "DIV": "divide", "RECIP": "reciprocal",
}  # fmt: skip
AXES: Final = {"WH": (2, 3), "HC": (1, 2), "CN": (0, 1), "NH": (0, 2), "NW": (0, 3), "CW": (1, 3)}
SCALAR: Final = 2.0  # of a binary operation whose row states none


@dataclass(frozen=True)
class Call:
    """A call of the library."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: Mapping[str, Any]


def _converted(asked: Asked) -> Call:
    """To or from shards."""
    name = {"InterleavedToSharded": "interleaved_to_sharded", "ShardedToInterleaved": "sharded_to_interleaved"}
    dtype = DTYPES[asked.row["dtype_out"] or asked.dtype]
    function = getattr(ttnn, name[asked.row["op"]])
    return Call(function, (asked.first, asked.output), {"output_dtype": dtype})


def _move(asked: Asked) -> Call:
    """A tensor moves where another of its size was freed above it."""

    def moved(above: Any, tensor: Any) -> Any:
        ttnn.deallocate(above)
        return ttnn.move(tensor)

    return Call(moved, (asked.first, asked.first), {})


def _reshard(asked: Asked) -> Call:
    return Call(ttnn.reshard, (asked.first, asked.output), {})


def _untilize(asked: Asked) -> Call:
    return Call(ttnn.to_layout, (asked.first, ttnn.ROW_MAJOR_LAYOUT), {"memory_config": asked.output})


def _tilize(asked: Asked) -> Call:
    dtype = DTYPES[asked.row["dtype_out"] or asked.dtype]
    return Call(ttnn.tilize, (asked.first,), {"memory_config": asked.output, "dtype": dtype})


def _transpose(asked: Asked) -> Call:
    axes = AXES[asked.found(r"TransposeOpDim::(\w+)")]
    return Call(ttnn.transpose, (asked.first, *axes), {"memory_config": asked.output})


def _permute(asked: Asked) -> Call:
    order = whole_numbers(asked.found(r"dims\W*(?:SmallVector)?\W*\[([\d; ]+)\]"))
    permuted = tuple(asked.first.shape[axis] for axis in order)
    if asked.output_shape not in ((), permuted):
        raise NotPredictedError("the permuted shape is not that of the output")
    return Call(ttnn.permute, (asked.first, order), {"memory_config": asked.output})


def _concat(asked: Asked) -> Call:
    layout, memory = asked.row["in_layout"], asked.row["in_mem"]
    others = [asked.tensor(shape, layout, memory) for shape in asked.shapes[1:]]
    if not others and asked.row["in1_shape"] and "in2 " not in asked.config:
        others = [asked.second]
    if not others:
        raise NotPredictedError("the row does not say what was joined")
    axis = int(asked.found(r"dim=(-?\d+)"))
    return Call(ttnn.concat, ([asked.first, *others], axis), {"memory_config": asked.output})


def _slice(asked: Asked) -> Call:
    begins = whole_numbers(asked.found(r"slice_start\W+Shape\(\[([\d; ]+)\]"))
    ends = whole_numbers(asked.found(r"slice_end\W+Shape\(\[([\d; ]+)\]"))
    steps = re.search(r"step\W+Shape\(\[([\d; ]+)\]", asked.config)
    shape = asked.shapes[0]
    shape = (1,) * (len(begins) - len(shape)) + shape
    if shape[: len(shape) - len(begins)].count(1) == len(shape) - len(begins):
        shape = shape[len(shape) - len(begins) :]
    if any(end > size for end, size in zip(ends, shape, strict=False)):  # what was cut was padding, too
        shape = (*shape[:-2], *(round_up(size, TILE) for size in shape[-2:]))
    if len(begins) != len(shape) or any(end > size for end, size in zip(ends, shape, strict=True)):
        raise NotPredictedError("the slice does not fit the shape that the row states")
    first = asked.tensor(shape, asked.row["in_layout"], asked.row["in_mem"], asked.row["in_shard"])
    step = whole_numbers(steps[1]) if steps else (1,) * len(begins)
    return Call(ttnn.slice, (first, begins, ends, step), {"memory_config": asked.output})


def _pad(asked: Asked) -> Call:
    pairs = whole_numbers(asked.found(r"padding=(\[\[.*?\]\])"))
    padding = list(zip(pairs[::2], pairs[1::2], strict=True))
    value = re.search(r"value=(-?\d+)", asked.config)
    return Call(ttnn.pad, (asked.first, padding, float(value[1]) if value else 0.0), {"memory_config": asked.output})


def _repeat(asked: Asked) -> Call:
    counts = whole_numbers(asked.found(r"repeat_dims=(\[[^\]]*\])"))
    axes = zip(asked.first.shape, counts, counts[1:-1], strict=False)
    if any(size == 1 and own > 1 and next_count > 1 for size, own, next_count in axes):
        raise NotPredictedError("this release repeats along two axes by one program, where one of them has one element")
    return Call(ttnn.repeat, (asked.first, counts), {"memory_config": asked.output})


def _repeat_interleave(asked: Asked) -> Call:
    count, axis = int(asked.found(r"repeats=(\d+)")), int(asked.found(r"dim=(-?\d+)"))
    return Call(ttnn.repeat_interleave, (asked.first, count, axis), {"memory_config": asked.output})


def _function(asked: Asked, pattern: str) -> Callable[..., Any]:
    """The function of an element-wise operation."""
    name = asked.found(pattern)
    function = getattr(ttnn, FUNCTIONS.get(name, name.lower()), None)
    if function is None:
        raise NotPredictedError(f"{name} is no function of this library")
    return function  # type: ignore[no-any-return]


def _binary(asked: Asked) -> Call:
    function = _function(asked, r"BinaryOpType::(\w+)")
    options: dict[str, Any] = {"memory_config": asked.output}
    if not asked.row["in1_shape"]:
        scalar = re.search(r"scalar\W+(-?[\d.]+(?:e-?\d+)?)", asked.config)
        return Call(function, (asked.first, float(scalar[1]) if scalar else SCALAR), options)
    if asked.row["dtype_out"]:
        options["dtype"] = DTYPES[asked.row["dtype_out"]]
    return Call(function, (asked.first, asked.second), options)


def _unary(asked: Asked) -> Call:
    if len(re.findall(r"UnaryOpType::", asked.config)) > 1:
        raise NotPredictedError("a chain of functions")
    return Call(_function(asked, r"UnaryOpType::(\w+)|op=(\w+)"), (asked.first,), {"memory_config": asked.output})


SHARDED: Final = {
    "L1_HEIGHT_SHARDED": ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    "L1_BLOCK_SHARDED": ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG,
    "L1_WIDTH_SHARDED": ttnn.L1_WIDTH_SHARDED_MEMORY_CONFIG,
}


def matmul_call(asked: Asked) -> Call:
    """The matmul of a row that names no program config, or the core grid of its call alone."""
    row = asked.row
    first, second, output = row["memory"].replace("->", ",").split(",")
    m, k, n, batches = (int(row[name]) for name in ("M", "K", "N", "batch"))
    inner = re.search(r"in1 batch (\d+)", row["notes"])
    a = asked.tensor((1, batches, m, k), "TILE", first)
    b = asked.tensor((1, int(inner[1]) if inner else 1, k, n), "TILE", second, dtype=row["dtype_in1"])
    grid = re.search(r"user_core_coord=\(x=(\d+);y=(\d+)\)", row["config"])
    options: dict[str, Any] = {
        "memory_config": SHARDED.get(output) or asked.memory((1, batches, m, n), "TILE", output, ""),
        "dtype": DTYPES[row["dtype_out"]],
        "core_grid": ttnn.CoreGrid(x=int(grid[1]), y=int(grid[2])) if grid else None,
        "compute_kernel_config": ttnn.WormholeComputeKernelConfig(
            math_fidelity=ttnn.MathFidelity[row["fidelity"]],
            fp32_dest_acc_en=row["fp32_acc"] == "1",
            packer_l1_acc=row["packer_l1_acc"] == "1",
        ),
    }
    if "bias=true" not in row["config"]:
        return Call(ttnn.matmul, (a, b), options)
    bias = asked.tensor((1, n), "TILE", "DRAM_INTERLEAVED", dtype=row["dtype_in1"])
    return Call(ttnn.linear, (a, b), {**options, "bias": bias})


CALLS: Final[Mapping[str, Callable[[Asked], Call]]] = {
    "InterleavedToSharded": _converted, "ShardedToInterleaved": _converted, "Reshard": _reshard, "Move": _move,
    "Untilize": _untilize, "untilize": _untilize, "Tilize": _tilize, "tilize": _tilize,
    "Transpose": _transpose, "Permute": _permute, "permute": _permute, "Concat": _concat, "concat": _concat,
    "Slice": _slice, "pad": _pad, "repeat": _repeat, "repeat_interleave": _repeat_interleave,
    "Binary": _binary, "BinaryNg": _binary, "Unary": _unary,
}  # fmt: skip
