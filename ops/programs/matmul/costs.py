"""What the matmul program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCosts(Costs):
    """Constants of the model of the matmul program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start, first reads and last writes.
        k_block_cycles: Handshake of sender and receivers for each K block of an operand that is multicast.
        crossed_read_links: Links on which meets what all cores read over the network that is placed for writing.
        crossed_write_links: Links on which meets what all write over the network that is placed for reading.
    """

    TABLE: ClassVar[str] = "matmul_costs"

    start_cycles: float
    k_block_cycles: float
    crossed_read_links: float
    crossed_write_links: float
