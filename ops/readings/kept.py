"""What was made of host tensors before, so that a script that passes the same weights again has them prepared once."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.numbers.formats import Array, bit_patterns
from device.plan import Work

MOST_BYTES: Final = 256 << 20  # weights of thirty million parameters, and what was made of them: a U-Net
FEW: Final = 16  # numbers that tell most arrays apart


@dataclass(frozen=True, slots=True)
class _Made:
    """An array, and what was made of it."""

    raw: Array
    made: Array

    @property
    def bytes(self) -> int:
        """Memory that both take, although the raw array may be somebody else's, too."""
        return self.raw.nbytes + self.made.nbytes


class KeptUploads:
    """Prepared arrays by what prepared them, found again by the content of the raw ones.

    Contents are compared, not hashed: reading both once costs a tenth of a hash that could be trusted, and is right.
    An array that somebody may still write to is neither kept nor looked up: it would change on both sides of the
    comparison. What was not used for longest goes first.

    Args:
        most_bytes: Bytes of raw and prepared arrays together that are kept.

    Attributes:
        bytes: Of all that is kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._made: OrderedDict[Work, list[_Made]] = OrderedDict()
        self.bytes = 0

    def made_of(self, raw: Array, work: Work, make: Callable[[], Array]) -> Array:
        """What a work makes of a host tensor.

        Args:
            raw: The tensor's values.
            work: What makes it; the same work makes the same of the same values.
            make: Does so.

        Returns:
            The array, read-only where it is kept.
        """
        if not _lasting(raw):
            return make()
        several = self._made.get(work, [])
        found = next((one for same in (_same_memory, _same_bits) for one in several if same(one.raw, raw)), None)
        if found is None:
            found = _Made(raw, make())
            found.made.flags.writeable = False
            self._made.setdefault(work, []).append(found)
            self.bytes += found.bytes
        self._made.move_to_end(work)
        self._drop()
        return found.made

    def clear(self) -> None:
        """Forgets everything."""
        self._made.clear()
        self.bytes = 0

    def _drop(self) -> None:
        """Forgets what was not used for longest, until the rest fits."""
        while self.bytes > self._most_bytes:
            work, several = next(iter(self._made.items()))
            self.bytes -= several.pop(0).bytes
            if not several:
                del self._made[work]


def _lasting(array: Array) -> bool:
    """Whether nobody can write to an array, nor to the one whose memory it is."""
    one: object = array
    while isinstance(one, np.ndarray):
        if one.flags.writeable:
            return False
        one = one.base
    return one is None


def _same_memory(kept: Array, raw: Array) -> bool:
    """Whether two arrays are the same numbers in the same place."""
    if kept.shape != raw.shape or kept.dtype != raw.dtype:
        return False
    here, there = kept.__array_interface__, raw.__array_interface__
    return (here["data"], here["strides"]) == (there["data"], there["strides"])


def _same_bits(kept: Array, raw: Array) -> bool:
    """Whether two arrays hold the same bits; others mostly differ at once."""
    if kept.shape != raw.shape or kept.dtype != raw.dtype:
        return False
    here, there = bit_patterns(kept), bit_patterns(raw)
    return np.array_equal(here.flat[:FEW], there.flat[:FEW]) and np.array_equal(here, there)
