"""The device operation of a conv2d program, as data for the passes over values and cycles."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from device.numbers.formats import DataFormat
from device.plan import DeviceOp
from ops.programs.conv2d.blocks import KBlock, k_block_order
from ops.programs.conv2d.buffers import ConvBuffers
from ops.programs.conv2d.parallel_config import HEIGHT, ConvOptions, ConvProblem
from ops.programs.conv2d.partition import ConvPartition
from ops.window import sliding_window_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dOp(DeviceOp):
    """One conv2d program."""

    layout: ConvPartition  # Sizes, options, partition, shards and blocks
    # The K blocks, first to last; they follow from the layout, so that a hash need not look at them
    k_blocks: tuple[KBlock, ...] = field(hash=False)
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    partials_format: DataFormat  # What partial sums are packed to between K blocks
    l1_accumulation: bool  # Partial sums are added in L1
    # Fused activation: its name in lower case and its parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None

    @classmethod
    def of(
        cls,
        layout: ConvPartition,
        *,
        fidelity_phases: int,
        activation: tuple[str, tuple[float, ...]] | None = None,
        buffers: ConvBuffers | None = None,
        k_blocks: tuple[KBlock, ...] | None = None,
    ) -> "Conv2dOp":
        """The program of a convolution; without buffers or K blocks it has the usual ones."""
        buffers = buffers or ConvBuffers.of(layout)
        if k_blocks is None:
            k_blocks = k_block_order(layout, layout.problem.kernel)
        return cls(
            layout=layout,
            k_blocks=k_blocks,
            fidelity_phases=fidelity_phases,
            partials_format=buffers.partials_format,
            l1_accumulation=buffers.l1_accumulation,
            activation=activation,
        )

    @property
    def problem(self) -> ConvProblem:
        """Sizes and formats."""
        return self.layout.problem

    @property
    def options(self) -> ConvOptions:
        """The caller's choices."""
        return self.layout.options

    def with_problem(self, **changes: Any) -> "Conv2dOp":
        """The same program for other sizes or formats."""
        return replace(self, layout=replace(self.layout, problem=replace(self.problem, **changes)))

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
        """How often a weight reader reads its part: once where all blocks stay in L1, else for every output block."""
        return 1 if self.layout.scheme is HEIGHT else self.out_blocks


def conv_attributes(op: Conv2dOp) -> tuple[tuple[str, str], ...]:
    """Blocks, buffers, cores and windows, by the names of the real device operation's attributes."""
    layout, blocks, options = op.layout, op.layout.blocks, op.options
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
        ("output_channels", str(op.problem.out_channels)),
        ("parallelization_config", _fields("Conv2dParallelizationConfig", parallelization)),
        (
            "sliding_window_config",
            sliding_window_text(
                op.problem.frame, config.cores, nhw_cores=config.nhw_cores, channel_cores=config.channel_cores
            ),
        ),
    )


def _fields(name: str, fields: Mapping[str, object]) -> str:
    return f"{name}({','.join(f'{key}={value}' for key, value in fields.items())})"
