"""Which device of the catalog a measured row means, and how rows write cores, formats and fidelities."""

import re
from typing import Final

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, UINT32
from device.spec.device_spec import DeviceSpec, load_spec
from tools.validate.prediction import NotPredictedError, Row

DEVICES = (
    ("N150", "wormhole_n150"),
    ("Wormhole", "wormhole_n150"),
    ("P150", "blackhole_p150"),
    ("Blackhole P150", "blackhole_p150"),
    ("P100", "blackhole_p100"),
    ("Blackhole P100", "blackhole_p100"),
    ("Blackhole (", "blackhole_p100"),
)  # by what the device column begins with
CARDS: Final = {"wormhole_b0": "wormhole_n150", "blackhole": "blackhole_p150"}  # by architecture: full grids
FORMATS: Final = {"bf16": BFLOAT16, "bfp8_b": BFLOAT8_B, "bfp4_b": BFLOAT4_B, "fp32": FLOAT32, "u32": UINT32}
PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
SMALL_GRID = "20-core"  # a Blackhole of which 5 x 4 cores are used


def device_spec(row: Row) -> DeviceSpec:
    """The device of a row.

    Raises:
        NotPredictedError: The row does not say, or names one that is not in the catalog.
    """
    name = next((ours for theirs, ours in DEVICES if row["device"].startswith(theirs)), None)
    if name is None:
        raise NotPredictedError(f"the row does not say which device ({row['device'] or 'empty'})")
    spec = load_spec(name)
    return spec.replace(grid_cols=5, grid_rows=4) if SMALL_GRID in row["device"] else spec


def core_ranges(text: str) -> CoreRangeSet:
    """The cores of ``{[(x=0;y=0) - (x=4;y=3)]; ...}``; none if there is no range in the text."""
    found = re.findall(r"\(x=(\d+);y=(\d+)\) - \(x=(\d+);y=(\d+)\)", text)
    return CoreRangeSet(
        CoreRange(CoreCoord(int(left), int(top)), CoreCoord(int(right), int(bottom)))
        for left, top, right, bottom in found
    )
