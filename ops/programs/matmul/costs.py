"""What the matmul program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCosts(Costs):
    """Constants of the model of the matmul program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start, first reads and last writes.
        product_cycles: More, for each tile product.
        unpack_bytes_per_cycle: Rate at which an operand tile is unpacked: one for each tile product.
        read_issue_cycles: Between two tiles read from DRAM or another core by one core.
        multicast_bytes_per_cycle: Rate of a multicast.
        k_block_cycles: Handshake of sender and receivers for each K block of an operand that is multicast.
        compute_block_cycles: More, for each K block that is multiplied.
    """

    TABLE: ClassVar[str] = "matmul_costs"

    start_cycles: int
    product_cycles: float
    unpack_bytes_per_cycle: float
    read_issue_cycles: float
    multicast_bytes_per_cycle: float
    k_block_cycles: int
    compute_block_cycles: int
