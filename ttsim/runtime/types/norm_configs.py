"""Program configs of layer_norm and rms_norm."""

from collections.abc import Sequence
from typing import Annotated, Any

from device.cores import CoreCoord
from device.memory.memory_config import TILE, ShardSpec
from ops.planners.normalization.layer_norm import NormProgram
from ttsim.runtime.types.call import CheckedRecord, Kind, checked_as, param


def _core_coordinate(value: Any) -> CoreCoord:
    """A core, also from its column and row."""
    if isinstance(value, CoreCoord):
        return value
    if isinstance(value, Sequence) and len(value) == 2 and all(isinstance(side, int) for side in value):
        return CoreCoord(*value)
    raise TypeError("no core")


GridSize = Annotated[CoreCoord | tuple[int, int], Kind("CoreCoord or (x, y)", _core_coordinate)]


class LayerNormDefaultProgramConfig(CheckedRecord):
    """The program config for interleaved tensors.

    Examples:
        >>> ttnn.LayerNormDefaultProgramConfig().use_welford
        False
    """

    legacy_reduction: bool = param("Sum rows without the 32-bit mode of the reduction.", default=False)
    legacy_rsqrt: bool = param("Without effect, as in ttnn 0.81.1.", default=False)
    use_welford: bool = param("Take means and variances by the vector unit.", default=False)

    def argument(self) -> NormProgram:
        """The config as the planner's type."""
        return NormProgram(legacy_reduction=self.legacy_reduction, use_welford=self.use_welford)


class LayerNormShardedMultiCoreProgramConfig(CheckedRecord):
    """The program config for sharded tensors; a block is a shard, with sizes in tiles.

    Examples:
        >>> config = ttnn.LayerNormShardedMultiCoreProgramConfig(
        ...     compute_with_storage_grid_size=(8, 8), subblock_w=1, block_h=2, block_w=4, inplace=False)
        >>> config.block_w
        4
    """

    compute_with_storage_grid_size: GridSize = param("Columns and rows of the cores.")
    subblock_w: int = param("Tiles that are computed at a time, a divisor of `block_w`.")
    block_h: int = param("Rows of tiles of a shard.")
    block_w: int = param("Columns of tiles of a shard.")
    inplace: bool = param("Write the result into the input.")
    legacy_reduction: bool = param("Sum rows without the 32-bit mode of the reduction.", default=False)
    legacy_rsqrt: bool = param("Without effect, as in ttnn 0.81.1.", default=False)
    use_welford: bool = param(
        "Take means and variances by the vector unit; without effect unless shards are float32.", default=False
    )

    def argument(self) -> NormProgram:
        """The config as the planner's type."""
        grid = self.compute_with_storage_grid_size
        assert isinstance(grid, CoreCoord)
        return NormProgram(
            grid=(grid.x, grid.y),
            subblock_w=self.subblock_w,
            block_h=self.block_h,
            block_w=self.block_w,
            inplace=self.inplace,
            legacy_reduction=self.legacy_reduction,
            use_welford=self.use_welford,
        )


@checked_as(prefix="")
def create_layernorm_program_config(
    shard_spec: ShardSpec | None = None, tile_height: int = TILE, tile_width: int = TILE
) -> LayerNormDefaultProgramConfig | LayerNormShardedMultiCoreProgramConfig:
    """The program config that layer_norm chooses.

    Args:
        shard_spec: Shards of the input; None for an interleaved input.
        tile_height: Rows of a tile.
        tile_width: Columns of a tile.

    Returns:
        A config for the input's cores and shards, or the default config.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> cores = ttnn.num_cores_to_corerangeset(8, ttnn.CoreCoord(8, 8), row_wise=True)
        >>> ttnn.create_layernorm_program_config(ttnn.ShardSpec(cores, (64, 32))).block_h
        2
    """
    if shard_spec is None:
        return LayerNormDefaultProgramConfig()
    box, (high, wide) = shard_spec.grid.bounding_box(), shard_spec.shape
    return LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=CoreCoord(box.cols, box.rows),
        subblock_w=1,
        block_h=high // tile_height,
        block_w=wide // tile_width,
        inplace=False,
    )
