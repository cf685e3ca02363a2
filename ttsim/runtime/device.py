"""Devices with ttnn's interface: opening, closing and properties."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from math import prod
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Self, get_args
from weakref import ref

from device.cores import CoreCoord, CoreGrid, PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, NotSimulatedError, shown
from device.machine import Machine
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from device.plan import Event, OperationBegin, OperationEnd
from device.spec.device_spec import DeviceSpec
from ops.op_model import OpModels
from ops.op_models import OP_MODELS
from ops.passes.caches import WeightCache, canonical_spec, plans_of_process
from ops.planners.conv.arguments import ConvCall
from ops.sensitivity.changes import changed, load_spec
from ttsim.runtime.session import current, locked, remember
from ttsim.runtime.settings import Values, default_spec, default_strict, default_values
from ttsim.runtime.shown import html_table
from ttsim.runtime.traces import Listener, RanCall, Traces
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer
from ttsim.runtime.types.docs import described


class _Sides:
    """Numbers along the axes of a mesh, given one by one or as one sequence."""

    __slots__ = ("_sides",)

    def __init__(self, *sides: int | Sequence[int]) -> None:
        lengths = sides[0] if len(sides) == 1 and not isinstance(sides[0], int) else sides
        try:
            self._sides: tuple[int, ...] = tuple(index(length) for length in lengths)  # type: ignore[arg-type]
        except TypeError:
            raise ArgumentTypeError(f"{type(self).__name__}: sides must be integers, not {shown(sides)}") from None

    def dims(self) -> int:
        """The number of axes."""
        return len(self._sides)

    def __getitem__(self, axis: int) -> int:
        return self._sides[axis]

    def __iter__(self) -> Iterator[int]:
        return iter(self._sides)

    def __len__(self) -> int:
        return len(self._sides)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._sides == other._sides

    def __hash__(self) -> int:
        return hash(self._sides)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._sides)})"


class MeshShape(_Sides):
    """Rows and columns of a mesh.

    Examples:
        >>> ttnn.MeshShape(1, 1).mesh_size()
        1
    """

    __slots__ = ()

    def mesh_size(self) -> int:
        """The number of devices."""
        return prod(self)


class MeshCoordinate(_Sides):
    """The coordinate of a device in a mesh.

    Examples:
        >>> list(ttnn.MeshCoordinate(0, 0))
        [0, 0]
    """

    __slots__ = ()


class MeshCoordinateRange:
    """The coordinates of a mesh between two corners, both included; from a shape, all coordinates.

    Examples:
        >>> list(ttnn.MeshCoordinateRange(ttnn.MeshShape(1, 2)))
        [MeshCoordinate([0, 0]), MeshCoordinate([0, 1])]
    """

    __slots__ = ("end", "start")

    def __init__(self, start: MeshCoordinate | MeshShape, end: MeshCoordinate | None = None) -> None:
        if isinstance(start, MeshShape):
            start, end = MeshCoordinate([0] * start.dims()), MeshCoordinate([side - 1 for side in start])
        require_type("MeshCoordinateRange", MeshCoordinate, start=start, end=end)
        assert end is not None
        if len(start) != len(end) or any(first > last for first, last in zip(start, end, strict=True)):
            raise ArgumentError(f"MeshCoordinateRange: {start} must not lie behind {end}")
        self.start, self.end = start, end

    def __iter__(self) -> Iterator[MeshCoordinate]:
        ranges = (range(first, last + 1) for first, last in zip(self.start, self.end, strict=True))
        return map(MeshCoordinate, product(*ranges))

    def __repr__(self) -> str:
        return f"MeshCoordinateRange(start={self.start}, end={self.end})"


DEFAULT_L1_SMALL_SIZE = DEFAULT_TRACE_REGION_SIZE = DEFAULT_WORKER_L1_SIZE = 0


class Arch(PlainEnum):
    """Architectures; the names are ttnn's.

    Examples:
        >>> device.arch()
        Arch.WORMHOLE_B0
    """

    WORMHOLE_B0, BLACKHOLE, QUASAR = range(2, 5)

    @classmethod
    def of(cls, spec: DeviceSpec) -> "Arch":
        """The architecture that scripts see, which is the family of the device."""
        return cls[spec.family.upper()]


class Device:
    """One simulated device, which `open_device` opens; in a ``with`` statement it is closed at the end.

    Examples:
        >>> with ttnn.open_device(l1_small_size=32768) as opened:
        ...     opened.core_grid, opened.spec.name, opened.dram_grid_size().x
        ...     tensor = ttnn.relu(ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=opened))
        ...     opened.num_program_cache_entries()
        ...     opened.clear_program_cache()
        ...     opened.num_program_cache_entries(), opened.get_num_devices(), opened.shape
        (ttnn.CoreGrid(x=8, y=8), 'wormhole_n150', 12)
        1
        (0, 1, MeshShape([1, 1]))
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
        op_models: OpModels = OP_MODELS,
        machine: Machine | None = None,
        of_script: bool = True,
    ) -> None:
        if not isinstance(values, str) or values not in get_args(Values):
            known = ", ".join(get_args(Values))
            raise ArgumentError(f"open_device: values must be one of {known}, not {shown(values)}")
        require_type("open_device", bool, cycles=cycles, strict=strict, suggestions=suggestions)
        small = required_integer("open_device", "l1_small_size", l1_small_size)
        self.device_id = required_integer("open_device", "device_id", device_id)  # The number it was opened with
        if self.device_id < 0:
            raise ArgumentError(f"open_device: device_id must be at least 0, not {device_id}; 0 is usual")
        # Memories and program cache: a new one, or one that is there
        self.machine = machine or Machine(canonical_spec(load_spec(spec)), l1_small_bytes=small)
        self.values = values  # As of open_device
        self.cycles = cycles  # Whether cycles are estimated
        self.strict = strict  # Whether calls that the real library accepts and gets wrong are refused
        self.suggestions = suggestions  # Whether the error of a call that does not fit says what would
        self.op_models = op_models  # The models of its operations; a table of one's own may know more
        # Whether profiles remember the script's lines and arguments, which nobody reads of a trial
        self.of_script = of_script
        self.profilers: list[list[RanCall]] = []  # Lists to which every call that ran is appended
        self.listeners: list[Listener] = []  # Told of calls, and of tensors that come from the host
        self.functions: list[str] = []  # Functions of the library that run, the user's call first
        self.traces = Traces()  # Captured calls, to be replayed
        self.asked: ConvCall | None = None  # The convolution that was asked for last, whether it fits or not
        # The arguments of the function that the script called, by name, or by number where by position; not those of
        # functions that this function calls
        self.given: tuple[tuple[str, object], ...] = ()
        self.kept = WeightCache()  # Prepared weights of host tensors; the same bits are not prepared twice
        self.plans = plans_of_process()  # Plans and their cycles, shared by the devices of equal figures of the process
        # The further devices of a mesh, which do all that this device does on parts of their own: the same plans, and
        # so the same time. Profiles and captures record the first device alone.
        self.others: tuple[Device, ...] = ()
        self._mesh_shape, self._listens = MeshShape(1, 1), True

    def join(self, others: Sequence["Device"], shape: MeshShape) -> None:
        """Makes this device the first of a mesh."""
        self.others, self._mesh_shape = tuple(others), shape
        for other in others:
            other._listens, other.kept = False, self.kept

    @property
    def devices(self) -> tuple["Device", ...]:
        """All devices of the mesh, in row-major order."""
        return self, *self.others

    @property
    def spec(self) -> DeviceSpec:
        """The description of the device."""
        return self.machine.spec

    def listened(self) -> Machine:
        """The machine, observed by every running graph capture; use it for everything that a capture should record."""
        for capture in current().captures if self._listens else ():
            capture.listen(self.machine, self.op_models)
        return self.machine

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """A context that reports its body to listeners as a call of a ttnn function."""
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
        """The name of the ttnn function that the user's running call entered first; empty if no call runs."""
        return self.functions[0] if self.functions else ""

    def tell_placed(self, buffer: Buffer, spec: TensorSpec) -> None:
        """Notifies listeners of a tensor from the host, unless it came in a call that they were notified of."""
        if not self.given and current().dispatch:
            for listener in self.listeners:
                listener.placed(buffer, spec)

    @contextmanager
    def recording(self, events: list[Event]) -> Iterator[Machine]:
        """A context that appends the events of the device to ``events``; yields the machine like ``listened``."""
        machine = self.listened()
        machine.recorders.append(events)
        try:
            yield machine
        finally:
            machine.recorders[:] = [recorder for recorder in machine.recorders if recorder is not events]

    def id(self) -> int:
        """The number with which the device was opened."""
        return self.device_id

    def arch(self) -> Arch:
        """The architecture; for a device with another architecture, the family that its file names."""
        return Arch.of(self.spec)

    @property
    def core_grid(self) -> CoreGrid:
        """Columns and rows of worker cores."""
        return CoreGrid(x=self.spec.grid.cols, y=self.spec.grid.rows)

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Columns and rows of worker cores as a CoreCoord."""
        return CoreCoord(self.spec.grid.cols, self.spec.grid.rows)

    def dram_grid_size(self) -> CoreCoord:
        """DRAM banks, in one row."""
        return CoreCoord(self.spec.dram.banks, 1)

    @property
    def shape(self) -> MeshShape:
        """Rows and columns of devices."""
        return self._mesh_shape

    def reshape(self, new_shape: MeshShape) -> None:
        """Changes the shape of the mesh; raises ArgumentError for another number of devices."""
        require_type("reshape", MeshShape, new_shape=new_shape)
        if new_shape.mesh_size() != len(self.devices):
            raise ArgumentError(f"reshape: {new_shape} has {new_shape.mesh_size()} devices, not {len(self.devices)}")
        self._mesh_shape = new_shape

    def get_device_ids(self) -> list[int]:
        """The numbers of the devices, in row-major order."""
        return [device.device_id for device in self.devices]

    def get_device_id(self, coord: MeshCoordinate) -> int:
        """The number of the device at a coordinate; raises ArgumentError outside the mesh."""
        require_type("get_device_id", MeshCoordinate, coord=coord)
        if len(coord) != len(self.shape) or not all(0 <= at < side for at, side in zip(coord, self.shape, strict=True)):
            raise ArgumentError(f"get_device_id: {coord} is no place of a mesh of {self.shape}")
        place = 0
        for at, side in zip(coord, self.shape, strict=True):
            place = place * side + at
        return self.devices[place].device_id

    def get_submeshes(self) -> list["Device"]:
        """An empty list: submeshes are not simulated."""
        return []

    def create_submesh(self, shape: MeshShape, offset: MeshCoordinate | None = None) -> "Device":
        """The mesh itself, if the shape is the whole mesh; raises NotSimulatedError for a part."""
        require_type("create_submesh", MeshShape, shape=shape)
        require_type_or_none("create_submesh", MeshCoordinate, offset=offset)
        if shape != self.shape or any(offset or ()):
            raise NotSimulatedError(
                f"create_submesh: ttsim does not simulate {shape} of a mesh of {self.shape}; open a mesh of this shape"
            )
        return self

    def create_submeshes(self, shape: MeshShape) -> list["Device"]:
        """The mesh itself in a list, if the shape is the whole mesh; raises NotSimulatedError for parts."""
        return [self.create_submesh(shape)]

    def get_num_devices(self) -> int:
        """The number of devices of the mesh."""
        return len(self.devices)

    def num_program_cache_entries(self) -> int:
        """Programs in the program cache."""
        return len(self.machine.program_cache)

    def enable_program_cache(self) -> None:
        """Caches programs from now on, which is the default."""
        for device in self.devices:
            device.machine.keeps_programs = True

    def clear_program_cache(self) -> None:
        """Clears the program cache and frees the buffers of its programs."""
        for device in self.devices:
            locked(device.machine, device.listened().clear_program_cache)

    def disable_and_clear_program_cache(self) -> None:
        """Clears and disables the program cache; later programs free their buffers after running."""
        self.clear_program_cache()
        for device in self.devices:
            device.machine.keeps_programs = False

    def close(self) -> None:
        """Frees everything after the calls of other threads have finished; closing twice is harmless."""
        for device in self.devices:
            locked(device.machine, device._close)

    def _close(self) -> None:
        self.machine.close()
        self.kept.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        """Raises ArgumentTypeError: a device can neither be copied nor pickled."""
        raise ArgumentTypeError("a device cannot be copied or pickled; bring tensors to the host first, with .cpu()")

    def _repr_html_(self) -> str:
        spec = self.spec
        rows = (
            ("figure", "value"),
            ("architecture", spec.arch),
            ("worker cores", f"{spec.grid.cols} x {spec.grid.rows}"),
            ("clock", f"{spec.clock_hz / 1e9:g} GHz"),
            ("L1 of a core", f"{spec.l1.usable_bytes / 1024:,.0f} KiB"),
            ("DRAM", f"{spec.dram.banks} banks"),
            ("values", self.values),
            ("state", "closed" if self.machine.closed else "open"),
        )
        return html_table(rows, words=rows[0], caption=spec.name)

    def __repr__(self) -> str:
        grid = self.spec.grid
        sides = "x".join(map(str, self.shape))
        return f"MeshDevice({sides} grid, {len(self.devices)} devices: {self.spec.name}, {grid.cols}x{grid.rows} cores)"


MeshDevice = Device


def open_device(
    device_id: int = 0,
    *,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    spec: str | Path | DeviceSpec | None = None,
    release: str | None = None,
    values: Values | None = None,
    cycles: bool = True,
    strict: bool | None = None,
    suggestions: bool = True,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    num_command_queues: int = 1,
    dispatch_core_config: object = None,
    worker_l1_size: int = DEFAULT_WORKER_L1_SIZE,
) -> Device:
    """Opens a simulated device; every call opens a new device, even with the same number.

    Args:
        device_id: A number, for display.
        l1_small_size: Bytes of L1 reserved on every core for the index tensors of convolutions; 32768 is usual.
        spec: Name of a catalog entry, path of a TOML file, or a DeviceSpec; None for the environment variable
            TTSIM_DEVICE, or else "wormhole_n150".
        release: Release of the real library whose planning rules apply: "0.81.1", "a8c5af0f" or "2025"; None for the
            release of ``spec``, by default "0.81.1". The device's name states any other release.
        values: "exact" computes results bit for bit, "fast" with BLAS (last places differ), "off" computes no results,
            only plans; None for the environment variable TTSIM_VALUES, or else "exact".
        cycles: Estimate cycles.
        strict: Refuse calls that the real library accepts and computes wrongly; None for the environment variable
            TTSIM_STRICT (1 or 0), or else True.
        suggestions: When a call does not fit, search for changes that make it fit; False raises the error at once.
        trace_region_size: Accepted as in ttnn; a trace takes no memory.
        num_command_queues: Accepted as in ttnn; all queues act as one queue in call order.
        dispatch_core_config: Accepted as in ttnn; dispatch takes no worker core.
        worker_l1_size: Accepted as in ttnn; the device description gives the size of L1.

    Returns:
        The open device; used in a ``with`` statement, it is closed at the end.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: ``device_id`` is negative, or ``values`` is not one of the three.
        SpecError: The device or the release is unknown, or the device's file is invalid.

    Examples:
        >>> with ttnn.open_device(spec="blackhole_p150", release="a8c5af0f", values="off") as blackhole:
        ...     blackhole.core_grid, blackhole.spec.name
        (ttnn.CoreGrid(x=13, y=10), 'blackhole_p150, release=a8c5af0f')
    """
    sizes = {"trace_region_size": trace_region_size, "worker_l1_size": worker_l1_size}
    for name, value in {**sizes, "num_command_queues": num_command_queues}.items():
        required_integer("open_device", name, value)
    require_type_or_none("open_device", str, release=release)
    chosen = load_spec(default_spec() if spec is None else spec)
    opened = Device(
        chosen if release is None else changed(chosen, [f"release={release}"]),
        device_id=device_id,
        l1_small_size=l1_small_size,
        values=default_values() if values is None else values,
        cycles=cycles,
        strict=default_strict() if strict is None else strict,
        suggestions=suggestions,
    )
    remember(replace(current(), opened=(*map(ref, open_devices()), ref(opened))))
    for watch in current().watchers:
        watch(opened)
    return opened


def open_devices() -> tuple[Device, ...]:
    """The open devices, oldest first."""
    devices = (reference() for reference in current().opened)
    return tuple(device for device in devices if isinstance(device, Device) and not device.machine.closed)


@described(like=open_device)
def CreateDevice(  # noqa: N802 - ttnn's name
    device_id: int = 0,
    num_command_queues: int = 1,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    dispatch_core_config: object = None,
    worker_l1_size: int = DEFAULT_WORKER_L1_SIZE,
) -> Device:
    """The older name of `open_device`.

    Returns:
        The open device.

    Examples:
        >>> created = ttnn.CreateDevice(0)
        >>> ttnn.CloseDevice(created)
    """
    return open_device(
        device_id,
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        num_command_queues=num_command_queues,
        worker_l1_size=worker_l1_size,
    )


def close_device(device: Device) -> None:
    """Closes a device and frees everything on it.

    Args:
        device: The device; closing it twice is harmless.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> opened = ttnn.open_device()
        >>> ttnn.close_device(opened)
    """
    require_type("close_device", Device, device=device)
    device.close()


CloseDevice = close_device


@contextmanager
def manage_device(device_id: int = 0) -> Iterator[Device]:
    """A context that opens a device and closes it at the end.

    Args:
        device_id: A number, for display.

    Returns:
        A context manager that yields the device.

    Raises:
        ArgumentTypeError: The number is no integer.
        ArgumentError: The number is negative.
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> with ttnn.manage_device(device_id=0) as opened:
        ...     opened.id()
        0
    """
    with open_device(device_id) as device:
        yield device
