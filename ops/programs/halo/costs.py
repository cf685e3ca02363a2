"""What the halo program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts(Costs):
    """Constants of the model of the halo program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        dram_config_cycles: More, with config tensors in DRAM.
        pad_write_bytes: Most bytes one write of zeros fills.
        segment_cycles: For each run of padding.
        waiting_share: Part of the bytes on links it shares that a transfer waits for.
    """

    TABLE: ClassVar[str] = "halo_costs"

    start_cycles: float
    dram_config_cycles: float
    pad_write_bytes: int
    segment_cycles: float
    waiting_share: float
