"""What random calls are drawn from: choices, the tensors that live on a device, and drafts of calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, Final, Self, TypeVar
from zlib import crc32

import numpy as np

import ttsim
from device.memory.memory_config import TILE
from device.numbers.formats import Array, div_up, round_up

T = TypeVar("T")

FLOATS: Final = ("bfloat16", "float32", "bfloat8_b", "bfloat4_b")
BLOCKS: Final = ("bfloat8_b", "bfloat4_b")
INTEGERS: Final = ("uint32", "int32", "uint16", "uint8")
USUAL: Final = ("bfloat16", "float32", "bfloat8_b")
KINDS: Final = ("HEIGHT", "WIDTH", "BLOCK")
SIDES: Final = (32, 1, 2, 3, 8, 16, 24, 31, 33, 40, 64, 96, 100, 128)
DRAM: Final = "ttsim.DRAM_MEMORY_CONFIG"
L1: Final = "ttsim.L1_MEMORY_CONFIG"
UNSPECIFIED: Final = tuple(f"ttsim.L1_{kind}_SHARDED_MEMORY_CONFIG" for kind in KINDS)
MOST_ELEMENTS: Final = 60_000  # of a drawn tensor
MOST_READ: Final = 500_000  # elements of a tensor whose values are compared

PRELUDE: Final = """\
import copy
import tempfile
import numpy as np
import ttsim


def numbers(seed, shape, kind="normal"):
    generator = np.random.default_rng(seed)
    if kind == "integers":
        return generator.integers(0, 100, shape).astype(np.float32)
    if kind == "few":
        return generator.integers(-4, 5, shape).astype(np.float32) / 2
    normal = generator.standard_normal(shape).astype(np.float32)
    return {"normal": normal, "positive": np.abs(normal) + np.float32(0.01), "large": normal * np.float32(1000)}[kind]


def cores(*rectangles):
    corners = [(ttsim.CoreCoord(x0, y0), ttsim.CoreCoord(x1, y1)) for x0, y0, x1, y1 in rectangles]
    return ttsim.CoreRangeSet([ttsim.CoreRange(*pair) for pair in corners])


def shards(kind, shape, *rectangles, orientation="ROW_MAJOR", buffer="L1"):
    spec = ttsim.ShardSpec(cores(*rectangles), shape, ttsim.ShardOrientation[orientation])
    return ttsim.MemoryConfig(ttsim.TensorMemoryLayout[f"{kind}_SHARDED"], ttsim.BufferType[buffer], spec)


"""


class Choices:
    """Choices of a generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        return int(self.generator.integers(limit))

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``."""
        return least + self.below(most - least + 1)

    def chance(self, probability: float) -> bool:
        """True with a probability."""
        return bool(self.generator.random() < probability)

    def pick(self, options: Sequence[T]) -> T:
        """One of several options."""
        return options[self.below(len(options))]

    def pair(self, least: int, most: int) -> tuple[int, int]:
        """Two numbers from ``least`` to ``most``."""
        return self.between(least, most), self.between(least, most)


@dataclass(slots=True)
class Shadow:
    """A live tensor and its contents."""

    name: str  # The tensor's name in the script
    tensor: ttsim.Tensor
    values: Array  # float64 (of integers, too): the exact contents; empty for a tensor that is not read
    # The values are the library's own matter: prepared weights, room that is taken, and infinities
    opaque: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> str:
        """Name of the data type, in lower case."""
        return self.tensor.dtype.name.lower()

    @property
    def layout(self) -> str:
        """Name of the layout."""
        return str(self.tensor.layout.name)

    @property
    def tiled(self) -> bool:
        """Whether the tensor is in tiles."""
        return self.layout == "TILE"

    @property
    def on_device(self) -> bool:
        """Whether the tensor lives on the device."""
        return self.tensor.device() is not None

    @property
    def is_float(self) -> bool:
        """Whether the tensor holds floats."""
        return self.dtype in FLOATS


@dataclass(slots=True)
class State:
    """What a sequence has on its device."""

    names: dict[str, Any]  # The names of the script, the prelude's included
    shadows: dict[str, Shadow] = field(default_factory=dict)  # Live tensors by name

    @property
    def device(self) -> ttsim.Device:
        """The device."""
        device: ttsim.Device = self.names["device"]
        return device

    def sharing(self, tensor: Shadow) -> tuple[str, ...]:
        """Names of the live tensors that share the buffer of a tensor, itself included."""
        if not tensor.on_device:
            return (tensor.name,)
        return tuple(other.name for other in self.shadows.values() if other.tensor._storage is tensor.tensor._storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a tensor must be after a call."""

    values: Array | None = None  # float64 by the definition of the operation; None where only the shape is defined
    bound: Array | float = 0.0  # The largest error of each element, or one for all
    shape: tuple[int, ...] = ()  # The shape, where ``values`` is None
    dtypes: tuple[str, ...] = ()  # Names of the data types that the tensor may have
    layout: str | None = None  # Name of the layout; None for either
    place: Any = None  # The memory config; None where the library chooses
    norm: float | None = None  # The largest relative L2 error of all elements together; None for no such limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    text: str  # Python that makes the call and names the tensors that it returns
    # What each tensor that the call returns or writes must be, by name; computed after the call
    results: Mapping[str, Callable[[], Expected]] = field(default_factory=dict)
    frees: tuple[str, ...] = ()  # Names of tensors that the call releases, or may release
    # Other answers of the call, by the name that the text gives them: what must be equal
    facts: Mapping[str, object] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()  # Names of results whose values are the library's own matter, such as prepared weights
    # Why no result can be right; a strict device must refuse the call. Empty for a possible call.
    contradictory: str = ""


