"""Random words of which calls are drawn: tensors, memory configs, shards, and now and then an odd argument."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

T = TypeVar("T")
Arguments = dict[str, str]  # of a call: keyword -> Python; keywords that begin with _ stand for arguments by position

DTYPES: Final = ("bfloat16",) * 6 + ("float32", "float32", "bfloat8_b", "bfloat8_b")
RARE_DTYPES: Final = ("bfloat4_b", "uint32", "int32", "uint16", "uint8")
LAYOUTS: Final = ("TILE_LAYOUT", "ROW_MAJOR_LAYOUT")
INTEGERS: Final = frozenset({"uint32", "int32", "uint16", "uint8"})
PLACES: Final = ("DRAM_MEMORY_CONFIG", "DRAM_MEMORY_CONFIG", "L1_MEMORY_CONFIG")
SCHEMES: Final = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")
ODD: Final = (
    *("None", "True", "0", "-1", "7", "31", "1 << 33", "2.5", "2 + 1j", "float('nan')", "'x'", "'relu'", "''", "b'ab'"),
    *("()", "[]", "{}", "(1,)", "(0, 0)", "(2, 0)", "(-1, 1)", "(1, 2, 3)", "(1, 1, 1, 1)", "(65536, 65536)"),
    *("[None, 1]", "range(2)", "np.int64(3)", "np.float32(2)", "np.zeros(0)", "np.array([1, 1])", "len", "..."),
    *("ttnn.bfloat4_b", "ttnn.uint8", "ttnn.ROW_MAJOR_LAYOUT", "ttnn.L1_MEMORY_CONFIG", "ttnn.Conv2dConfig()"),
    *("ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG", "ttnn.CoreCoord(0, 0)", "ttnn.BufferType.L1", "device"),
)


class Draw:
    """Draws the words of one call: always the same of a seed, a group and a number."""

    def __init__(self, seed: int, group: str, number: int, *, small: bool = False) -> None:
        self.rng = np.random.default_rng([seed, number, *group.encode()])
        self.small = small
        self.given: list[str] = []
        self.odd: float | None = None  # share of calls with an odd argument, whatever a call says

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return bool(self.rng.random() < share)

    def number(self, least: int, most: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(least, most + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.number(0, len(choices) - 1)]

    def pair(self, least: int, most: int) -> tuple[int, int]:
        """Two numbers, in two of three cases the same."""
        first = self.number(least, most)
        return (first, first) if self.chance(0.7) else (first, self.number(least, most))

    def side(self) -> int:
        """Rows or columns of a matrix, in half of the cases a multiple of 32."""
        most = 2 if self.small else 12
        return 32 * self.number(1, most) if self.chance(0.5) else self.number(1, 32 * most)

    def shape(self) -> list[int]:
        """Of a tensor, of rank 4 as a rule."""
        rank = self.pick((4, 4, 4, 4, 2, 3))
        batches = [self.pick((1, 1, 1, 2, 3)) for _ in range(rank - 2)]
        return [*batches, self.side(), self.side()]

    def dtype(self, *, rare: float = 0.06) -> str:
        """Name of a data type."""
        return self.pick(RARE_DTYPES) if self.chance(rare) else self.pick(DTYPES)

    def place(self) -> str:
        """An interleaved memory config."""
        return f"ttnn.{self.pick(PLACES)}"

    def shards(self, shape: Sequence[int], scheme: str | None = None, *, tiled: bool = True) -> str:
        """A memory config of shards that hold a tensor, of whole tiles as a rule, on a grid that may be too large."""
        scheme = scheme or self.pick(SCHEMES)
        unit = 32 if tiled else 1
        height, width = (-(-size // unit) * unit for size in shape[-2:])
        rows = int(np.prod(shape[:-2])) * height
        down, across = self.number(1, 8), self.number(1, 8)
        counts = {"HEIGHT_SHARDED": (down * across, 1), "WIDTH_SHARDED": (1, down * across)}.get(scheme, (down, across))
        units = (unit, unit if tiled else self.pick((8, 32)) if counts[1] > 1 else 1)
        parts = zip((rows, width), counts, units, strict=True)
        high, wide = (-(-size // count // each) * each if count > 1 else size for size, count, each in parts)
        if self.chance(0.05):
            high += self.pick((1, 32))
        cores = f"ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord({across - 1}, {down - 1}))"
        order = "ROW_MAJOR" if self.chance(0.9) else "COL_MAJOR"
        spec = f"ttnn.ShardSpec(ttnn.CoreRangeSet([{cores}]), [{high}, {wide}], ttnn.ShardOrientation.{order})"
        return f"ttnn.MemoryConfig(ttnn.TensorMemoryLayout.{scheme}, ttnn.BufferType.L1, {spec})"

    def memory(self, shape: Sequence[int], *, sharded: float = 0.25, tiled: bool = True) -> str:
        """A memory config, of shards in this share of cases."""
        return self.shards(shape, tiled=tiled) if self.chance(sharded) else self.place()

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        *,
        dtype: str | None = None,
        layout: str | None = None,
        memory: str | None = None,
        host: float = 0.03,
    ) -> str:
        """Adds a tensor to what is given; returns its name."""
        dtype = dtype or self.dtype()
        if layout is None or (dtype.endswith("_b") and self.chance(0.95)):  # block floats have tiles alone
            layout = (
                "TILE_LAYOUT" if dtype.endswith("_b") else self.pick(("TILE_LAYOUT", "TILE_LAYOUT", "ROW_MAJOR_LAYOUT"))
            )
        kind = "integers" if dtype in INTEGERS else "normal"
        made = f"ttnn.Tensor({kind}({self.number(0, 999)}, {tuple(shape)}), ttnn.{dtype}, layout=ttnn.{layout})"
        moved = (
            "" if self.chance(host) else f".to(device, {memory or self.memory(shape, tiled=layout == 'TILE_LAYOUT')})"
        )
        self.given.append(f"{name} = {made}{moved}")
        return name

    def maybe(self, share: float, name: str, *choices: str) -> Arguments:
        """An argument in this share of cases."""
        return {name: self.pick(choices)} if self.chance(share) else {}

    def compute(self, name: str, share: float = 0.5) -> Arguments:
        """A compute kernel config in this share of cases."""
        if not self.chance(share):
            return {}
        fields = f"math_fidelity=ttnn.MathFidelity.{self.pick(('LoFi', 'HiFi2', 'HiFi3', 'HiFi4'))}"
        fields += f", fp32_dest_acc_en={self.chance(0.5)}, packer_l1_acc={self.chance(0.5)}"
        return {name: f"ttnn.init_device_compute_kernel_config(device.arch(), {fields})"}

    def call(self, function: str, arguments: Mapping[str, str], *, odd: float = 0.06) -> str:
        """A call as Python; in this share of cases with odd values for one or two of its arguments."""
        given = dict(arguments)
        if given and self.chance(odd if self.odd is None else self.odd):
            for _ in range(self.pick((1, 1, 1, 2))):
                given[self.pick(list(given))] = self.pick(ODD)
        text = ", ".join(value if name.startswith("_") else f"{name}={value}" for name, value in given.items())
        return f"y = ttnn.{function}({text})"
