"""What the halo program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts(Costs):
    """Constants of the model of the halo program; what it shares with others is `TransferCosts` and `ComputeCosts`.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        pad_issue_cycles: Between two copies into a run of padding.
    """

    TABLE: ClassVar[str] = "halo_costs"

    start_cycles: float
    pad_issue_cycles: float
