"""The arguments of a call of group_norm."""

from dataclasses import dataclass

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNormArguments:
    """A call of group_norm."""

    source: TensorSpec  # [N, 1, H*W, C]
    groups: int
    epsilon: float = 1e-12
    weight: TensorSpec | None = None
    bias: TensorSpec | None = None
    mask: TensorSpec | None = None
    negative_mask: TensorSpec | None = None
    place: MemoryConfig | None = None  # Of the result; None for DRAM
    out_format: DataFormat | None = None
    grid: tuple[int, int] | None = None  # Columns and rows of cores; None for those of the shards
    blocks: int | None = None  # Parts of a core's rows; -1 lets the call choose
    inplace: bool = True
    out_layout: Layout | None = None  # None for that of the tensor
    use_welford: bool = False
    fidelity_phases: int = 4
    fp32_dest: bool | None = None  # None for a 32-bit Dst with float32 alone

    @property
    def written_layout(self) -> Layout:
        """Layout of the result."""
        return self.out_layout or self.source.layout

    @property
    def padded(self) -> bool:
        """Whether the last tiles of an image hold rows that are none of its pixels."""
        return self.source.layout is Layout.TILE and self.source.shape[2] % TILE != 0

    @property
    def welford(self) -> bool:
        """Whether the program of two passes over all pixels runs, which takes no padded rows."""
        return self.use_welford and not self.padded

    @property
    def stacked_mask(self) -> TensorSpec | None:
        """The mask as the program reads it: for padded images, the mask of the last tiles follows the normal mask."""
        if self.mask is None or not self.padded:
            return self.mask
        _, groups, high, wide = (1, 1, 1, 1, *self.mask.shape)[-4:]
        return self.mask.changed(shape=(1, 2 * groups, high, wide), memory_config=DRAM_MEMORY_CONFIG)

    @property
    def wide(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.source.data_format == FLOAT32 if self.fp32_dest is None else self.fp32_dest

    @property
    def mask_format(self) -> DataFormat:
        """Format of the mask; bfloat16 if the kernel makes the mask."""
        return BFLOAT16 if self.mask is None else self.mask.data_format
