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
    """A row that is understood, with its prediction, which is worked out at the first look."""

    row: Row  # The row as it stands in its file
    measured_ns: float  # What was measured
    predict_ns: Callable[[], float]  # What the simulator says, in ns
    group: tuple[str, ...]  # Where it is counted: (device, kind, ...), printed side by side
    architecture: str  # Groups of one architecture are summed up together
    configuration: tuple[str, ...]  # Equal for rows that measure the same thing; they count as one
    # False for rows that are no measurements (somebody's targets): they are printed, not summed up
    counted: bool = True
    remark: str = ""  # What had to be assumed, for a reader

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
    """A row without a prediction."""

    row: Row  # The row as it stands in its file
    reason: str
