"""What is taken where a call does not say: the environment's choice, or else what is usual."""

import os
from typing import Literal, get_args

from device.errors import ArgumentError, shown

Values = Literal["exact", "fast", "off"]

DEFAULT_SPEC = "wormhole_n150"
USUAL_L1_SMALL_SIZE = 32768  # bytes for index tensors, where nobody says how many
SPEC_VARIABLE = "TTSIM_DEVICE"
VALUES_VARIABLE = "TTSIM_VALUES"
STRICT_VARIABLE = "TTSIM_STRICT"

_SWITCHES = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def default_spec() -> str:
    """The device to open: a name of the catalog or a file."""
    return os.environ.get(SPEC_VARIABLE) or DEFAULT_SPEC


def default_values() -> Values:
    """What devices compute; raises ArgumentError where the variable has no such value."""
    given = os.environ.get(VALUES_VARIABLE) or "exact"
    for one in get_args(Values):
        if given == one:
            return one  # type: ignore[no-any-return]
    raise ArgumentError(f"{VALUES_VARIABLE} must be one of {', '.join(get_args(Values))}, not {shown(given)}")


def default_strict() -> bool:
    """Whether devices are strict; raises ArgumentError where the variable is no switch."""
    given = os.environ.get(STRICT_VARIABLE) or "1"
    if given.lower() not in _SWITCHES:
        raise ArgumentError(f"{STRICT_VARIABLE} must be one of {', '.join(_SWITCHES)}, not {shown(given)}")
    return _SWITCHES[given.lower()]
