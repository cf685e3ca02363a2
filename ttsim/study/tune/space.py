"""What a convolution can be told that changes its plan and not its result (docs/planning.md, Arguments).

A *family* is a call laid out in one way: slices, scheme, cores, blocks, readers. Its *members* differ in what is
buffered twice, whether the halo's output is moved, and the layout of the output; its first member takes no more cycles
and L1 at least (`ops.planners.lower_bounds`) than any other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import TILE, BufferType, Layout, TensorMemoryLayout
from device.numbers.block_floats import div_up
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, ConvConfig, SliceConfig, SliceType, is_matmul, takes_l1_path
from ops.planners.conv.operands import PartitionedConv, partition_call
from ops.planners.conv.slicing import most_slices
from ops.planners.lower_bounds import pieces
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH
from ops.window import NoWindowError

SCHEMES: Final = (HEIGHT, BLOCK, WIDTH)
MOST_SLICES: Final = 32  # along an axis
# What decides the result, or belongs to whoever calls, and stays as it is given.
HELD: Final = (
    "weights_format",
    "activation",
    "replicate_padding",
    "deallocate_activation",
    "config_tensors_in_dram",
    "enable_kernel_stride_folding",
)
# Fields that are searched; each may be kept as it is given.
SEARCHED: Final = (
    "slices",
    "shard_layout",
    "core_grid",
    "transpose_shards",
    "act_block_h_override",
    "act_block_w_div",
    "full_inner_dim",
    "enable_activation_reuse",
    "force_split_reader",
    "enable_act_double_buffer",
    "enable_weights_double_buffer",
    "reallocate_halo_output",
    "output_layout",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is searched."""

    call: ConvCall  # The call as it is given
    spec: DeviceSpec
    free_l1_bytes: int  # Free bytes of every L1 bank when the call begins
    kept: frozenset[str] = frozenset()  # Fields of `SEARCHED` that stay as they are given

    def plain(self) -> ConvCall:
        """The call with all that is searched left to the library, kept fields included."""
        given = self.call.conv_config
        config = ConvConfig(**{name: getattr(given, name) for name in HELD})
        slices = self.call.slice_config if takes_l1_path(self.call) else None
        return replace(self.call, conv_config=config, slice_config=slices)

    def families(self) -> Iterator[ConvCall]:
        """The first member of every family, those that say least first."""
        for sliced in self._slicings():
            for partitioned in self._schemes(sliced):
                yield from self._blocks(partitioned)

    def members(self, first: ConvCall) -> Iterator[ConvCall]:
        """All calls of a family, given its first."""
        whole = takes_l1_path(first)
        given = self.call.conv_config.output_layout
        choices = {
            "output_layout": (given, *(one for one in (Layout.TILE, Layout.ROW_MAJOR) if one is not given)),
            "reallocate_halo_output": (True, False) if whole else (True,),
            "enable_act_double_buffer": (False, True),
            "enable_weights_double_buffer": (False, True),
        }
        if not whole and first.slice_config is not None and first.slice_config.slice_type is not SliceType.L1_FULL:
            choices["output_layout"] = (first.conv_config.output_layout,)
        free = {name: values for name, values in choices.items() if name not in self.kept}
        for values in product(*free.values()):
            yield _with(first, **dict(zip(free, values, strict=True)))

    def _slicings(self) -> Iterator[ConvCall]:
        """The call with every way to cut it, and all else of the config as in the first member of a family."""
        given = self.call.conv_config
        held = {name: getattr(given, name) for name in (*HELD, *self.kept & set(ConvConfig.__dataclass_fields__))}
        if "core_grid" in self.kept:
            held["override_sharding_config"] = given.override_sharding_config
        base = replace(self.call, conv_config=ConvConfig(**held))
        if "slices" in self.kept or takes_l1_path(replace(base, slice_config=None)) or is_matmul(base):
            yield base
            return
        layouts = [base.conv_config.output_layout]
        if "output_layout" not in self.kept:
            layouts += [one for one in (Layout.TILE, Layout.ROW_MAJOR) if one is not layouts[0]]
        yield replace(base, slice_config=None)
        yield replace(base, slice_config=SliceConfig(slice_type=SliceType.L1_FULL))
        for layout, kind in product(layouts, (SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH)):
            cut = _with(base, output_layout=layout)
            for count in _slice_counts(cut, kind):
                yield replace(cut, slice_config=SliceConfig(slice_type=kind, num_slices=count))

    def _schemes(self, call: ConvCall) -> Iterator[ConvCall]:
        """Every scheme and every rectangle of cores, the library's choice first."""
        yield call
        if "shard_layout" in self.kept:
            schemes: Iterable[TensorMemoryLayout] = filter(None, [call.conv_config.shard_layout])
        else:
            schemes = SCHEMES
        place = call.input.spec.memory_config
        anew = not call.input.on_host and place.is_sharded() and place.buffer_type is BufferType.L1
        for scheme in schemes:
            turned = (False, True) if scheme is BLOCK and "transpose_shards" not in self.kept else (False,)
            for transposed in turned:
                chosen = _with(
                    call,
                    shard_layout=scheme,
                    transpose_shards=transposed or call.conv_config.transpose_shards,
                    reshard_if_not_optimal=anew or call.conv_config.reshard_if_not_optimal,
                )
                yield chosen
                if "core_grid" not in self.kept and takes_l1_path(call) and not is_matmul(call):
                    for grid in _grids(self.spec):
                        yield _with(chosen, override_sharding_config=True, core_grid=grid)

    def _blocks(self, call: ConvCall) -> Iterator[ConvCall]:
        """Every block that can differ, of one reader and of two; the call itself first."""
        yield call
        try:
            found = pieces(call, self.spec, free_l1_bytes=self.free_l1_bytes)
            partitioned, many = [partition_call(piece, self.spec) for piece, _ in found], [count for _, count in found]
        except (DeviceError, NoWindowError):
            return
        if not partitioned:
            return
        largest = max(partitioned, key=lambda one: one.layout.shards.out_rows)
        scheme, whole = largest.layout.scheme, largest.layout
        choices: dict[str, Iterable[Any]] = {}
        if "act_block_h_override" not in self.kept:
            choices["act_block_h_override"] = (
                0,
                *(TILE * tiles for tiles in self._heights(call, largest, cut=sum(many) > 1)),
            )
        if "act_block_w_div" not in self.kept and scheme is WIDTH:
            choices["act_block_w_div"] = _divisors(whole.blocks.act_w_tiles)
        if "force_split_reader" not in self.kept and scheme is not WIDTH:
            choices["force_split_reader"] = (None, False) if scheme is BLOCK else (None, True, False)
        if "full_inner_dim" not in self.kept and scheme is BLOCK and not call.rules.transposed:
            choices["full_inner_dim"] = (False, True)
        if "enable_activation_reuse" not in self.kept and scheme is HEIGHT and call.rules.reuses_activations:
            choices["enable_activation_reuse"] = (False, True)
        for number, values in enumerate(product(*choices.values())):
            if number:
                yield _with(call, **dict(zip(choices, values, strict=True)))

    def _heights(self, call: ConvCall, piece: PartitionedConv, *, cut: bool) -> list[int]:
        """Heights of blocks in tiles that cut a core's share, or deal the rows to fewer cores, and may fit.

        Where the height does not choose the cores, because they are given or those of a slice, divisors of the share
        alone: any other height is lowered to one of them.
        """
        share, layout = piece.layout.shards.out_row_tiles, piece.layout
        row_bytes = layout.blocks.act_w_tiles * piece.problem.out_format.tile_bytes  # of a tilized block
        most = self.spec.l1.usable_bytes // row_bytes
        if cut or call.conv_config.override_sharding_config or layout.scheme is WIDTH:
            return [tiles for tiles in _divisors(share) if tiles < min(share, most + 1)]
        rows = div_up(piece.problem.out_rows, TILE)
        fewer = {div_up(rows, cores) for cores in range(1, layout.config.nhw_cores)}
        return sorted(tiles for tiles in {*range(1, share), *fewer} - {share} if tiles <= most)


def _with(call: ConvCall, **changes: Any) -> ConvCall:
    return replace(call, conv_config=replace(call.conv_config, **changes))


def _slice_counts(call: ConvCall, kind: SliceType) -> list[int]:
    """Numbers of slices of which the largest is smaller than with fewer."""
    try:
        most = most_slices(call, kind)
    except NoWindowError:
        return []
    found, smallest = [], most
    for count in range(2, min(most, MOST_SLICES) + 1):
        if (largest := div_up(most, count)) < smallest:
            smallest = largest
            found.append(count)
    return found


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _grids(spec: DeviceSpec) -> list[CoreRangeSet]:
    """All rectangles from core (0, 0) on."""
    sizes = product(range(1, spec.grid.rows + 1), range(1, spec.grid.cols + 1))
    return [CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1))) for rows, cols in sizes]
