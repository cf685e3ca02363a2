"""The arguments of a call out of a layer's plain names."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from device.cores import CoreGrid, CoreRangeSet
from device.errors import ArgumentError, shown
from device.memory.memory_config import Layout, TensorMemoryLayout
from ttsim.types.activations import UnaryOpType, UnaryWithParam
from ttsim.types.compute_config import (
    MathFidelity,
    ThrottleLevel,
    WormholeComputeKernelConfig,
    init_device_compute_kernel_config,
)
from ttsim.types.conv_config import (
    Conv2dConfig,
    Conv2dDRAMSliceHeight,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    Conv2dSliceConfig,
    PaddingMode,
)
from ttsim.types.dtypes import DataType
from ttsim.types.layer import Layer, Setting

Member = TypeVar("Member", bound=Enum)
_GRID_SIZE: Final = re.compile(r"([0-9]{1,3})x([0-9]{1,3})")
SLICE_AXES = {"H": Conv2dDRAMSliceHeight, "W": Conv2dDRAMSliceWidth}


def member(kind: type[Member], field: str, value: Setting) -> Member:
    """The member of an enumeration by its name, in either case.

    Raises:
        ArgumentError: There is none; the message lists the names if they are few.
    """
    names = {name.lower(): name for name in kind.__members__}
    name = names.get(str(value).lower())
    if name is None:
        known = f"one of {', '.join(names.values())}" if len(names) <= 16 else f"a name of {kind.__name__}"
        raise ArgumentError(f"{field} must be {known}, not {shown(value)}")
    return kind[name]


def dtype(name: Setting, field: str = "dtype") -> DataType:
    """The data type of that name."""
    return member(DataType, field, name)


def core_grid(value: Setting) -> CoreRangeSet:
    """The cores of a grid from (0, 0) on, written columns by rows: "8x4".

    Raises:
        ArgumentError: It is written otherwise, or has no core.
    """
    size = _GRID_SIZE.fullmatch(str(value))
    if size is None or not (int(size[1]) and int(size[2])):
        raise ArgumentError(f"core_grid must be COLUMNSxROWS of at least 1x1, not {shown(value)}; such as '8x4'")
    return CoreGrid(x=int(size[1]), y=int(size[2])).core_range_set()


CONFIG_FIELDS: Mapping[str, Callable[[Setting], Any]] = {
    "weights_dtype": lambda value: dtype(value, "weights_dtype"),
    "activation": lambda value: UnaryWithParam(member(UnaryOpType, "activation", value)),
    "shard_layout": lambda value: member(TensorMemoryLayout, "shard_layout", value),
    "output_layout": lambda value: member(Layout, "output_layout", value),
    "padding_mode": lambda value: member(PaddingMode, "padding_mode", value),
    "core_grid": core_grid,
}
COMPUTE_FIELDS: Mapping[str, Callable[[Setting], Any]] = {
    "math_fidelity": lambda value: member(MathFidelity, "math_fidelity", value),
    "throttle_level": lambda value: member(ThrottleLevel, "throttle_level", value),
}


def conv_config(layer: Layer) -> Conv2dConfig | None:
    """The Conv2dConfig of a layer, None if it sets nothing.

    A core_grid is used: override_sharding_config, without which the real library does not look at one, is set with it
    unless the layer says otherwise.

    Raises:
        ArgumentError: An enumeration has no member of that name, or a core_grid is none.
        ArgumentTypeError: A field is unknown, or its value is of the wrong type.
    """
    settings = {key: CONFIG_FIELDS.get(key, as_it_is)(value) for key, value in layer.config.items()}
    if "core_grid" in settings:
        settings.setdefault("override_sharding_config", True)
    return Conv2dConfig(**settings) if settings else None


def compute_config(layer: Layer, arch: object) -> WormholeComputeKernelConfig | None:
    """The compute kernel config of a layer for an architecture, None if it sets nothing; raises as `conv_config`."""
    settings = {key: COMPUTE_FIELDS.get(key, as_it_is)(value) for key, value in layer.compute.items()}
    if not settings:
        return None
    WormholeComputeKernelConfig(**settings)  # refuses by name what is no field
    return init_device_compute_kernel_config(arch, **settings)


def as_it_is(value: Setting) -> Any:
    """A plain value."""
    return value


def slice_config(layer: Layer) -> Conv2dSliceConfig | None:
    """The slice config of a layer.

    Raises:
        ArgumentError: It is neither "l1_full" nor "H:n" nor "W:n".
    """
    if layer.slice is None:
        return None
    if layer.slice.lower() == "l1_full":
        return Conv2dL1FullSliceConfig
    axis, _, count = layer.slice.partition(":")
    if axis.upper() not in SLICE_AXES or not count.isdecimal():
        raise ArgumentError(
            f"slice must be 'l1_full', 'H:n' or 'W:n' with n slices (0: as few as fit), not {shown(layer.slice)}"
        )
    return Conv2dSliceConfig(slice_type=SLICE_AXES[axis.upper()], num_slices=int(count))
