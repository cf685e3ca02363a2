"""What the convolution program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts(Costs):
    """Constants of the convolution program alone, in cycles.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        weight_multicast_cycles: Before a multicast of weights: until all receivers have said that they have room.
        act_multicast_cycles: The same before a multicast of activations.
    """

    TABLE: ClassVar[str] = "conv_costs"

    start_cycles: float
    weight_multicast_cycles: float
    act_multicast_cycles: float
