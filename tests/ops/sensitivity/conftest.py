"""Every device operation of the sample plans, on devices that differ in one field: read once for all tests."""

from dataclasses import dataclass
from functools import cache

import pytest

from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_models import load_spec
from ops.sensitivity.effects import FixedLaunches, FixedOperation, fixed_launches, fixed_operations
from ops.sensitivity.fields import Field, numeric_fields, scaled
from ops.sensitivity.read_set import fields_asked
from ops.sensitivity.samples import samples


@dataclass(frozen=True)
class Sweep:
    """Operations on a device, and on devices with so many times as much of each field.

    Attributes:
        spec: The device.
        held: The operations.
        launches: Of all of them.
        before: What they take on the device.
        changed: The other device, and what those of the operations take there that read the field.
    """

    spec: DeviceSpec
    held: tuple[FixedOperation, ...]
    launches: FixedLaunches
    before: tuple[OperationCycles, ...]
    changed: dict[tuple[Field, float], tuple[DeviceSpec, dict[FixedOperation, OperationCycles]]]


def sweep(name: str, factors: tuple[float, ...]) -> Sweep:
    spec = load_spec(name)
    held = fixed_operations(samples(), spec)
    asked = {one: fields_asked(one.operation, spec) for one in held}
    changed = {}
    for field in numeric_fields(spec):
        part = field.path[0]
        moved = [one for one in held if field.name in asked[one]]
        for factor in factors:
            device = scaled(spec, field, factor)
            fewer_cores = part == "grid" and factor < 1  # than the plan that is held has
            if device is not None and part != "reader" and not fewer_cores:
                changed[field, factor] = device, {one: one.operation(device) for one in moved}
    return Sweep(spec, held, fixed_launches(samples(), spec), tuple(one.operation(spec) for one in held), changed)


SLOW = pytest.mark.slow
cached_sweep = cache(sweep)


@pytest.fixture(
    params=[
        ("wormhole_n150", (2.0,)),
        pytest.param(("wormhole_n150", (8.0,)), marks=SLOW),
        pytest.param(("blackhole_p150", (2.0, 0.5)), marks=SLOW),
        pytest.param(("blackhole_p100", (0.7,)), marks=SLOW),
    ],
    ids=str,
)
def machines(request):
    """A sweep."""
    return cached_sweep(*request.param)
