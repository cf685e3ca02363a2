"""A device file as users open it: figures of the machine, and a table for every program that has a model of its own.

A new program adds its costs to `COSTS`; then a file without their table, or with a key that they do not know, is
refused when it is opened.
"""

from pathlib import Path

from device.spec import device_spec
from device.spec.device_spec import DeviceSpec
from device.spec.tables import Costs
from ops.programs.conv2d.costs import ConvCosts
from ops.programs.halo.costs import HaloCosts
from ops.programs.matmul.costs import MatmulCosts
from ops.programs.movement.costs import MovementCosts

COSTS: tuple[type[Costs], ...] = (ConvCosts, HaloCosts, MatmulCosts, MovementCosts)


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device, with tables that every program's model understands.

    Args:
        device: A name of the catalog, the path of a TOML file, or a spec, as `device.spec.device_spec.load_spec` says.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or what it says is no spec; a spec lacks a table or a
            figure of a program.
    """
    return device_spec.load_spec(device, COSTS)
