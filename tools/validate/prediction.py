"""What a validator makes of a measured row: a prediction, or the reason why there is none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str]


class NotPredictedError(ValueError):
    """A row that the simulator can not or should not predict; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A row that is understood, with its prediction, which is worked out at the first look.

    Attributes:
        row: The row as it stands in its file.
        measured_ns: What was measured.
        predict_ns: What the simulator says, in ns.
        group: Where it is counted: (device, kind, ...), printed side by side.
        architecture: Groups of one architecture are summed up together.
        configuration: Equal for rows that measure the same thing; they count as one.
        counted: False for rows that are no measurements (somebody's targets): they are printed, not summed up.
        remark: What had to be assumed, for a reader.
    """

    row: Row
    measured_ns: float
    predict_ns: Callable[[], float]
    group: tuple[str, ...]
    architecture: str
    configuration: tuple[str, ...]
    counted: bool = True
    remark: str = ""

    @cached_property
    def predicted_ns(self) -> float:
        """What the simulator says; raises what it raises."""
        return self.predict_ns()

    @property
    def error(self) -> float:
        """Relative error: above zero if the prediction is too long."""
        return self.predicted_ns / self.measured_ns - 1.0


@dataclass(frozen=True, slots=True)
class NotPredicted:
    """A row without a prediction.

    Attributes:
        row: The row as it stands in its file.
        reason: Why.
    """

    row: Row
    reason: str
