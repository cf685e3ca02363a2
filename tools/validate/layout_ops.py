"""Rows of layout_ops.csv: conversions between interleaved and sharded, moves, reshards, tilizing, slices.

A row gives shapes, layouts and memory of both sides, and the shards of its output. Shards of an input follow from the
number of cores: whole rows of tiles each when height sharded, the evenest split when block sharded. All rows that count
are profiler files of 2025, and are predicted with the software of that year (`tools.validate.prediction`).
"""

import re
from dataclasses import replace
from math import prod

from device.errors import TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import round_up
from device.spec.device_spec import DeviceSpec
from ops.op_model import Ends
from ops.passes.cycles import place_of
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.movement import Movement, movement_cycles
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import slice_movement, slice_write_movement
from tools.validate.operands import even_shards
from tools.validate.prediction import (
    FORMATS,
    OF_2025,
    NotPredictedError,
    Prediction,
    Row,
    core_ranges,
    device_spec,
    measured_ns,
    run_of,
)

CONVERSIONS = {kind.value: kind for kind in Conversion if kind not in (Conversion.PAD, Conversion.UNTILIZE_CODEGEN)}
MODELED = {*CONVERSIONS, "PaddedSlice", "SliceWrite", "Reshape"}


def operation(row: Row) -> str:
    """The operation without the endings that all share."""
    return row["op"].removesuffix("DeviceOperation").removesuffix("Partial")


def predict_layout_op(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row."""
    name = operation(row)
    if name not in MODELED:
        if name.startswith(("Reshard ", "InterleavedToSharded (")):
            raise NotPredictedError("instrumented kernels: an upper bound, not a duration")
        raise NotPredictedError(f"{name} is no operation of a convolution")
    if "profiler" not in row["kind"]:
        raise NotPredictedError(f"{row['kind']}: no profiler row with both sides' layout")
    spec = device_spec(row).replace(release=OF_2025)
    try:
        source, target = _tensor(row, "in", spec), _tensor(row, "out", spec)
        if name == "Reshape":
            source, target = _unpadded(source, target)
        movement = _movement(row, source, target, spec)
    except TTSimError as error:
        raise NotPredictedError(f"no plan: {error}") from error
    shapes = f"{row['in_shape']}->{row['out_shape']}"
    return Prediction(
        row=row,
        spec=spec,
        program=movement,
        measured_ns=measured_ns(row),
        cycles_on=lambda spec: (movement_cycles(movement, spec).cycles,),
        group=(name, row["in_layout"].lower(), "L1" if "L1" in row["in_mem"] else "DRAM"),
        architecture=row["arch"],
        evidence=(name, place_of(Ends(read=source, written=target))),
        configuration=(run_of(row), name, shapes, row["in_layout"], row["memory"], row["dtype_in0"], row["cores"]),
    )


def _movement(row: Row, source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """The program of a row."""
    name = operation(row)
    match name:
        case "PaddedSlice":
            return slice_movement(source, target, spec, columns=_columns(row))
        case "SliceWrite":
            return slice_write_movement(source, target, spec)
        case "Reshape":
            return Reshape(()).movement(source, target, spec)
    return CopyTensor(CONVERSIONS[name]).movement(source, target, spec)


def _unpadded(source: TensorSpec, target: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """Both sides of a reshape of which a row gives the padded shapes of tiles: with the most rows that fit both."""
    if prod(source.shape) == prod(target.shape):
        return source, target
    candidates = [
        (before * prod(source.shape[:-2]), before, after)
        for before in range(source.shape[-2], max(0, source.shape[-2] - TILE), -1)
        for after in range(target.shape[-2], max(0, target.shape[-2] - TILE), -1)
        if prod(source.shape) // source.shape[-2] * before == prod(target.shape) // target.shape[-2] * after
    ]
    if not candidates or source.layout is not Layout.TILE:
        raise NotPredictedError("a reshape whose shapes do not fit each other")
    _, before, after = max(candidates)
    return _with_rows(source, before), _with_rows(target, after)


def _with_rows(tensor: TensorSpec, rows: int) -> TensorSpec:
    """A tensor of which the last rows are padding."""
    return replace(tensor, shape=(*tensor.shape[:-2], rows, tensor.shape[-1]), padded_shape=tensor.padded_shape)


def _columns(row: Row) -> tuple[int, int] | None:
    """Columns of an image that a slice reads."""
    begins, ends = (
        re.search(rf"padded_slice_{side}=Shape\(\[(\d+); (\d+); (\d+)", row["config"]) for side in ("start", "end")
    )
    return None if begins is None or ends is None else (int(begins[3]), int(ends[3]))


def _tensor(row: Row, side: str, spec: DeviceSpec) -> TensorSpec:
    """The tensor of one side of a row."""
    cores = int(row["cores"])
    shape = tuple(int(size) for size in row[f"{side}_shape"].split("x"))
    layout = Layout.TILE if row[f"{side}_layout"] == "TILE" else Layout.ROW_MAJOR
    data_format = FORMATS[row["dtype_in0" if side == "in" else "dtype_out"]]
    memory = row[f"{side}_mem"]
    buffer_type = BufferType.L1 if memory.startswith("L1") else BufferType.DRAM
    if "SHARDED" not in memory:
        return TensorSpec(shape, data_format, layout, MemoryConfig(TensorMemoryLayout.INTERLEAVED, buffer_type))
    scheme, recorded = TensorMemoryLayout[memory.removeprefix("L1_")], row["out_shard"]
    size = re.match(r"(\d+)x(\d+) (\w+)", recorded)
    # recorded for an output, else computed; a move has the same shards on both sides
    if size is not None and (side == "out" or operation(row) in ("Move", "Tilize", "Untilize")):
        shards = ShardSpec(core_ranges(recorded), (int(size[1]), int(size[2])), ShardOrientation[size[3]])
    else:
        shards = even_shards(scheme, prod(shape[:-1]), shape[-1], cores, layout, spec)
    padded = (*shape[:-2], round_up(shape[-2], shards.shape[0]), round_up(shape[-1], shards.shape[1]))
    return TensorSpec(shape, data_format, layout, MemoryConfig(scheme, buffer_type, shards), padded)