def named(**arguments: object) -> str:
    """Keyword arguments as text, each after a comma; empty ones are left out."""
    return "".join(f", {name}={text}" for name, text in arguments.items() if text not in ("", None))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that is made in front of a call."""

    name: str
    text: str  # The line that makes the tensor
    values: Array  # float64 of the contents
    dtype: str

    def __str__(self) -> str:
        return self.name


class Draft(Choices):
    """The choices of one step, the tensors that it may use, and the call that is being drawn."""

    def __init__(self, generator: np.random.Generator, state: State, number: int) -> None:
        super().__init__(generator)
        self.state = state
        self.name = f"t{number}"  # of the step's first result
        self.function = ""  # name of the operation that is drawn
        self.arguments: list[str] = []
        self.operands: list[Operand] = []  # made in front of the call
        self.dtype = ""  # the data type that the call asks for; empty for none
        self.place = ""  # the memory config that it asks for; empty for none
        self.target = ""  # name of the live tensor that takes the result; empty for a new one

    def tensor(
        self, accept: Callable[[Shadow], bool] = lambda shadow: True, *, anywhere: bool = False
    ) -> Shadow | None:
        """A live tensor with axes and known numbers, on the device unless ``anywhere``; None if there is none.

        The choice among some tensors stays the same when others are left out of a sequence.
        """
        salt = self.below(1 << 30)
        accepted = [
            shadow
            for shadow in self.state.shadows.values()
            if (anywhere or shadow.on_device) and not shadow.opaque and shadow.shape and accept(shadow)
        ]
        return min(accepted, key=lambda shadow: crc32(f"{salt} {shadow}".encode()), default=None)

    def evaluated(self, text: str) -> Any:
        """The value of a text of the script."""
        return eval(text, self.state.names)

    def shape(self) -> tuple[int, ...]:
        """A shape of one to five sides, mostly an image."""
        rank = self.pick((4, 4, 4, 4, 3, 2, 2, 5, 1))
        sides = [self.pick((1, 1, 2, 3, 4)) for _ in range(rank - 2)]
        sides += [self.pick(SIDES) for _ in range(min(rank, 2))]
        if rank == 4 and self.chance(0.5):
            sides = [self.pick((1, 1, 2, 3)), *self.pair(1, 16), sides[-1]]
        while prod(sides) > MOST_ELEMENTS:
            sides[int(np.argmax(sides))] = max(sides) // 2
        return tuple(sides)

    def data_type(self, *, rare: float = 0.03) -> str:
        """A data type: floats, and rarely integers."""
        if self.chance(rare):
            return self.pick(INTEGERS)
        return self.pick(("bfloat16", "bfloat16", "bfloat16", "bfloat16", *FLOATS[1:], *FLOATS[1:3]))

    def layout(self, dtype: str) -> str:
        """The name of a layout that a data type may have."""
        return "TILE" if dtype in BLOCKS else self.pick(("TILE", "ROW_MAJOR"))

    def rectangles(self) -> list[tuple[int, int, int, int]]:
        """Cores: mostly one rectangle from the corner, rarely one elsewhere or several."""
        grid = self.state.device.compute_with_storage_grid_size()
        x, y, full = self.below(grid.x), self.below(grid.y), self.between(1, grid.y - 1)
        elsewhere = [(self.between(0, x), self.between(0, y), x, y)]
        two = [(0, 0, grid.x - 1, full - 1), (0, full, x, full)]
        forms = (*[[(0, 0, x, y)]] * 14, *[elsewhere] * 3, *[two] * 2, [(0, 0, x, 0), (0, 2, x, 2)])
        return self.pick(forms)

    def shards(self, sides: Sequence[int], *, tiled: bool) -> str:
        """A sharded memory config that holds a tensor; rarely one whose shards are larger than they must be."""
        kind, buffer, turned = self.pick(KINDS), self.pick(("L1", "L1", "DRAM")), self.chance(0.15)
        where = [(0, 0, self.between(1, 7) - 1, 0)] if buffer == "DRAM" else self.rectangles()
        where = where[:1] if kind == "BLOCK" else where
        boxes = [(x1 - x0 + 1, y1 - y0 + 1) for x0, y0, x1, y1 in where]
        count = sum(across * down for across, down in boxes)
        block = boxes[0] if turned else boxes[0][::-1]
        high, wide = {"HEIGHT": (count, 1), "WIDTH": (1, count), "BLOCK": block}[kind]
        *most, rows, columns = (1, 1, *sides)
        row_unit = TILE if tiled else 1
        column_unit = TILE if tiled else 1 if kind == "HEIGHT" else self.pick((8, 8, 8, 16, 1))
        rows, columns = round_up(rows, row_unit) * prod(most), round_up(columns, row_unit)
        height = round_up(div_up(rows, high), row_unit) + (row_unit * self.below(3) if self.chance(0.1) else 0)
        shape = (height, round_up(div_up(columns, wide), column_unit))
        more = named(orientation='"COL_MAJOR"' * turned, buffer='"DRAM"' * (buffer == "DRAM"))
        return f'shards("{kind}", {shape}, {", ".join(map(str, where))}{more})'

    def memory_config(self, sides: Sequence[int], *, tiled: bool, sharded: float = 0.4) -> str:
        """A memory config."""
        return self.shards(sides, tiled=tiled) if self.chance(sharded) else self.pick((DRAM, DRAM, L1))

    @property
    def required(self) -> object:
        """The memory config that the result must have, where the call gives one whole; else None."""
        return self.evaluated(self.place) if self.place and self.place not in UNSPECIFIED else None

    def operand(
        self,
        suffix: str,
        sides: tuple[int, ...],
        dtype: str,
        *,
        layout: str = "TILE",
        where: str | None = None,
        kind: str = "",
    ) -> Operand:
        """A tensor of random numbers that is made in front of the call; without a place one on the host."""
        layout = "TILE" if dtype in BLOCKS else layout
        kind = kind or ("integers" if dtype in INTEGERS else "normal")
        host = f'ttsim.from_numpy(numbers({self.below(1000)}, {sides}, "{kind}"), ttsim.{dtype}, '
        host += f"layout=ttsim.{layout}_LAYOUT"
        values = np.asarray(self.evaluated(f"{host})").to_numpy(), np.float64)
        place = "" if where is None else named(device="device", memory_config=where)
        name = f"{self.name}{suffix}"
        self.operands.append(Operand(name, f"{name} = {host}{place})\n", values, dtype))
        return self.operands[-1]

    def call(self, *arguments: object) -> Self:
        """Begins the call of the operation, without keyword arguments."""
        self.arguments = list(map(str, arguments))
        return self

    def option(self, name: str, text: object) -> Self:
        """The call with a keyword argument, unless the text is empty."""
        if text not in ("", None):
            self.arguments.append(f"{name}={text}")
        return self

    def sometimes(self, probability: float, name: str, *choices: object) -> Self:
        """The call, perhaps with a keyword argument."""
        return self.option(name, self.pick(choices)) if self.chance(probability) else self

    def placed(
        self, sides: Sequence[int], *, tiled: bool, probability: float = 0.3, only: Sequence[str] | None = None
    ) -> Self:
        """The call, perhaps with a memory config for its result of a shape.

        ``only`` names the memory configs that a result must then have; with others the library chooses shards itself.
        """
        if self.chance(probability):
            unspecified = self.chance(0.05)
            self.place = self.pick(UNSPECIFIED) if unspecified else self.memory_config(sides, tiled=tiled, sharded=0.3)
        self.option("memory_config", self.place)
        if only is not None and self.place not in only:
            self.place = ""
        return self

    def typed(
        self, probability: float, choices: Sequence[str] = USUAL, *, allowed: bool = True, name: str = "dtype"
    ) -> Self:
        """The call, perhaps with a data type for its result."""
        if allowed and self.chance(probability):
            self.dtype = self.pick(choices)
        return self.option(name, self.dtype and f"ttsim.{self.dtype}")

    def taken_by_twin(self, source: Shadow) -> Self:
        """The call, rarely with a live tensor that takes the result: one like the source, with another buffer."""
        if self.chance(0.05):
            wanted, storage = (source.shape, source.dtype, source.layout), source.tensor._storage
            twin = self.tensor(lambda x: (x.shape, x.dtype, x.layout) == wanted and x.tensor._storage is not storage)
            self.target = "" if twin is None else twin.name
        if self.target:
            self.arguments = [text for text in self.arguments if not text.startswith("memory_config=")]
            self.place = ""
        return self.option("output_tensor", self.target)

    @property
    def operand_results(self) -> dict[str, Callable[[], Expected]]:
        """What the operands must be, by their names."""
        return {
            operand.name: partial(Expected, values=operand.values, dtypes=(operand.dtype,)) for operand in self.operands
        }

    def gives(
        self,
        values: Array | None = None,
        bound: Array | float = 0.0,
        *,
        expect: Callable[[], Expected] | None = None,
        text: str = "",
        whole: str = "",
        frees: tuple[str, ...] = (),
        **more: Any,
    ) -> Step:
        """The step with its expected result: computed late by ``expect``, or from the other fields of `Expected`.

        ``text`` is the call, where it is not `function(arguments)`; ``whole`` all statements, the assignment included.
        """
        if expect is None:
            fields: dict[str, Any] = {"values": values, "bound": bound, "place": self.required} | more
            expect = partial(Expected, **fields)
        call = text or f"ttsim.{self.function}({', '.join(self.arguments)})"
        statement = whole or (call if self.target else f"{self.name} = {call}")
        return Step(
            text="".join(operand.text for operand in self.operands) + statement,
            results={**self.operand_results, self.target or self.name: expect},
            frees=frees,
        )

    def fact(self, value: str, answer: object, before: str = "") -> Step:
        """The step that asks for the value of a text, which must be equal to an answer."""
        return Step(text=f"{before}{self.name}n = {value}", facts={f"{self.name}n": answer})


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that can be drawn."""

    name: str
    draw: Callable[..., Step | None]  # Takes a draft, and the tensor if the operation has ``accept``
    accept: Callable[[Shadow], bool] | None = None  # Filters the live tensors; None: the operation needs none
    anywhere: bool = False  # Whether the tensor may be on the host

    def __call__(self, draft: Draft) -> Step | None:
        """Draws a call; None where there is no tensor for it."""
        draft.function = self.name
        if self.accept is None:
            return self.draw(draft)
        source = draft.tensor(self.accept, anywhere=self.anywhere)
        return None if source is None else self.draw(draft, source)


