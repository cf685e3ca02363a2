"""What readers of the real library's profiles look for in a convolution."""

from collections.abc import Mapping

from ops.frame.told import sliding_window_text
from ops.programs.conv2d.work import ConvWork


def conv_attributes(work: ConvWork) -> tuple[tuple[str, str], ...]:
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
