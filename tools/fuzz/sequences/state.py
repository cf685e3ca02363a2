"""The device of a sequence, its live tensors, and float64 shadows of what the tensors hold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.fuzz.sequences.choices import Choices

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
