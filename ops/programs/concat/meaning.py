"""What the work of a concatenation means."""

from typing import Final

from ops.meaning import Meaning
from ops.programs.concat.cycles import concat_account, concat_cycles
from ops.programs.concat.work import Concatenate, joined

MEANINGS: Final = (Meaning(work=Concatenate, values=joined, cycles=concat_cycles, account=concat_account),)
