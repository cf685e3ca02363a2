"""What the convolution program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts(Costs):
    """Constants of the convolution program alone, in cycles.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        multicast_cycles: Of a multicast, of weights or activations: what the sender spends on semaphores and commands,
            and what passes until receivers see that the block is there, besides hops and bytes.
    """

    TABLE: ClassVar[str] = "conv_costs"

    start_cycles: float
    multicast_cycles: float
