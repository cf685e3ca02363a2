"""The system that devices are opened on, one card of one chip, and meshes of its device, under ttnn's names.

Functions without a device argument use the default device, else the open device that was opened last, else the device
of the environment.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from device.cores import PlainEnum
from device.errors import ArgumentError, shown
from device.spec.device_spec import DeviceSpec, catalog_names
from ops.sensitivity.changes import load_spec
from ttsim.runtime.device import Arch, Device, MeshCoordinate, MeshShape, close_device, open_device, open_devices
from ttsim.runtime.session import current, remember
from ttsim.runtime.settings import default_spec
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer
from ttsim.runtime.types.docs import described


class ClusterType(PlainEnum):
    """Kinds of systems, with ttnn's names and numbers.

    Examples:
        >>> ttnn.ClusterType.N150.value
        1
    """

    INVALID, N150, N300, T3K, GALAXY, TG, P100, P150, P150_X2, P150_X4 = range(10)
    SIMULATOR_WORMHOLE_B0, SIMULATOR_BLACKHOLE, N300_2x2, P150_X8, P300 = range(10, 15)
    SIMULATOR_QUASAR, BLACKHOLE_GALAXY, P300_X2, CUSTOM = range(15, 19)


def SetDefaultDevice(device: Device | None) -> None:  # noqa: N802 - ttnn's name
    """Sets the device that `GetDefaultDevice` returns.

    Args:
        device: The device; None for no default device.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.SetDefaultDevice(device)
        >>> ttnn.GetDefaultDevice() is device
        True
        >>> ttnn.SetDefaultDevice(None)
    """
    require_type_or_none("SetDefaultDevice", Device, device=device)
    remember(replace(current(), default_device=device))


def GetDefaultDevice() -> Device | None:  # noqa: N802 - ttnn's name
    """The device that `SetDefaultDevice` set.

    Returns:
        The device, or None.

    Examples:
        >>> ttnn.GetDefaultDevice() is None
        True
    """
    device = current().default_device
    return device if isinstance(device, Device) else None


def system_spec() -> DeviceSpec:
    """The description of the system's devices: the default device, else the last opened, else the environment's."""
    if (default := GetDefaultDevice()) is not None and not default.machine.closed:
        return default.spec
    devices = open_devices()
    return devices[-1].spec if devices else load_spec(default_spec())


def get_arch_name() -> str:
    """The architecture of the system's device: the default device, else the last opened, else the environment's.

    Returns:
        The device's family, for example "wormhole_b0", as in ``device.arch()``.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.get_arch_name()
        'wormhole_b0'
    """
    return system_spec().family


def get_cluster_type() -> ClusterType:
    """The kind of system, from the device's file.

    Returns:
        A ClusterType; CUSTOM if ttnn does not know the kind.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.cluster.get_cluster_type()
        ClusterType.N150
    """
    return ClusterType.__members__.get(system_spec().cluster, ClusterType.CUSTOM)


def GetNumPCIeDevices() -> int:  # noqa: N802 - ttnn's name
    """The number of devices of the system, by its kind: two for an N300.

    Returns:
        The number, at least 1.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.GetNumPCIeDevices(), ttnn.GetNumAvailableDevices(), ttnn.get_num_devices()
        (1, 1, 1)
    """
    return _system_shape().mesh_size()


# Rows and columns of systems with several devices
_SHAPES: Final = {
    ClusterType.N300: (1, 2), ClusterType.T3K: (2, 4), ClusterType.GALAXY: (8, 4), ClusterType.TG: (8, 4),
    ClusterType.P150_X2: (1, 2), ClusterType.P150_X4: (1, 4), ClusterType.N300_2x2: (2, 2), ClusterType.P150_X8: (2, 4),
    ClusterType.P300: (1, 2), ClusterType.BLACKHOLE_GALAXY: (8, 4), ClusterType.P300_X2: (2, 2),
}  # fmt: skip


def _system_shape() -> MeshShape:
    return MeshShape(*_SHAPES.get(get_cluster_type(), (1, 1)))


GetNumAvailableDevices = GetNumPCIeDevices
get_num_devices = GetNumPCIeDevices


def get_device_ids() -> list[int]:
    """The numbers of all devices of the system.

    Returns:
        The numbers, from 0.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.get_device_ids(), ttnn.get_pcie_device_ids()
        ([0], [0])
    """
    return list(range(get_num_devices()))


get_pcie_device_ids = get_device_ids


def GetPCIeDeviceID(device_id: int) -> int:  # noqa: N802 - ttnn's name
    """The number of a device on the PCIe bus.

    Args:
        device_id: Number of the device.

    Returns:
        The same number.

    Raises:
        ArgumentTypeError: The number is no integer.
        ArgumentError: The system has no such device.

    Examples:
        >>> ttnn.GetPCIeDeviceID(0)
        0
    """
    if required_integer("GetPCIeDeviceID", "device_id", device_id) not in get_device_ids():
        raise ArgumentError(f"GetPCIeDeviceID: the system has no device {device_id}, but {get_device_ids()}")
    return device_id


def synchronize_device(device: Device, cq_id: int | None = None, sub_device_ids: object = ()) -> None:
    """Waits for all calls on a device; returns at once, because a call has finished when it returns.

    Args:
        device: The device.
        cq_id: Accepted as in ttnn; there is one queue.
        sub_device_ids: Accepted as in ttnn; there are no sub-devices.

    Raises:
        ArgumentTypeError: ``device`` is not a device.

    Examples:
        >>> ttnn.synchronize_device(device)
    """
    require_type("synchronize_device", Device, device=device)


def ReadDeviceProfiler(device: Device) -> None:  # noqa: N802 - ttnn's name
    """Does nothing: the device keeps no profiler data; `profile` gives the cycles of calls.

    Args:
        device: The device.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.ReadDeviceProfiler(device)
    """
    require_type("ReadDeviceProfiler", Device, device=device)


def is_wormhole_b0(device: Device | None = None) -> bool:
    """Whether a device is a Wormhole.

    Args:
        device: The device; None for that of the system, as in `get_arch_name`.

    Returns:
        True for the family wormhole_b0.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.device.is_wormhole_b0(device)
        True
    """
    return _arch("is_wormhole_b0", device) is Arch.WORMHOLE_B0


def is_blackhole(device: Device | None = None) -> bool:
    """Whether a device is a Blackhole.

    Args:
        device: The device; None for that of the system, as in `get_arch_name`.

    Returns:
        True for the family blackhole.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.device.is_blackhole(device)
        False
    """
    return _arch("is_blackhole", device) is Arch.BLACKHOLE


def _arch(function: str, device: Device | None) -> Arch:
    require_type_or_none(function, Device, device=device)
    return Arch.of(system_spec() if device is None else device.spec)


def device_names() -> tuple[str, ...]:
    """The names of the device catalog, which ``open_device(spec=...)`` accepts.

    Returns:
        The names in alphabetical order.

    Examples:
        >>> ttnn.device_names()
        ('blackhole_p100', 'blackhole_p150', 'wormhole_n150', 'wormhole_n300')
    """
    return catalog_names()


class DispatchCoreType(PlainEnum):
    """The kind of cores that dispatch programs, with ttnn's names; dispatch takes no core here.

    Examples:
        >>> ttnn.DispatchCoreType.WORKER.value
        0
    """

    WORKER, ETH = range(2)


class DispatchCoreAxis(PlainEnum):
    """The side of the grid where dispatch cores lie, with ttnn's names; dispatch takes no core here.

    Examples:
        >>> ttnn.DispatchCoreAxis.COL.value
        1
    """

    ROW, COL = range(2)


@dataclass(slots=True)
class DispatchCoreConfig:
    """The cores that dispatch programs; accepted as in ttnn without effect, because dispatch takes no worker core.

    Examples:
        >>> config = ttnn.DispatchCoreConfig(ttnn.DispatchCoreType.WORKER)
        >>> ttnn.close_device(ttnn.open_device(dispatch_core_config=config))
    """

    type: DispatchCoreType | None = None
    axis: DispatchCoreAxis | None = None
    fabric_tensix_config: object = None


@described(like=open_device)
def open_mesh_device(
    mesh_shape: MeshShape | None = None,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    num_command_queues: int = 1,
    dispatch_core_config: object = None,
    offset: MeshCoordinate | None = None,
    physical_device_ids: Sequence[int] = (),
    worker_l1_size: int = 0,
) -> Device:
    """Opens a mesh of devices that run the same calls on parts of tensors; links between devices are not simulated.

    Each device has its own memory and values. A call is planned once and takes the time of one device. The name of the
    mesh, and so every report, states the number of devices.

    Args:
        mesh_shape: Rows and columns of the mesh, at most the devices of the system (`get_num_devices`); None for all.
        offset: Coordinate of the mesh in the system; only (0, 0).
        physical_device_ids: Numbers of the devices, or empty.

    Returns:
        The open mesh.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The mesh has more devices than the system, another offset, or other device numbers.
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> with ttnn.open_mesh_device(ttnn.MeshShape(1, 1)) as mesh:
        ...     mesh.get_num_devices()
        1
    """
    shape = _system_shape() if mesh_shape is None else mesh_shape
    require_type("open_mesh_device", MeshShape, mesh_shape=shape)
    require_type_or_none("open_mesh_device", MeshCoordinate, offset=offset)
    count, there = shape.mesh_size(), get_num_devices()
    if not 0 < count <= there or any(offset or ()):
        raise ArgumentError(
            f"open_mesh_device: {shape} at {list(offset or (0, 0))} is not within the system, which has {there} "
            f"{'device' if there == 1 else 'devices'}; TTSIM_DEVICE=wormhole_n300 has two"
        )
    ids = list(physical_device_ids) or list(range(count))
    if len(ids) != count:
        raise ArgumentError(f"open_mesh_device: physical_device_ids must be {count} numbers, not {shown(ids)}")
    spec = load_spec(default_spec())
    spec = spec if count == 1 else spec.replace(name=f"{count} x {spec.name}")
    opened = open_device(
        ids[0],
        spec=spec,
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        num_command_queues=num_command_queues,
        worker_l1_size=worker_l1_size,
    )
    others = [
        Device(spec, device_id=number, l1_small_size=l1_small_size, values=opened.values, strict=opened.strict)
        for number in ids[1:]
    ]
    opened.join(others, shape)
    return opened


close_mesh_device = close_device


def visualize_mesh_device(mesh_device: Device) -> None:
    """Prints the numbers of the devices of a mesh, row by row.

    Args:
        mesh_device: The mesh.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.visualize_mesh_device(device)
        MeshDevice(1x1 grid, 1 devices: wormhole_n150, 8x8 cores)
        [0]
    """
    require_type("visualize_mesh_device", Device, mesh_device=mesh_device)
    ids, columns = mesh_device.get_device_ids(), mesh_device.shape[-1]
    rows = (ids[at : at + columns] for at in range(0, len(ids), columns))
    sys.stdout.write("".join(f"{line}\n" for line in (mesh_device, *rows)))


class SystemMeshDescriptor:
    """The devices of the system.

    Examples:
        >>> ttnn.SystemMeshDescriptor().shape()
        MeshShape([1, 1])
    """

    def shape(self) -> MeshShape:
        """Rows and columns of devices."""
        return _system_shape()


def using_distributed_env() -> bool:
    """Whether several processes drive devices together.

    Returns:
        False.

    Examples:
        >>> ttnn.using_distributed_env()
        False
    """
    return False


class FabricConfig(PlainEnum):
    """Links between devices, with ttnn's names; there are none, so only DISABLED can be set.

    Examples:
        >>> ttnn.FabricConfig.DISABLED.value
        0
    """

    DISABLED, FABRIC_1D_NEIGHBOR_EXCHANGE, FABRIC_1D, FABRIC_1D_RING, FABRIC_2D = range(5)
    FABRIC_2D_TORUS_X, FABRIC_2D_TORUS_Y, FABRIC_2D_TORUS_XY, CUSTOM = range(5, 9)


class Topology(PlainEnum):
    """How devices are linked, with ttnn's names; accepted in configs, but the collectives that use it are refused.

    Examples:
        >>> ttnn.Topology.Linear.value
        1
    """

    Linear, Ring, Mesh, Torus = range(1, 5)


class FabricTensixConfig(PlainEnum):
    """Worker cores that serve links between devices, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricTensixConfig.DISABLED.value
        0
    """

    DISABLED, MUX = range(2)


class FabricReliabilityMode(PlainEnum):
    """How links between devices are established, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricReliabilityMode.RELAXED_INIT.value
        1
    """

    STRICT_INIT, RELAXED_INIT, DYNAMIC_RECONFIG = range(3)


class FabricUDMMode(PlainEnum):
    """Whether data moves over links by the fabric's own kernels, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricUDMMode.DISABLED.value
        0
    """

    DISABLED, ENABLED = range(2)


class FabricManagerMode(PlainEnum):
    """Who manages links between devices, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricManagerMode.DEFAULT.value
        3
    """

    ENABLED, INIT_FABRIC, TERMINATE_FABRIC, DEFAULT = range(4)


def set_fabric_config(config: FabricConfig, *settings: object) -> None:
    """Sets the links between devices; it has no effect, because there are no links and collectives are refused.

    Args:
        config: As in ttnn, which accepts any config on a system of one device.
        settings: Accepted as in ttnn.

    Raises:
        ArgumentTypeError: ``config`` is no FabricConfig.

    Examples:
        >>> ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
    """
    require_type("set_fabric_config", FabricConfig, config=config)