OPERATIONS: Final[dict[str, Operation]] = {}  # by name; the modules of this package add theirs


def operation(*names: str) -> Callable[[Callable[[Draft], Step | None]], Callable[[Draft], Step | None]]:
    """Adds operations that one function draws; `Draft.function` says which."""

    def add(draw: Callable[[Draft], Step | None]) -> Callable[[Draft], Step | None]:
        OPERATIONS.update({name: Operation(name, draw) for name in names})
        return draw

    return add


def of_tensor(
    *names: str, accept: Callable[[Shadow], bool] = lambda shadow: True, anywhere: bool = False
) -> Callable[[Callable[[Draft, Shadow], Step | None]], Callable[[Draft, Shadow], Step | None]]:
    """Adds operations of a live tensor, which is drawn first; without one there is no step."""

    def add(draw: Callable[[Draft, Shadow], Step | None]) -> Callable[[Draft, Shadow], Step | None]:
        OPERATIONS.update({name: Operation(name, draw, accept, anywhere) for name in names})
        return draw

    return add


def is_float(x: Shadow) -> bool:
    """Whether a tensor holds floats."""
    return x.is_float


def is_image(x: Shadow) -> bool:
    """Whether a tensor of floats has the four axes of images."""
    return x.is_float and len(x.shape) == 4


def whole_numbers(numbers: Any) -> str:
    """The text of a tensor of int32 on the device."""
    return f"ttsim.from_numpy(np.array({np.asarray(numbers).tolist()}), ttsim.int32, device=device)"
