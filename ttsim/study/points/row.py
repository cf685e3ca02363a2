"""What became of a point, as plain figures: a line of a file, a row of a table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from device.time.stages import nanoseconds
from ttsim.types.layer import Setting


class Verdict(StrEnum):
    """Whether a call runs; the values are the words of files and tables."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    REFUSED = "refused"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a call takes, or why it does not run. Nothing in it depends on when or where it was found out.

    Figures are None where the call does not run, or nobody asked.
    """

    key: str
    layer: str
    device: str
    # "fits"; "does not fit": there is not enough memory; "refused": the arguments are; "failed": the simulator has a
    # mistake; "lost": the process that looked into it died, twice
    verdict: Verdict
    # What else the point says, flat: "in_channels", "config.shard_layout", "lowering" ..
    inputs: Mapping[str, Setting | None] = field(default_factory=dict)
    error: str = ""  # Why it does not run; empty if it does
    plan_key: str | None = None  # Equal for equal plans
    shard_layout: str | None = None  # How the convolution was sharded
    l1_peak_bytes: int | None = None  # Of a core: circular buffers and buffers together
    l1_headroom_bytes: int | None = None  # Between circular buffers and buffers, of the tightest device operation
    cycles: int | None = None  # Of all device operations that have a model
    clock_hz: int | None = None  # Of the device, to make time of cycles
    # How far the cycles are to be expected off; None where nothing was measured
    cycles_error_share: float | None = None
    cycles_unmeasured_share: float | None = None  # Of the cycles, those of operations without a measurement
    untimed_operations: int | None = None  # Device operations without a model, which `cycles` leaves out
    dram_read_bytes: int | None = None
    dram_written_bytes: int | None = None
    noc_bytes: int | None = None  # What leaves a core over a network; a multicast counts once
    pcc: float | None = None  # Correlation of the output with float64
    max_abs_error: float | None = None  # Largest difference to it
    rms_error: float | None = None  # Root of the mean squared difference

    @property
    def nanoseconds(self) -> float | None:
        """What the point takes, by the clock of its device; None where it has no cycles."""
        return None if self.cycles is None or self.clock_hz is None else nanoseconds(self.cycles, self.clock_hz)

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return asdict(self) | {"verdict": self.verdict.value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The row of such figures.

        Raises:
            TypeError: They are not those of a row.
            ValueError: There is no such verdict.
        """
        return cls(**{**values, "verdict": Verdict(values.get("verdict", ""))})
