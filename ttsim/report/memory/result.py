"""What reports are written about: a layer, and its figures or the reason why there are none."""

from dataclasses import dataclass

from ttsim.report.memory.figures import OperationUse, Summary
from ttsim.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """One layer that was run.

    Attributes:
        layer: What was asked.
        summary: What it gave; None if it failed.
        error: Why it failed; None if it did not.
        reached: Of a failed layer, the device operations it came to, the one that failed last.
    """

    layer: Layer
    summary: Summary | None = None
    error: str | None = None
    reached: tuple[OperationUse, ...] = ()
