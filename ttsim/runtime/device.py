"""Devices under ttnn's names: opening, closing, and what they say about themselves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from device.cores import CoreCoord, CoreGrid
from device.errors import ArgumentError, ArgumentTypeError, shown
from device.events import Event, OperationBegin, OperationEnd
from device.machine import Machine
from device.plan import Plan
from device.spec.device_spec import DeviceSpec, catalog_names
from ops.meaning import Meanings
from ops.meanings import MEANINGS, load_spec
from ttsim.runtime.session import current, remember
from ttsim.runtime.turns import in_turn
from ttsim.types.signature import require_type, require_type_or_none, required_integer

DEFAULT_L1_SMALL_SIZE = 0
DEFAULT_TRACE_REGION_SIZE = 0
SPEC_VARIABLE = "TTSIM_DEVICE"

Values = Literal["exact", "fast", "off"]


class Arch(Enum):
    """Architectures; the names are ttnn's."""

    WORMHOLE_B0 = 2
    BLACKHOLE = 3
    Invalid = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCall:
    """A call that a device carried out, as profiles remember it.

    Attributes:
        function: The function of the library that was called.
        plan: What it did.
        ran: Names of the device operations that ran, in order: a tensor that is to be moved stays where it is if there
            is no better place.
        useful_flops: Multiplications and additions of its definition; None if it has none of its own.
    """

    function: str
    plan: Plan
    ran: tuple[str, ...]
    useful_flops: int | None = None


class Device:
    """One simulated device; ``open_device`` makes it. Also a context manager that closes it.

    Attributes:
        device_id: The number it was opened with.
        machine: Memories, allocator and program cache.
        values: "exact" computes what the device would, bit for bit; "fast" with BLAS, differing in the last places;
            "off" plans memory and cycles only, and results have no values.
        cycles: Whether cycles are estimated.
        strict: Whether calls that the real library accepts and gets wrong are refused.
        suggestions: Whether the error of a call that does not fit says what would.
        meanings: What the works of its plans mean: a table of one's own may know more operations than the project.
        profilers: Lists to which every call that ran is appended.
        functions: Functions of the library that run, the user's call first.
    """

    def __init__(
        self,
        spec: str | Path | DeviceSpec,
        *,
        device_id: int = 0,
        l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
        values: Values = "exact",
        cycles: bool = True,
        strict: bool = True,
        suggestions: bool = True,
        meanings: Meanings = MEANINGS,
    ) -> None:
        if not isinstance(values, str) or values not in get_args(Values):
            known = ", ".join(get_args(Values))
            raise ArgumentError(f"open_device: values must be one of {known}, not {shown(values)}")
        require_type("open_device", bool, cycles=cycles, strict=strict, suggestions=suggestions)
        small = required_integer("open_device", "l1_small_size", l1_small_size)
        self.device_id = required_integer("open_device", "device_id", device_id)
        if self.device_id < 0:
            raise ArgumentError(f"open_device: device_id must be at least 0, not {device_id}; 0 is usual")
        self.machine = Machine(load_spec(spec), l1_small_bytes=small)
        self.values = values
        self.cycles = cycles
        self.strict = strict
        self.suggestions = suggestions
        self.meanings = meanings
        self.profilers: list[list[RanCall]] = []
        self.functions: list[str] = []

    @property
    def spec(self) -> DeviceSpec:
        """What the device is made of."""
        return self.machine.spec

    def listened(self) -> Machine:
        """The machine, with every running graph capture listening: to be used for whatever a capture should see."""
        for capture in current().captures:
            capture.listen(self.machine)
        return self.machine

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """Marks what happens inside as a function of the library, for whoever listens."""
        machine = self.listened()
        machine.record(OperationBegin(name))
        before = tuple(self.functions)
        self.functions.append(name)
        try:
            yield
        finally:
            self.functions[:] = before
            machine.record(OperationEnd(name))

    @property
    def running(self) -> str:
        """The function of the library that the user called and that has not returned yet; empty if there is none."""
        return self.functions[0] if self.functions else ""

    @contextmanager
    def recording(self, events: list[Event]) -> Iterator[Machine]:
        """Appends what happens on the device meanwhile to ``events``; gives the machine, as ``listened`` does."""
        machine = self.listened()
        machine.recorders.append(events)
        try:
            yield machine
        finally:
            machine.recorders[:] = [one for one in machine.recorders if one is not events]

    def id(self) -> int:
        """The number it was opened with."""
        return self.device_id

    def arch(self) -> Arch:
        """The architecture; Invalid for a description with a name of its own."""
        return Arch.__members__.get(self.spec.arch.upper(), Arch.Invalid)

    @property
    def core_grid(self) -> CoreGrid:
        """Columns and rows of worker cores."""
        return CoreGrid(x=self.spec.grid.cols, y=self.spec.grid.rows)

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Columns and rows of worker cores, as a coordinate."""
        return CoreCoord(self.spec.grid.cols, self.spec.grid.rows)

    def dram_grid_size(self) -> CoreCoord:
        """DRAM banks, in one row."""
        return CoreCoord(self.spec.dram.banks, 1)

    def get_num_devices(self) -> int:
        """One: meshes of devices are not simulated."""
        return 1

    def num_program_cache_entries(self) -> int:
        """Programs in the program cache."""
        return len(self.machine.program_cache)

    def enable_program_cache(self) -> None:
        """Keeps programs from now on, as a device does that nobody told otherwise."""
        self.machine.keeps_programs = True

    def clear_program_cache(self) -> None:
        """Forgets all programs and frees what they keep in memory."""
        in_turn(self.machine, self.listened().clear_program_cache)

    def disable_and_clear_program_cache(self) -> None:
        """Forgets all programs and keeps none: what they hold in memory is freed when they have run."""
        self.clear_program_cache()
        self.machine.keeps_programs = False

    def close(self) -> None:
        """Frees everything, when the calls of other threads are done; closing twice is harmless."""
        in_turn(self.machine, self.machine.close)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the device."""
        self.close()

    def __reduce__(self) -> str:
        """Raises ArgumentTypeError: a device is neither copied nor written to a file."""
        raise ArgumentTypeError("a device cannot be copied or pickled; bring tensors to the host first, with .cpu()")

    def __repr__(self) -> str:
        """Name and grid."""
        grid = self.spec.grid
        return f"MeshDevice(1x1 grid, 1 devices: {self.spec.name}, {grid.cols}x{grid.rows} cores)"


