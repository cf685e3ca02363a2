"""The device of a sequence, its live tensors, and float64 shadows of what the tensors hold."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

import ttsim
from device.memory.memory_config import TILE
from device.numbers.formats import Array, div_up, round_up

T = TypeVar("T")
P = ParamSpec("P")
StepT = TypeVar("StepT", bound="Step | None")


class Choices:
    """The choices of one step: drawn from a generator, or replayed from a record.

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

    def some(self, options: Sequence[T], probability: float) -> list[T]:
        """Some of several options, each with a probability."""
        return [option for option in options if self.chance(probability)]

    def member(self, numbers: Sequence[int]) -> int:
        """One of several numbers, recorded as itself: removing others does not change the choice."""
        if self._generator is None:
            recorded = next(self._recorded, 0)
            number = recorded if recorded in numbers else numbers[-1]
        else:
            number = numbers[int(self._generator.integers(len(numbers)))]
        self.taken.append(number)
        return number


PRELUDE: Final = """\
import copy
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


@dataclass(slots=True)
class Shadow:
    """A live tensor and what it holds."""

    number: int  # Stays the same when other steps of the sequence are left out
    name: str  # The tensor's name in the script
    tensor: ttsim.Tensor
    values: Array  # float64 (of integers, too); what the tensor holds, exactly. Nothing of a tensor that is not read.
    # The values are the library's own matter: prepared weights, room that is taken, and infinities
    opaque: bool = False

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
        """Whether it is in tiles."""
        return self.tensor.layout is ttsim.TILE_LAYOUT

    @property
    def layout(self) -> str:
        """Name of the layout."""
        return str(self.tensor.layout.name)

    @property
    def is_read(self) -> bool:
        """Whether its values are compared after every call: not those of tensors that only take room."""
        return bool(self.tensor.logical_volume() <= MOST_READ)

    @property
    def on_device(self) -> bool:
        """Whether it lives on the device."""
        return self.tensor.device() is not None

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return self.dtype in FLOATS

    @property
    def is_block(self) -> bool:
        """Whether it holds block floats."""
        return self.dtype in BLOCKS


MOST_READ: Final = 500_000  # elements of a tensor
FLOATS: Final = ("bfloat16", "float32", "bfloat8_b", "bfloat4_b")
BLOCKS: Final = ("bfloat8_b", "bfloat4_b")
INTEGERS: Final = ("uint32", "int32", "uint16", "uint8")


def exactly(tensor: ttsim.Tensor) -> Array:
    """The values of a tensor in float64."""
    return np.asarray(tensor.to_numpy(), np.float64)


@dataclass(slots=True)
class State:
    """What a sequence has on its device."""

    names: dict[str, Any]  # What the script has named, the prelude included
    shadows: dict[str, Shadow]  # Live tensors by name
    prepared: dict[str, Any]  # Convolutions that returned prepared weights, by the name of the weights

    @property
    def device(self) -> ttsim.Device:
        """The device."""
        device: ttsim.Device = self.names["device"]
        return device

    def sharing(self, name: str) -> list[Shadow]:
        """The live tensors that share the buffer of a tensor, itself included."""
        shadow = self.shadows[name]
        if not shadow.on_device:
            return [shadow]
        buffer = shadow.tensor._storage
        return [other for other in self.shadows.values() if other.tensor._storage is buffer]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a step is drawn from: choices, and the tensors that there are."""

    choices: Choices
    state: State  # The device and its tensors
    number: int  # The step's number; its results are named by it

    @property
    def name(self) -> str:
        """The name of the step's first result."""
        return f"t{self.number}"

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of the device's cores."""
        grid = self.state.device.compute_with_storage_grid_size()
        return grid.x, grid.y

    def tensor(self, accept: Callable[[Shadow], bool] = lambda shadow: True) -> Shadow | None:
        """A live tensor on the device with axes and numbers of its own; None if there is none."""
        return self.shadow(
            lambda shadow: shadow.on_device and not shadow.opaque and bool(shadow.shape) and accept(shadow)
        )

    def shadow(self, accept: Callable[[Shadow], bool]) -> Shadow | None:
        """A live tensor, wherever it is; None if there is none."""
        found = {shadow.number: shadow for shadow in self.state.shadows.values() if accept(shadow)}
        return found[self.choices.member(list(found))] if found else None

    def evaluated(self, text: str) -> Any:
        """What a text of the script gives."""
        return eval(text, self.state.names)


KINDS: Final = ("HEIGHT", "WIDTH", "BLOCK")
SIDES: Final = (32, 1, 2, 3, 8, 16, 24, 31, 33, 40, 64, 96, 100, 128)
DRAM: Final = "ttsim.DRAM_MEMORY_CONFIG"
L1: Final = "ttsim.L1_MEMORY_CONFIG"
UNSPECIFIED: Final = tuple(f"ttsim.L1_{kind}_SHARDED_MEMORY_CONFIG" for kind in KINDS)
MOST_ELEMENTS: Final = 60_000


