"""The system that devices are opened on, under ttnn's names: one card of one chip, of the kind that is asked for.

Functions that are given no device tell of the default device, or else of the open device that was opened last, or else
of the one that the environment names.
"""

from dataclasses import replace

from device.cores import PlainEnum
from device.spec.device_spec import DeviceSpec, catalog_names
from ops.sensitivity.changes import load_spec
from ttsim.runtime.device import Arch, Device, open_devices
from ttsim.runtime.session import current, remember
from ttsim.runtime.settings import default_spec
from ttsim.runtime.types.call import require_type, require_type_or_none


class ClusterType(PlainEnum):
    """Kinds of systems, with ttnn's names and numbers."""

    INVALID = 0
    N150 = 1
    N300 = 2
    T3K = 3
    GALAXY = 4
    TG = 5
    P100 = 6
    P150 = 7
    P150_X2 = 8
    P150_X4 = 9
    SIMULATOR_WORMHOLE_B0 = 10
    SIMULATOR_BLACKHOLE = 11
    N300_2x2 = 12
    P150_X8 = 13
    P300 = 14
    SIMULATOR_QUASAR = 15
    BLACKHOLE_GALAXY = 16
    P300_X2 = 17
    CUSTOM = 18


def SetDefaultDevice(device: Device | None) -> None:  # noqa: N802 - ttnn's name
    """Remembers a device for GetDefaultDevice; None forgets it."""
    require_type_or_none("SetDefaultDevice", Device, device=device)
    remember(replace(current(), default_device=device))


def GetDefaultDevice() -> Device | None:  # noqa: N802 - ttnn's name
    """The device set by SetDefaultDevice, if any."""
    device = current().default_device
    return device if isinstance(device, Device) else None


def system_spec() -> DeviceSpec:
    """What the system's devices are made of: the default device, the last open one, or the one of the environment."""
    if (default := GetDefaultDevice()) is not None and not default.machine.closed:
        return default.spec
    devices = open_devices()
    return devices[-1].spec if devices else load_spec(default_spec())


def get_arch_name() -> str:
    """The architecture, for example "wormhole_b0"; as with ``device.arch()``, that of the family."""
    return system_spec().family


def get_cluster_type() -> ClusterType:
    """The kind of system that the device's file names; CUSTOM where ttnn does not know that name."""
    return ClusterType.__members__.get(system_spec().cluster, ClusterType.CUSTOM)


def GetNumPCIeDevices() -> int:  # noqa: N802 - ttnn's name
    """One."""
    return 1


GetNumAvailableDevices = GetNumPCIeDevices
get_num_devices = GetNumPCIeDevices


def get_device_ids() -> list[int]:
    """Numbers of all devices: 0 alone."""
    return [0]


get_pcie_device_ids = get_device_ids


def GetPCIeDeviceID(device_id: int) -> int:  # noqa: N802 - ttnn's name
    """The same number."""
    return device_id


def synchronize_device(device: Device, cq_id: int | None = None, sub_device_ids: object = ()) -> None:
    """Does nothing: every call has finished when it returns, on whatever queue and sub-devices."""
    require_type("synchronize_device", Device, device=device)


def ReadDeviceProfiler(device: Device) -> None:  # noqa: N802 - ttnn's name
    """Does nothing: nothing is kept on the device to be read; ``ttsim.profile`` gives the cycles of calls."""
    require_type("ReadDeviceProfiler", Device, device=device)


def is_wormhole_b0(device: Device | None = None) -> bool:
    """Whether a device, or else the system, is a Wormhole."""
    return _arch("is_wormhole_b0", device) is Arch.WORMHOLE_B0


def is_blackhole(device: Device | None = None) -> bool:
    """Whether a device, or else the system, is a Blackhole."""
    return _arch("is_blackhole", device) is Arch.BLACKHOLE


def _arch(function: str, device: Device | None) -> Arch:
    require_type_or_none(function, Device, device=device)
    return Arch.of(system_spec() if device is None else device.spec)


def device_names() -> tuple[str, ...]:
    """Names that ``open_device(spec=...)`` knows."""
    return catalog_names()