MeshDevice = Device


def open_device(
    device_id: int = 0,
    *,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    spec: str | Path | DeviceSpec | None = None,
    values: Values = "exact",
    cycles: bool = True,
    strict: bool = True,
    suggestions: bool = True,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    num_command_queues: int = 1,
    dispatch_core_config: object = None,
) -> Device:
    """Opens a simulated device; every call gives a new one, whatever its number.

    Args:
        device_id: A number, for display.
        l1_small_size: Bytes of L1 set apart on every core for the index tensors of convolutions; 32768 is usual.
        spec: Name of a catalog entry, path of a TOML file, or a description; None for the environment's TTSIM_DEVICE,
            or else "wormhole_n150".
        values: "exact" computes results bit for bit, "fast" with BLAS (last places differ), "off" leaves them out, for
            planning only.
        cycles: Whether cycles are estimated.
        strict: Refuse calls that the real library accepts and gets wrong; False accepts them as it does.
        suggestions: Search, when a call does not fit, for changes that would; False raises the bare error, at once.
        trace_region_size: Accepted as in ttnn; traces are not simulated.
        num_command_queues: Accepted as in ttnn; there is one queue.
        dispatch_core_config: Accepted as in ttnn; no worker core is taken away for dispatch.

    Raises:
        ArgumentTypeError: A number is no integer, or a flag no bool.
        ArgumentError: ``values`` or ``device_id`` is none that there is.
        SpecError: The device is unknown.
        DeviceError: ``l1_small_size`` leaves no L1.
    """
    for name, value in (("trace_region_size", trace_region_size), ("num_command_queues", num_command_queues)):
        required_integer("open_device", name, value)
    chosen = spec if spec is not None else os.environ.get(SPEC_VARIABLE) or "wormhole_n150"
    return Device(
        chosen,
        device_id=device_id,
        l1_small_size=l1_small_size,
        values=values,
        cycles=cycles,
        strict=strict,
        suggestions=suggestions,
    )


def CreateDevice(  # noqa: N802 - ttnn's name
    device_id: int = 0,
    num_command_queues: int = 1,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    dispatch_core_config: object = None,
) -> Device:
    """``open_device`` under its older name; the arguments are described there."""
    return open_device(device_id, l1_small_size=l1_small_size, trace_region_size=trace_region_size)


def close_device(device: Device) -> None:
    """Frees everything on a device; closing twice is harmless."""
    require_type("close_device", Device, device=device)
    device.close()


CloseDevice = close_device


@contextmanager
def manage_device(device_id: int = 0) -> Iterator[Device]:
    """Opens a device for the length of a ``with`` block."""
    with open_device(device_id) as device:
        yield device


def SetDefaultDevice(device: Device | None) -> None:  # noqa: N802 - ttnn's name
    """Remembers a device for GetDefaultDevice; None forgets it."""
    require_type_or_none("SetDefaultDevice", Device, device=device)
    remember(replace(current(), default_device=device))


def GetDefaultDevice() -> Device | None:  # noqa: N802 - ttnn's name
    """The device set by SetDefaultDevice, if any."""
    device = current().default_device
    return device if isinstance(device, Device) else None


def GetNumPCIeDevices() -> int:  # noqa: N802 - ttnn's name
    """One."""
    return 1


GetNumAvailableDevices = GetNumPCIeDevices


def GetPCIeDeviceID(device_id: int) -> int:  # noqa: N802 - ttnn's name
    """The same number."""
    return device_id


def synchronize_device(device: Device, *ignored: object) -> None:
    """Does nothing: every call has finished when it returns."""
    require_type("synchronize_device", Device, device=device)


def is_wormhole_b0(device: Device) -> bool:
    """Whether a device is a Wormhole."""
    require_type("is_wormhole_b0", Device, device=device)
    return device.arch() is Arch.WORMHOLE_B0


def is_blackhole(device: Device) -> bool:
    """Whether a device is a Blackhole."""
    require_type("is_blackhole", Device, device=device)
    return device.arch() is Arch.BLACKHOLE


def device_names() -> tuple[str, ...]:
    """Names that ``open_device(spec=...)`` knows."""
    return catalog_names()
