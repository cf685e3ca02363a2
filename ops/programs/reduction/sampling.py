"""The program that samples one of the largest scores of each user (tt-metal 0.81.1, sampling), a core for each user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from device.cores import CoreRangeSet
from device.errors import NotSimulatedError
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, UINT32, Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import scratchpad, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, streamed, tile_sides

FIXED_TILES: Final = 23  # of bfloat16 that a core has for any row: scores, places, masks, sums and results on their way
ROW_TILES: Final = 4  # for each tile of a row: turned scores and places of 32 bits, and the places that are read
UNDRAWN: Final = "sampling: a device draws scores at random; use ttnn.topk, or draw them on the host"
OWN_BYTES, USER_BYTES = 130, 6  # of each core's own results, and of numbers of all users that it reads


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScores(DataMovement):
    """The index of one score of each user, drawn at random from the largest."""

    users: int
    cores: CoreRangeSet

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Raises NotSimulatedError: plans leave the values out."""
        raise NotSimulatedError(UNDRAWN)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Each core sorts the tiles of the row in which its user is."""
        wide = tile_sides(ends.read)[2]
        return streamed(
            ends,
            spec,
            cores=self.cores,
            tiles=(wide, 1),
            math_cycles=10 * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles,  # merge steps of 64 numbers
            steps="reading, sorting and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A draw, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def sampling_buffers(op: SampleScores, columns: int) -> tuple[CircularBuffer, ...]:
    """Tiles of all cores, and the cores' own buffers, whose memory the library takes one after another."""
    return (
        tile_buffer("tiles", FIXED_TILES, BFLOAT16, op.cores),
        tile_buffer("row", ROW_TILES * (columns // TILE), BFLOAT16, op.cores),
        scratchpad("own", op.users * (OWN_BYTES + USER_BYTES * op.users), UINT32, op.cores),
    )
