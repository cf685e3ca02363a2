"""What is told of a layer that was run, as frozen values.

A `LayerResult` is what reports are written about: a layer, and its figures or the reason why there are none.
"""

from dataclasses import dataclass

from ttsim.report.cycles.report import CycleReport
from ttsim.report.memory.accuracy import Accuracy
from ttsim.report.memory.figures import L1Use, OperationUse, OutputUse, Partition
from ttsim.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A call of conv_transpose2d.

    Attributes:
        device: Name of the device.
        output: What came out.
        partitions: The ways in which the convolutions that ran were cut up, in order.
        l1: L1 over the whole call.
        operations: The device operations in order.
        accuracy: Against float64; None where there are no values.
        cycles: What it took; None where cycles are not estimated.
    """

    device: str
    output: OutputUse
    partitions: tuple[Partition, ...]
    l1: L1Use
    operations: tuple[OperationUse, ...]
    accuracy: Accuracy | None = None
    cycles: CycleReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """One layer that was run.

    Attributes:
        layer: What was asked.
        summary: What it gave; None if it failed.
        error: Why it failed; None if it did not.
        reached: Of a failed layer, the device operations it came to, the one that failed last.
        source: The call as Python; empty if its arguments do not exist.
    """

    layer: Layer
    summary: Summary | None = None
    error: str | None = None
    reached: tuple[OperationUse, ...] = ()
    source: str = ""
