"""What data movement programs cost: constants of their model, read from the device file."""

from dataclasses import dataclass

from ops.programs.kernel_costs import StickCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class MovementCosts(StickCosts):
    """Constants of the model of data movement programs, in cycles: those of pages and sticks, and besides them others.

    Attributes:
        box_stick_cycles: Between two sticks written into a box of an image.
        local_stick_cycles: Between two sticks copied within a core.
        store_cycles: For each word that a processor fills, and for each byte that it copies by itself.
        integer_tile_cycles: For each tile whose numbers become integers.
        reshard_cycles: Setting up the copies of a reshard.
        segment_cycles: For each piece that a reshape moves between pages.
    """

    box_stick_cycles: float
    local_stick_cycles: float
    store_cycles: float
    integer_tile_cycles: float
    reshard_cycles: float
    segment_cycles: float
