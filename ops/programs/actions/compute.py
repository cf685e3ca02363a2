"""What the compute threads take for a tile, from the widths of the machine and the constants of `ComputeCosts`."""

from device.numbers.formats import DataFormat
from device.spec.device_spec import DeviceSpec
from ops.programs.actions.costs import ComputeCosts


def unpack_tile_cycles(spec: DeviceSpec, tile_bytes: float) -> float:
    """A tile comes from L1 into the matrix unit's registers."""
    return max(spec.compute.unpack_tile_cycles, tile_bytes / spec.compute.unpack_bytes_per_cycle)


def pack_tile_cycles(spec: DeviceSpec, tile_bytes: float) -> float:
    """A tile goes from the destination registers to L1."""
    return tile_bytes / spec.compute.pack_bytes_per_cycle


def tilize_tile_cycles(spec: DeviceSpec, source: DataFormat, target: DataFormat) -> float:
    """Sticks of one tile become that tile: unpacked, then packed."""
    moved = unpack_tile_cycles(spec, source.tile_bytes) + pack_tile_cycles(spec, target.tile_bytes)
    return spec.costs_of(ComputeCosts).tilize_tile_cycles + moved


def turn_tile_cycles(spec: DeviceSpec, data_format: DataFormat) -> float:
    """The unpacker turns a tile on its way to the destination registers; then it is packed.

    No measurement; composed of both ways.
    """
    return unpack_tile_cycles(spec, data_format.tile_bytes) + pack_tile_cycles(spec, data_format.tile_bytes)


def untilize_row_cycles(spec: DeviceSpec, width_tiles: int) -> float:
    """A row of tiles becomes sticks: by the packer if it fits one half of the destination registers."""
    return spec.costs_of(ComputeCosts).untilize_block_cycles + width_tiles * untilize_tile_cycles(spec, width_tiles)


def untilize_tile_cycles(spec: DeviceSpec, width_tiles: int) -> float:
    """One tile of a row of so many."""
    costs = spec.costs_of(ComputeCosts)
    narrow = width_tiles <= spec.compute.dst_half_tiles(fp32_dest=False)
    return costs.untilize_narrow_tile_cycles if narrow else costs.untilize_wide_tile_cycles


def add_row_cycles(spec: DeviceSpec, tiles: float) -> float:
    """A row is added to the tiles of an output block, as a bias is."""
    costs = spec.costs_of(ComputeCosts)
    return costs.block_cycles + tiles * costs.add_tile_cycles
