"""What one conv2d program computes, as data for the readings of values and of cycles."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from device.numbers.formats import DataFormat
from device.plan import DeviceOp
from ops.programs.conv2d.blocks import KBlock
from ops.programs.conv2d.parallel_config import HEIGHT, ConvOptions, ConvProblem
from ops.programs.conv2d.partition import ConvPartition
from ops.window import sliding_window_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dOp(DeviceOp):
    """One conv2d program."""

    problem: ConvProblem  # Sizes and formats
    options: ConvOptions  # The caller's choices
    layout: ConvPartition  # Partition, shards and blocks
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


def conv_attributes(work: Conv2dOp) -> tuple[tuple[str, str], ...]:
    """Blocks, buffers, cores and windows, by the names of the real device operation's attributes."""
    layout, blocks, options = work.layout, work.layout.blocks, work.options
    config, out_config, box = layout.config, layout.out_config, layout.out_config.cores.bounding_box()
    block_config = {
        "act_block_h_ntiles": blocks.act_h_tiles,
        "act_block_w_ntiles": blocks.act_w_tiles,
        "out_subblock_h_ntiles": blocks.subblock_h_tiles,
        "out_subblock_w_ntiles": blocks.subblock_w_tiles,
    }
    parallelization = {
        "grid_size": f"(x={box.cols},y={box.rows})",
        "num_cores_nhw": config.nhw_cores,
        "num_cores_c_in": config.channel_cores,
        "num_cores_c_out": out_config.channel_cores,
        "per_core_out_matrix_height_ntile": layout.shards.out_row_tiles,
        "per_core_out_matrix_width_ntile": layout.shards.out_col_tiles,
    }
    return (
        ("block_config", _fields("Conv2dBlockConfig", block_config)),
        ("enable_act_double_buffer", str(options.act_double_buffer).lower()),
        ("enable_split_reader", str(layout.split_reader).lower()),
        ("enable_weights_double_buffer", str(options.weights_double_buffer).lower()),
        ("output_channels", str(work.problem.out_channels)),
        ("parallelization_config", _fields("Conv2dParallelizationConfig", parallelization)),
        (
            "sliding_window_config",
            sliding_window_text(
                work.problem.frame, config.cores, nhw_cores=config.nhw_cores, channel_cores=config.channel_cores
            ),
        ),
    )


def _fields(name: str, fields: Mapping[str, object]) -> str:
    return f"{name}({','.join(f'{key}={value}' for key, value in fields.items())})"
