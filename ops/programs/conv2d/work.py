"""What one conv2d program computes, as data for the readings of values and of cycles."""

from dataclasses import dataclass, field

from device.numbers.formats import DataFormat
from device.plan import Work
from ops.programs.conv2d.blocks import KBlock
from ops.programs.conv2d.layout import ConvLayout
from ops.programs.conv2d.partition import HEIGHT
from ops.programs.conv2d.problem import ConvOptions, ConvProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvWork(Work):
    """One conv2d program."""

    problem: ConvProblem  # Sizes and formats
    options: ConvOptions  # The caller's choices
    layout: ConvLayout  # Partition, shards and blocks
    # The K blocks, first to last; they follow from the fields above, so that a hash need not look at them
    k_blocks: tuple[KBlock, ...] = field(hash=False)
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    partials_format: DataFormat  # What partial sums are packed to between K blocks
    l1_accumulation: bool  # Partial sums are added in L1
    # Fused activation: its name in lower case and its parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None

    @property
    def out_blocks(self) -> int:
        """Output blocks of a core, one after the other."""
        return self.layout.shards.out_row_tiles // self.layout.blocks.act_h_tiles

    @property
    def weight_readers(self) -> int:
        """Cores that read weights from DRAM: HEIGHT one for all, BLOCK one for each slice of channels, WIDTH all."""
        return 1 if self.layout.scheme is HEIGHT else self.layout.out_config.channel_cores

    @property
    def weight_passes(self) -> int:
        """How often each of them reads its part: once where all blocks stay in L1, else for every output block."""
        return 1 if self.layout.scheme is HEIGHT else self.out_blocks
