"""The one table of meanings: of every work that is planned here. A new folder of programs adds its line."""

from types import MappingProxyType
from typing import Final

from ops.meaning import Meanings
from ops.programs.conv2d.meaning import MEANINGS as CONV2D
from ops.programs.eltwise.meaning import MEANINGS as ELTWISE
from ops.programs.halo.meaning import MEANINGS as HALO
from ops.programs.matmul.meaning import MEANINGS as MATMUL
from ops.programs.movement.meaning import MEANINGS as MOVEMENT
from ops.programs.patch_matmul.meaning import MEANINGS as PATCH_MATMUL

MEANINGS: Final[Meanings] = MappingProxyType(
    {
        meaning.work: meaning
        for meaning in (
            *CONV2D,
            *ELTWISE,
            *HALO,
            *MATMUL,
            *MOVEMENT,
            *PATCH_MATMUL,
        )
    }
)
