"""What random calls are drawn from: choices that can be replayed, the tensors that live on a device, and words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

import numpy as np

import ttsim
from device.memory.memory_config import TILE
from device.numbers.formats import Array, div_up, round_up

T = TypeVar("T")
P = ParamSpec("P")
StepT = TypeVar("StepT", bound="Step | None")

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
    """Choices that are drawn from a generator, or replayed from a record.

    A replayed choice that has become impossible turns into the nearest possible one, and a missing one into 0. The
    simplest option of every choice is therefore its first: shrinking a sequence means lowering numbers.

    Attributes:
        taken: The choices so far, as numbers.
    """

    def __init__(self, source: np.random.Generator | Sequence[int]) -> None:
        self._generator = source if isinstance(source, np.random.Generator) else None
        self._recorded: Iterator[int] = iter(() if isinstance(source, np.random.Generator) else source)
        self.taken: list[int] = []

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        if self._generator is None:
            number = min(next(self._recorded, 0), limit - 1)
        else:
            number = int(self._generator.integers(limit))
        self.taken.append(number)
        return number

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``."""
        return least + self.below(most - least + 1)

    def chance(self, probability: float) -> bool:
        """True with a probability, which counts in hundredths."""
        return self.below(100) >= 100 - round(100 * probability)

    def pick(self, options: Sequence[T]) -> T:
        """One of several options."""
        return options[self.below(len(options))]

    def pair(self, least: int, most: int) -> tuple[int, int]:
        """Two numbers from ``least`` to ``most``."""
        return self.between(least, most), self.between(least, most)

    def member(self, numbers: Sequence[int]) -> int:
        """One of several numbers, recorded as itself: removing others does not change the choice."""
        if self._generator is None:
            recorded = next(self._recorded, 0)
            number = recorded if recorded in numbers else numbers[-1]
        else:
            number = numbers[int(self._generator.integers(len(numbers)))]
        self.taken.append(number)
        return number


@dataclass(slots=True)
class Shadow:
    """A live tensor and its contents."""

    number: int  # Stays the same when other steps of the sequence are left out
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
    def tiled(self) -> bool:
        """Whether the tensor is in tiles."""
        return self.tensor.layout is ttsim.TILE_LAYOUT

    @property
    def layout(self) -> str:
        """Name of the layout."""
        return str(self.tensor.layout.name)

    @property
    def is_read(self) -> bool:
        """Whether the values are compared after every call: not those of tensors that only take room."""
        return bool(self.tensor.logical_volume() <= MOST_READ)

    @property
    def on_device(self) -> bool:
        """Whether the tensor lives on the device."""
        return self.tensor.device() is not None

    @property
    def is_float(self) -> bool:
        """Whether the tensor holds floats."""
        return self.dtype in FLOATS

    @property
    def is_block(self) -> bool:
        """Whether the tensor holds block floats."""
        return self.dtype in BLOCKS


@dataclass(slots=True)
class State:
    """What a sequence has on its device."""

    names: dict[str, Any]  # The names of the script, the prelude's included
    shadows: dict[str, Shadow] = field(default_factory=dict)  # Live tensors by name
    # Convolutions that returned prepared weights, by the name of the weights
    prepared: dict[str, Any] = field(default_factory=dict)
    from_host: bool = False  # Whether convolutions take tensors on the host, too
    with_twins: bool = False  # Whether convolutions tell other ways to be made

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