def shape(draft: Draft) -> tuple[int, ...]:
    """A shape of one to five sides, mostly an image."""
    choices = draft.choices
    rank = choices.pick((4, 4, 4, 4, 3, 2, 2, 5, 1))
    sides = [choices.pick((1, 1, 2, 3, 4)) for _ in range(rank - 2)]
    sides += [choices.pick(SIDES) for _ in range(min(rank, 2))]
    if rank == 4 and choices.chance(0.5):
        sides = [choices.pick((1, 1, 2, 3)), choices.between(1, 16), choices.between(1, 16), sides[-1]]
    while prod(sides) > MOST_ELEMENTS:
        largest = max(sides)
        sides[sides.index(largest)] = max(1, largest // 2)
    return tuple(sides)


def dtype(draft: Draft, *, rare: float = 0.03) -> str:
    """A data type: floats, and rarely integers."""
    if draft.choices.chance(rare):
        return draft.choices.pick(INTEGERS)
    return draft.choices.pick(("bfloat16", "bfloat16", "bfloat16", "bfloat16", *FLOATS[1:], *FLOATS[1:3]))


def layout(draft: Draft, data_type: str) -> str:
    """The name of a layout that a data type may have."""
    return "TILE_LAYOUT" if data_type in BLOCKS else draft.choices.pick(("TILE_LAYOUT", "ROW_MAJOR_LAYOUT"))


def matrix(sides: Sequence[int], *, tiled: bool) -> tuple[int, int]:
    """Rows and columns of a tensor as the device stores it."""
    *most, rows, columns = (1, 1, *sides)
    if tiled:
        rows, columns = round_up(rows, TILE), round_up(columns, TILE)
    return prod(most) * rows, columns


def rectangles(draft: Draft) -> list[tuple[int, int, int, int]]:
    """Cores: mostly one rectangle from the corner, rarely one elsewhere or several."""
    choices, (columns, rows) = draft.choices, draft.grid
    x, y = choices.below(columns), choices.below(rows)
    form = choices.below(100)
    if form < 70:
        return [(0, 0, x, y)]
    if form < 85:
        left, top = choices.between(0, x), choices.between(0, y)
        return [(left, top, x, y)]
    if form < 95:
        full = choices.between(1, rows - 1)
        return [(0, 0, columns - 1, full - 1), (0, full, x, full)]
    return [(0, 0, x, 0), (0, 2, x, 2)]


def shards(draft: Draft, sides: Sequence[int], *, tiled: bool, buffers: Sequence[str] = ("L1", "L1", "DRAM")) -> str:
    """A sharded memory config that holds a tensor, as text; rarely one whose shards are larger than they must be."""
    choices = draft.choices
    kind, buffer = choices.pick(KINDS), choices.pick(buffers)
    turned = choices.chance(0.15)
    if buffer == "DRAM":
        banks = choices.between(1, 7)
        where = [(0, 0, banks - 1, 0)]
    else:
        where = rectangles(draft)
        where = where[:1] if kind == "BLOCK" else where
    rows, columns = matrix(sides, tiled=tiled)
    x0, y0, x1, y1 = where[0]
    count = sum((x1 - x0 + 1) * (y1 - y0 + 1) for x0, y0, x1, y1 in where)
    across, down = x1 - x0 + 1, y1 - y0 + 1
    high, wide = {"HEIGHT": (count, 1), "WIDTH": (1, count), "BLOCK": (across, down) if turned else (down, across)}[
        kind
    ]
    row_unit = TILE if tiled else 1
    column_unit = TILE if tiled else 1 if kind == "HEIGHT" else choices.pick((8, 8, 8, 16, 1))
    shard = [round_up(div_up(rows, high), row_unit), round_up(div_up(columns, wide), column_unit)]
    if choices.chance(0.1):
        shard[0] += row_unit * choices.between(0, 2)
    text = f'shards("{kind}", ({shard[0]}, {shard[1]}), {", ".join(map(str, where))}'
    text += ', orientation="COL_MAJOR"' if turned else ""
    return text + (', buffer="DRAM")' if buffer == "DRAM" else ")")


def place(draft: Draft, sides: Sequence[int], *, tiled: bool, sharded: float = 0.4) -> str:
    """A memory config as text."""
    if draft.choices.chance(sharded):
        return shards(draft, sides, tiled=tiled)
    return draft.choices.pick((DRAM, DRAM, L1))


def maybe_place(draft: Draft, sides: Sequence[int], *, tiled: bool, probability: float = 0.3) -> str:
    """A memory config for a result as text; empty to let the library choose."""
    if not draft.choices.chance(probability):
        return ""
    if draft.choices.chance(0.05):
        return draft.choices.pick(UNSPECIFIED)
    return place(draft, sides, tiled=tiled, sharded=0.3)


def asked(draft: Draft, text: str) -> object:
    """The memory config that a result must have, where the text gives one whole; else None."""
    if not text or text in UNSPECIFIED:
        return None
    return draft.evaluated(text)


def named(**arguments: str | None) -> str:
    """Keyword arguments as text, each after a comma; empty ones are left out."""
    return "".join(f", {name}={text}" for name, text in arguments.items() if text)


def in_rows(data_type: str) -> str:
    """The data type that a tensor has in rows: block floats become bfloat16."""
    return "bfloat16" if data_type in BLOCKS else data_type


def twin(draft: Draft, like: Shadow, probability: float = 0.05) -> Shadow | None:
    """Rarely a live tensor that may take a result: of the same shape, data type and layout, with another buffer."""
    if not draft.choices.chance(probability):
        return None

    def takes(other: Shadow) -> bool:
        same = (other.shape, other.dtype, other.layout) == (like.shape, like.dtype, like.layout)
        return same and other.tensor._storage is not like.tensor._storage

    return draft.tensor(takes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a tensor must be after a call."""

    values: Array | None = None  # float64 by the definition of the operation; None where only the shape is defined
    bound: Array | float = 0.0  # The largest error of each element, or one for all
    shape: tuple[int, ...] = ()  # The shape, where ``values`` is None
    dtypes: tuple[str, ...] = ()  # Names of the data types that it may have
    layout: str | None = None  # Name of the layout; None for either
    place: Any = None  # Its memory config; None where the library chooses
    norm: float | None = None  # The largest relative L2 error of all elements together; None for no such limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    text: str  # Python that makes the call and names the tensors that it returns
    # What each tensor that the call returns or writes must be, by name; computed after the call
    results: Mapping[str, Callable[[], Expected]] = field(default_factory=dict)
    frees: tuple[str, ...] = ()  # Names of tensors that the call releases, or may release
    # What else the call says, by the name that the text gives it: what must be equal
    facts: Mapping[str, object] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()  # Names of results whose values are the library's own matter, such as prepared weights
    # Why no result can be right; a strict device must refuse the call. Empty for a possible call.
    contradictory: str = ""


def of_tensor(
    accept: Callable[[Shadow], bool] = lambda shadow: True, *, anywhere: bool = False
) -> Callable[[Callable[Concatenate[Draft, Shadow, P], StepT]], Callable[Concatenate[Draft, P], StepT | None]]:
    """Makes a function of a draft and a live tensor one of a draft: it draws the tensor, and no step without any.

    Args:
        accept: Which tensors may be drawn.
        anywhere: Whether tensors on the host may be drawn as well.
    """

    def decorate(
        draw: Callable[Concatenate[Draft, Shadow, P], StepT],
    ) -> Callable[Concatenate[Draft, P], StepT | None]:
        def whole(draft: Draft, /, *more: P.args, **named: P.kwargs) -> StepT | None:
            source = draft.shadow(lambda one: not one.opaque and accept(one)) if anywhere else draft.tensor(accept)
            return None if source is None else draw(draft, source, *more, **named)

        return whole

    return decorate


class Operand(NamedTuple):
    """A tensor that is made in front of a call."""

    name: str
    text: str  # The line that makes the tensor
    values: Array  # float64 of what it holds
    dtype: str  # Its data type

    @property
    def result(self) -> Callable[[], Expected]:
        """What the tensor must be."""
        made = Expected(values=self.values, dtypes=(self.dtype,))
        return lambda: made


def operand(
    draft: Draft, suffix: str, sides: tuple[int, ...], dtype: str, *, layout: str = "TILE", where: str | None = None
) -> Operand:
    """A tensor of random numbers.

    Args:
        suffix: What its name ends in.
        dtype: Its data type.
        where: Its memory config as text; None for a tensor on the host.
    """
    layout = "TILE" if dtype in BLOCKS else layout
    kind = "integers" if dtype in INTEGERS else "normal"
    numbers = f'numbers({draft.choices.below(1000)}, {sides}, "{kind}")'
    name = f"{draft.name}{suffix}"
    host = f"ttsim.from_numpy({numbers}, ttsim.{dtype}, layout=ttsim.{layout}_LAYOUT"
    values = np.asarray(draft.evaluated(f"{host})").to_numpy(), np.float64)
    place = "" if where is None else named(device="device", memory_config=where)
    return Operand(name, f"{name} = {host}{place})\n", values, dtype)
