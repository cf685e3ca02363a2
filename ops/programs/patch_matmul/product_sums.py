"""Products of positions and taps, added up where they belong.

A compiled loop goes position by position, in such an order that every sum has its products tap by tap, as numpy adds
them for all positions at once: both give the same numbers.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.numbers.formats import Array
from ops.window import PaddedAxis

NUMPY_SECONDS = 5e-9  # for a product that is added to a sum
MOST_KEPT = 16  # orders of positions, of 256 KiB at most


class SumPlaces(NamedTuple):
    """Where products belong."""

    axes: tuple[PaddedAxis, ...]  # Of the patches; their step is 1
    # For each axis, where each tap of the first position adds to, counted from the first output
    taps: tuple[tuple[int, ...], ...]
    lows: tuple[int, ...]  # The first place of each axis that anything adds to, likewise
    lengths: tuple[int, ...]  # Places of each axis
    single: bool  # No sum has more than one product
    tap_first: bool  # Products of a position are [*taps, O], not [O, *taps]


def add_products(places: SumPlaces, box: tuple[slice, ...], products: Array, total: Array) -> None:
    """Adds the products of some positions.

    Args:
        places: Where they belong.
        box: Images and positions.
        products: float32 [positions, taps * O] or [positions, O * taps].
        total: float32 [N, *lengths, O]; zeros before the first.
    """
    there = products.flags.c_contiguous and total.flags.c_contiguous and not places.single
    if there and worth_loading("ops.programs.patch_matmul.loops", products.size * NUMPY_SECONDS):
        loops, channels = loops_of("ops.programs.patch_matmul.loops"), total.shape[-1]
        apart = (channels, 1) if places.tap_first else (1, products.shape[1] // channels)
        order, taps = _order(places, tuple((span.start, span.stop) for span in box))
        loops.add_up_products(order, taps, products.reshape(-1), apart, total.reshape(-1, channels))
    else:
        _by_numpy(places, box, products, total)


@lru_cache(MOST_KEPT)
def _order(places: SumPlaces, spans: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """Positions in an order in which every sum has its products tap by tap.

    Of two positions that add to one sum, the one that lies further on does so with a tap that belongs less far: it
    comes first where taps belong further and further, and else last.

    Args:
        places: Where products belong.
        spans: First image, and the one behind the last; then positions of each axis likewise.

    Returns:
        Numbers of positions and the sums that their first taps belong to, counted through: int64 [positions, 2]; how
        much further the sums of each tap are, int64 [taps].
    """
    counts = [stop - start for start, stop in spans]
    apart = [prod(places.lengths[at:]) for at in range(len(places.lengths) + 1)]
    numbers, sums, taps = np.arange(prod(counts)).reshape(counts), np.arange(*spans[0]) * apart[0], np.zeros((), int)
    order = [slice(None)]
    for span, axis, offsets, low, each in zip(spans[1:], places.axes, places.taps, places.lows, apart[1:], strict=True):
        sums = np.add.outer(sums, (np.arange(*span) * axis.input_dilation + offsets[0] - low) * each)
        taps = np.add.outer(taps, (np.array(offsets) - offsets[0]) * each)
        order.append(slice(None, None, -1 if offsets[-1] > offsets[0] else 1))
    found = np.stack([one[tuple(order)].reshape(-1) for one in (numbers, sums)], axis=1), taps.reshape(-1)
    for array in found:
        array.flags.writeable = False
    return found


def _by_numpy(places: SumPlaces, box: tuple[slice, ...], products: Array, total: Array) -> None:
    """The same, tap by tap for all positions."""
    counts, channels = [one.stop - one.start for one in box], total.shape[-1]
    tap_counts = [len(offsets) for offsets in places.taps]
    if places.tap_first:
        products = products.reshape(*counts, *tap_counts, channels)
    else:
        products = np.moveaxis(products.reshape(*counts, channels, *tap_counts), len(counts), -1)
    for tap in np.ndindex(*tap_counts):
        there = (
            slice(
                span.start * axis.input_dilation + offsets[k] - low,
                (span.stop - 1) * axis.input_dilation + offsets[k] - low + 1,
                axis.input_dilation,
            )
            for span, axis, offsets, k, low in zip(box[1:], places.axes, places.taps, tap, places.lows, strict=True)
        )
        part = total[(box[0], *there)]
        met = products[(..., *tap, slice(None))]
        if places.single:
            part[...] = met
        else:
            part += met
