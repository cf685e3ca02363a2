"""What software of 2025 did otherwise, by architecture: changes to a device by which its measurements are predicted.

Blackhole's fast tilize came later: each tile took longer (profiler files of tt-perf-report against tt-metal's branch
wransom/conv_bench). Nothing measured tells such a difference on Wormhole.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec

OF_2025: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {"blackhole": MappingProxyType({"compute_costs_tilize_tile_cycles": 37.0})}
)


def with_software_of_2025(spec: DeviceSpec) -> DeviceSpec:
    """The device with the kernels of 2025."""
    return spec.replace(**OF_2025.get(spec.arch, {}))
