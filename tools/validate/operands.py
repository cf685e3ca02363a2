"""The operands of a call that a row measured: shapes, dtypes, layouts, memories, and shards where none is stated."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import ttsim as ttnn
from device.cores import first_cores
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import div_up, round_up
from device.spec.device_spec import DeviceSpec
from tools.validate.prediction import NotPredictedError, Row, core_ranges
from ttsim.runtime.types.tensors import DataType, TensorDescription

DTYPES: Final[Mapping[str, DataType]] = {
    "bf16": ttnn.bfloat16, "bfp8_b": ttnn.bfloat8_b, "bfp4_b": ttnn.bfloat4_b, "fp32": ttnn.float32,
    "u32": ttnn.uint32, "uint32": ttnn.uint32, "int32": ttnn.int32, "u16": ttnn.uint16,
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What a row says of a call."""

    row: Row
    spec: DeviceSpec
    dtype: str  # Of the first operand

    @property
    def config(self) -> str:
        """Its attributes."""
        return self.row["config"]

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its first operands: one, or several joined by a plus sign."""
        return [whole_numbers(shape) for shape in self.row["in_shape"].split("+")]

    @cached_property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of its output; empty if no row states one."""
        return whole_numbers(self.row["out_shape"])

    @cached_property
    def first(self) -> TensorDescription:
        """The first operand."""
        same = self.row["in_mem"] == self.row["out_mem"] and self.output_shape == self.shapes[0]
        shards = self.row["in_shard"] or (self.row["out_shard"] if same else "")
        return self.tensor(self.shapes[0], self.row["in_layout"], self.row["in_mem"] or self.row["out_mem"], shards)

    @property
    def second(self) -> TensorDescription:
        """The second operand; as the first where both are alike."""
        shape, memory = whole_numbers(self.row["in1_shape"]), self.row["in1_mem"]
        if shape == self.shapes[0] and memory == self.row["in_mem"]:
            return TensorDescription(shape, DTYPES[self.row["dtype_in1"] or self.dtype], self.first.layout, self.place)
        layout, dtype = self.row["in1_layout"] or self.row["in_layout"], self.row["dtype_in1"]
        return self.tensor(shape, layout, memory, self.row["out_shard"] if memory == self.row["out_mem"] else "", dtype)

    @property
    def place(self) -> MemoryConfig:
        """The memory of the first operand."""
        return self.first.memory_config or DRAM_MEMORY_CONFIG

    @property
    def output(self) -> MemoryConfig:
        """The memory of the output."""
        layout = self.row["out_layout"] or self.row["in_layout"]
        memory = self.row["out_mem"] or self.row["in_mem"]
        return self.memory(self.output_shape or self.shapes[0], layout, memory, self.row["out_shard"])

    def tensor(
        self, shape: tuple[int, ...], layout: str, memory: str, shards: str = "", dtype: str = ""
    ) -> TensorDescription:
        """An operand."""
        if not shape or (dtype or self.dtype) not in DTYPES:
            raise NotPredictedError("the row states no shape or dtype of an operand")
        place = self.memory(shape, layout, memory, shards)
        return TensorDescription(shape, DTYPES[dtype or self.dtype], Layout[_layout(layout)], place)

    def memory(self, shape: tuple[int, ...], layout: str, memory: str, shards: str) -> MemoryConfig:
        """The memory that a column names, with the stated shards, or the even ones on the program's cores."""
        if "SHARDED" not in memory:
            return L1_MEMORY_CONFIG if memory.startswith("L1") else DRAM_MEMORY_CONFIG
        if memory.startswith("DRAM"):
            raise NotPredictedError("shards in DRAM")
        scheme = TensorMemoryLayout[memory.removeprefix("L1_")]
        stated = re.match(r"(\d+)x(\d+) (\w+)", shards)
        if stated:
            spec = ShardSpec(core_ranges(shards), (int(stated[1]), int(stated[2])), ShardOrientation[stated[3]])
        else:
            cores = int(self.row["cores"] or 0)
            if not cores:
                raise NotPredictedError("the row does not state its shards")
            rows = prod(shape[:-2]) * round_up(shape[-2], TILE if _layout(layout) == "TILE" else 1)
            spec = even_shards(scheme, rows, shape[-1], cores, Layout[_layout(layout)], self.spec)
        return MemoryConfig(scheme, BufferType.L1, spec)

    def found(self, pattern: str) -> str:
        """What a pattern finds in the attributes."""
        match = re.search(pattern, self.config)
        if match is None:
            raise NotPredictedError("the row does not say what was done")
        return next(group for group in match.groups() if group is not None)


def whole_numbers(text: str) -> tuple[int, ...]:
    """The whole numbers in a text."""
    return tuple(int(number) for number in re.findall(r"-?\d+", text))


def _layout(text: str) -> str:
    return "TILE" if text == "TILE" else "ROW_MAJOR"


def even_shards(
    scheme: TensorMemoryLayout, rows: int, width: int, cores: int, layout: Layout, spec: DeviceSpec
) -> ShardSpec:
    """The shards of a matrix on so many cores; of blocks the evenest that fit the grid, which may stand across it."""
    grid, grain = spec.grid, TILE if layout is Layout.TILE else 1
    down, across = (cores, 1) if scheme is TensorMemoryLayout.HEIGHT_SHARDED else (1, cores)
    columns, lines, orientation = grid.cols, grid.rows, ShardOrientation.ROW_MAJOR
    if scheme is TensorMemoryLayout.BLOCK_SHARDED:
        pairs = [(cores // wide, wide) for wide in range(1, cores + 1) if cores % wide == 0]
        fitting = [pair for pair in pairs if max(pair) <= max(grid.cols, grid.rows)] or pairs
        down, across = min(fitting, key=lambda pair: (rows % (TILE * pair[0]) > 0) + (width % (TILE * pair[1]) > 0))
        columns, lines = across, down
        if down > grid.rows or across > grid.cols:
            columns, lines, orientation = down, across, ShardOrientation.COL_MAJOR
    shard = (round_up(div_up(rows, down), grain), round_up(div_up(width, across), grain))
    return ShardSpec(first_cores(cores, columns, lines), shard, orientation)
