"""What the work of a pool program means."""

from typing import Final

from ops.meaning import Meaning
from ops.programs.pool2d.cycles import pool_cycles
from ops.programs.pool2d.work import MaxPool, largest

MEANINGS: Final = (Meaning(work=MaxPool, values=largest, cycles=pool_cycles),)