Results = Mapping[str, Callable[[], Expected]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    text: str  # Python that makes the call and names the tensors that it returns
    # What each tensor that the call returns or writes must be, by name; computed after the call
    results: Results = field(default_factory=dict)
    frees: tuple[str, ...] = ()  # Names of tensors that the call releases, or may release
    # Other answers of the call, by the name that the text gives them: what must be equal
    facts: Mapping[str, object] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()  # Names of results whose values are the library's own matter, such as prepared weights
    # Why no result can be right; a strict device must refuse the call. Empty for a possible call.
    contradictory: str = ""
    # Other ways to make the call: Python that assigns `twin`, and whether all bits are the same, by what is different
    twins: Mapping[str, tuple[str, bool]] = field(default_factory=dict)


def named(**arguments: object) -> str:
    """Keyword arguments as text, each after a comma; empty ones are left out."""
    return "".join(f", {name}={text}" for name, text in arguments.items() if text not in ("", None))


class Draft(Choices):
    """The choices of one step, and the tensors that it may use."""

    def __init__(self, source: np.random.Generator | Sequence[int], state: State, number: int) -> None:
        super().__init__(source)
        self.state, self.number = state, number

    @property
    def name(self) -> str:
        """The name of the step's first result."""
        return f"t{self.number}"

    def tensor(self, accept: Callable[[Shadow], bool] = lambda shadow: True) -> Shadow | None:
        """A live tensor on the device with axes and numbers of its own; None if there is none."""
        return self.shadow(
            lambda shadow: shadow.on_device and not shadow.opaque and bool(shadow.shape) and accept(shadow)
        )

    def shadow(self, accept: Callable[[Shadow], bool] = lambda shadow: True) -> Shadow | None:
        """A live tensor, wherever it is; None if there is none."""
        accepted = {shadow.number: shadow for shadow in self.state.shadows.values() if accept(shadow)}
        return accepted[self.member(list(accepted))] if accepted else None

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
            largest = max(sides)
            sides[sides.index(largest)] = max(1, largest // 2)
        return tuple(sides)

    def dtype(self, *, rare: float = 0.03) -> str:
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
        x, y = self.below(grid.x), self.below(grid.y)
        form = self.below(100)
        if form < 70:
            return [(0, 0, x, y)]
        if form < 85:
            return [(self.between(0, x), self.between(0, y), x, y)]
        if form < 95:
            full = self.between(1, grid.y - 1)
            return [(0, 0, grid.x - 1, full - 1), (0, full, x, full)]
        return [(0, 0, x, 0), (0, 2, x, 2)]

    def shards(self, sides: Sequence[int], *, tiled: bool) -> str:
        """A sharded memory config that holds a tensor; rarely one whose shards are larger than they must be."""
        kind, buffer = self.pick(KINDS), self.pick(("L1", "L1", "DRAM"))
        turned = self.chance(0.15)
        if buffer == "DRAM":
            where = [(0, 0, self.between(1, 7) - 1, 0)]
        else:
            where = self.rectangles()
            where = where[:1] if kind == "BLOCK" else where
        *most, rows, columns = (1, 1, *sides)
        if tiled:
            rows, columns = round_up(rows, TILE), round_up(columns, TILE)
        rows *= prod(most)
        x0, y0, x1, y1 = where[0]
        count = sum((x1 - x0 + 1) * (y1 - y0 + 1) for x0, y0, x1, y1 in where)
        across, down = x1 - x0 + 1, y1 - y0 + 1
        block = (across, down) if turned else (down, across)
        high, wide = {"HEIGHT": (count, 1), "WIDTH": (1, count), "BLOCK": block}[kind]
        row_unit = TILE if tiled else 1
        column_unit = TILE if tiled else 1 if kind == "HEIGHT" else self.pick((8, 8, 8, 16, 1))
        shard = [round_up(div_up(rows, high), row_unit), round_up(div_up(columns, wide), column_unit)]
        if self.chance(0.1):
            shard[0] += row_unit * self.between(0, 2)
        text = f'shards("{kind}", ({shard[0]}, {shard[1]}), {", ".join(map(str, where))}'
        text += ', orientation="COL_MAJOR"' if turned else ""
        return text + (', buffer="DRAM")' if buffer == "DRAM" else ")")

    def place(self, sides: Sequence[int], *, tiled: bool, sharded: float = 0.4) -> str:
        """A memory config."""
        return self.shards(sides, tiled=tiled) if self.chance(sharded) else self.pick((DRAM, DRAM, L1))

    def some_place(self, sides: Sequence[int], *, tiled: bool, probability: float = 0.3) -> str:
        """A memory config for a result; empty to let the library choose."""
        if not self.chance(probability):
            return ""
        return self.pick(UNSPECIFIED) if self.chance(0.05) else self.place(sides, tiled=tiled, sharded=0.3)

    def required(self, place: str) -> object:
        """The memory config that a result must have, where the text gives one whole; else None."""
        return self.evaluated(place) if place and place not in UNSPECIFIED else None

    def twin(self, like: Shadow, probability: float = 0.05) -> Shadow | None:
        """Rarely a live tensor that may take a result: of the same shape, data type and layout, with another buffer."""
        if not self.chance(probability):
            return None
        wanted = (like.shape, like.dtype, like.layout)
        return self.tensor(
            lambda other: (
                (other.shape, other.dtype, other.layout) == wanted and other.tensor._storage is not like.tensor._storage
            )
        )

    def operand(
        self, suffix: str, sides: tuple[int, ...], dtype: str, *, layout: str = "TILE", where: str | None = None
    ) -> "Operand":
        """A tensor of random numbers that is made in front of a call; without a place one on the host."""
        layout = "TILE" if dtype in BLOCKS else layout
        kind = "integers" if dtype in INTEGERS else "normal"
        name = f"{self.name}{suffix}"
        host = f'ttsim.from_numpy(numbers({self.below(1000)}, {sides}, "{kind}"), ttsim.{dtype}, '
        host += f"layout=ttsim.{layout}_LAYOUT"
        values = np.asarray(self.evaluated(f"{host})").to_numpy(), np.float64)
        place = "" if where is None else named(device="device", memory_config=where)
        return Operand(name, f"{name} = {host}{place})\n", values, dtype)

    def call(self, function: str, *arguments: object) -> "CallText":
        """A call of a function, without its keyword arguments."""
        return CallText(self, function, list(map(str, arguments)))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that is made in front of a call."""

    name: str
    text: str  # The line that makes the tensor
    values: Array  # float64 of the contents
    dtype: str

    def __str__(self) -> str:
        return self.name

    @property
    def result(self) -> Results:
        """What the tensor must be, by its name."""
        expected = Expected(values=self.values, dtypes=(self.dtype,))
        return {self.name: lambda: expected}


@dataclass(slots=True)
class CallText:
    """A call whose arguments are being drawn."""

    draft: Draft
    function: str
    arguments: list[str]
    dtype: str = ""  # The data type that the call asks for; empty for none
    place: str = ""  # The memory config that it asks for; empty for none
    operands: list[Operand] = field(default_factory=list)
    target: Shadow | None = None  # The live tensor that takes the result

    def option(self, name: str, text: object) -> Self:
        """The call with a keyword argument, unless the text is empty."""
        if text not in ("", None):
            self.arguments.append(f"{name}={text}")
        return self

    def sometimes(self, probability: float, name: str, *choices: object) -> Self:
        """The call, perhaps with a keyword argument."""
        return self.option(name, self.draft.pick(choices)) if self.draft.chance(probability) else self

    def placed(self, sides: Sequence[int], *, tiled: bool, probability: float = 0.3) -> Self:
        """The call, perhaps with a memory config for its result of a shape."""
        self.place = self.draft.some_place(sides, tiled=tiled, probability=probability)
        return self.option("memory_config", self.place)

    def typed(
        self, probability: float, choices: Sequence[str] = USUAL, *, allowed: bool = True, name: str = "dtype"
    ) -> Self:
        """The call, perhaps with a data type for its result."""
        if allowed and self.draft.chance(probability):
            self.dtype = self.draft.pick(choices)
        return self.option(name, self.dtype and f"ttsim.{self.dtype}")

    def taken_by_twin(self, source: Shadow) -> Self:
        """The call, rarely with a live tensor that takes the result."""
        self.target = self.draft.twin(source)
        if self.target is not None:
            self.arguments = [text for text in self.arguments if not text.startswith("memory_config=")]
            self.place = ""
        return self.option("output_tensor", self.target)

    def takes(self, operand: Operand) -> Operand:
        """Makes an operand in front of the call."""
        self.operands.append(operand)
        return operand

    def gives(
        self,
        values: Array | None = None,
        bound: Array | float = 0.0,
        *,
        expect: Callable[[], Expected] | None = None,
        text: str = "",
        frees: tuple[str, ...] = (),
        **more: Any,
    ) -> Step:
        """The step with its expected result: computed late by ``expect``, or from the other fields of `Expected`.

        ``text`` is the call, where it is not `function(arguments)`.
        """
        fields: dict[str, Any] = {"place": self.draft.required(self.place)} | more
        expected = None if expect is not None else Expected(values=values, bound=bound, **fields)
        name = self.draft.name if self.target is None else self.target.name
        results = {label: result for operand in self.operands for label, result in operand.result.items()}
        call = text or f"ttsim.{self.function}({', '.join(self.arguments)})"
        before = "".join(operand.text for operand in self.operands)
        return Step(
            text=before + (call if self.target is not None else f"{name} = {call}"),
            results={**results, name: expect or (lambda: expected)},  # type: ignore[dict-item,return-value]
            frees=frees,
        )


def of_tensor(
    accept: Callable[[Shadow], bool] = lambda shadow: True, *, anywhere: bool = False
) -> Callable[[Callable[Concatenate[Draft, Shadow, P], StepT]], Callable[Concatenate[Draft, P], StepT | None]]:
    """Makes a function of a draft and a live tensor one of a draft: it draws the tensor, or makes no step.

    ``accept`` filters the tensors; ``anywhere`` includes tensors on the host.
    """

    def decorate(
        draw: Callable[Concatenate[Draft, Shadow, P], StepT],
    ) -> Callable[Concatenate[Draft, P], StepT | None]:
        def whole(draft: Draft, /, *more: P.args, **options: P.kwargs) -> StepT | None:
            source = draft.shadow(lambda x: not x.opaque and accept(x)) if anywhere else draft.tensor(accept)
            return None if source is None else draw(draft, source, *more, **options)

        return whole

    return decorate
