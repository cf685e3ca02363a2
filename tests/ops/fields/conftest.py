"""Every device operation of the sample plans, on devices that differ in one field: read once for all tests."""

from dataclasses import dataclass
from functools import cache

import pytest

from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.fields.field import Field, numeric_fields, scaled
from ops.fields.held import HeldLaunches, HeldOperation, held_launches, held_operations, with_model
from ops.fields.samples import samples
from ops.meanings import load_spec


@dataclass(frozen=True)
class Sweep:
    """Operations on a device, and on devices with so many times as much of each field."""

    spec: DeviceSpec
    held: tuple[HeldOperation, ...]
    launches: HeldLaunches
    before: tuple[OperationCycles, ...]
    changed: dict[tuple[Field, float], tuple[DeviceSpec, tuple[OperationCycles, ...]]]


def sweep(name: str, factors: tuple[float, ...]) -> Sweep:
    spec = load_spec(name)
    held = with_model(held_operations(samples(), spec), spec)
    changed = {}
    for field in numeric_fields(spec):
        for factor in factors:
            device = scaled(spec, field, factor)
            fewer_cores = field.path[0] == "grid" and factor < 1  # than the plan that is held has
            if device is not None and field.path[0] != "reader" and not fewer_cores:
                changed[field, factor] = device, tuple(one.operation(device) for one in held)
    return Sweep(spec, held, held_launches(samples(), spec), tuple(one.operation(spec) for one in held), changed)


SLOW = pytest.mark.slow
cached_sweep = cache(sweep)


@pytest.fixture(
    params=[
        ("wormhole_n150", (2.0,)),
        pytest.param(("wormhole_n150", (0.5, 8.0)), marks=SLOW),
        pytest.param(("blackhole_p150", (2.0, 0.5, 8.0)), marks=SLOW),
        pytest.param(("blackhole_p100", (0.7,)), marks=SLOW),
    ],
    ids=str,
)
def machines(request):
    """A sweep."""
    return cached_sweep(*request.param)
