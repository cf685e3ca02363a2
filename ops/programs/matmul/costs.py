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
        k_block_cycles: Handshake of sender and receivers for each K block of an operand that is multicast.
        compute_block_cycles: More, for each K block that is multiplied.
    """

    TABLE: ClassVar[str] = "matmul_costs"

    start_cycles: float
    product_cycles: float
    k_block_cycles: float
    compute_block_cycles: float
