"""The files of a network: its layers, what stands between them, and what was measured of the whole."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.validate.prediction import NotPredictedError, Row

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured"
NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class NetworkStep:
    """A convolution of a network and what happens to its input before it."""

    # The layer's row; None at the end of the network, where operations follow that belong to no convolution
    row: Row | None
    flow: Row  # Its row in the flow: what comes before, and settings that the layer's row does not have

    @property
    def before(self) -> tuple[str, ...]:
        """What happens to the output of the layer before: a word and its arguments; empty for nothing."""
        return tuple(self.flow["before"].split(":")) if self.flow["before"] else ()


@dataclass(frozen=True, slots=True)
class WholeFigure:
    """A figure of the whole network on one device."""

    row: Row  # As it stands in its file
    time_ns: float  # Time of one run of the network
    measured: bool  # It was measured; otherwise it is a target that somebody set
    operations: int  # Device operations it counts; 0 if the row does not say


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def steps_of(model: str, layers: Sequence[Row], flow: Sequence[Row]) -> tuple[list[NetworkStep], list[tuple[Row, str]]]:
    """The convolutions of a network in order.

    Args:
        model: Name of the network.
        layers: Rows of layers, of any network.
        flow: Rows of what stands between them, of any network.

    Returns:
        The steps, and rows of the network that are in one file only, each with the reason why it is left out.
    """
    rows = {row["layer"]: row for row in layers if row["model"] == model}
    order = [row for row in flow if row["model"] == model]
    known = {row["layer"] for row in order}
    left = [(row, "nothing says what its input is: it is not in the flow") for row in rows.values()]
    left = [(row, reason) for row, reason in left if row["layer"] not in known]
    left += [(row, "the layers' file has no such layer") for row in order if row["layer"] and row["layer"] not in rows]
    steps = [NetworkStep(rows.get(row["layer"]), row) for row in order if not row["layer"] or row["layer"] in rows]
    return steps, left


def figures_of(model: str, operations: Sequence[Row]) -> tuple[list[WholeFigure], list[tuple[Row, str]]]:
    """What is known of the time of a whole network, measurements first, and rows that give no time."""
    figures, left = [], []
    for row in operations:
        if row["model"].partition(" ")[0] != model:
            continue
        try:
            figures.append(_figure(row))
        except NotPredictedError as error:
            left.append((row, str(error)))
    return sorted(figures, key=lambda one: not one.measured), left


def _figure(row: Row) -> WholeFigure:
    """Raises NotPredictedError for a row in another unit."""
    value = float(row["value"])
    match row["unit"]:
        case "ms":
            time_ns = value * NS_PER_MS
        case "samples/s":
            time_ns = NS_PER_S / value * int(row["batch"] or 1)
        case unit:
            raise NotPredictedError(f"a figure in {unit} gives no time")
    return WholeFigure(row, time_ns, measured="measured" in row["kind"], operations=int(row["n_ops"] or 0))
