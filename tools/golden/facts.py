"""What tensors and the library say about themselves, and what else users do with tensors."""

from typing import Final

from tools.golden.drawing import LAYOUTS, Draw

DUMPED: Final = """\
import hashlib, pathlib, tempfile
with tempfile.TemporaryDirectory(prefix="golden-") as folder:
    path = pathlib.Path(folder, "x.tensorbin")
    ttnn.dump_tensor(path, x.cpu())
    y = [hashlib.sha256(path.read_bytes()).hexdigest()[:20], ttnn.load_tensor(path)]"""
SHARDED: Final = """\
kinds = (ttnn.ShardStrategy.HEIGHT, ttnn.ShardStrategy.WIDTH, ttnn.ShardStrategy.BLOCK)
grid = ttnn.CoreGrid(x=4, y=2)
y = [ttnn.create_sharded_memory_config((1, 1, {rows}, 256), core_grid=grid, strategy=kind) for kind in kinds]"""


def facts(draw: Draw) -> str:
    """One thing that is said about the tensor x, done with it, or asked of the library."""
    draw.tensor("x", draw.shape())
    grid = "device.compute_with_storage_grid_size()"
    return draw.pick(
        (
            "y = repr(x)",
            "y = [ttnn.is_sharded(x), ttnn.has_tile_padding(x), ttnn.get_memory_config(x), x.layout]",
            "y = [x.shape, x.padded_shape, x.dtype, x.volume(), x.storage_type()]",
            f"y = ttnn.{draw.pick(('tile_size', 'element_size'))}(x.dtype)",
            f"y = ttnn.get_conv_output_dim({draw.number(8, 64)}, 3, 2, 1)",
            f"y = x.reshape({draw.pick(('1, 1, -1, 32', '-1', '7, 7'))})",
            f"y = x.cpu().to(ttnn.{draw.pick(LAYOUTS)})",
            f"y = x[..., : {draw.number(1, 40)}]",
            "y = x * 2.0 - x",
            "ttnn.deallocate(x)\ny = x.buffer_address()",
            "y = [ttnn.load_spec(name).to_dict() for name in ttnn.device_names()]",
            SHARDED.format(rows=32 * draw.number(1, 9)),
            f"y = ttnn.num_cores_to_corerangeset({draw.number(1, 70)}, {grid}, row_wise={draw.chance(0.5)})",
            DUMPED,
            "y = ttnn.allocate_tensor_on_device(x.spec, device)\nttnn.copy_host_to_device_tensor(x.cpu(), y)",
        )
    )
