"""Single calls of every operation with values: exact ones and fast ones, each compared with float64."""

from collections import Counter
from typing import Final

import numpy as np

from tools.fuzz.finding import Finding
from tools.fuzz.sequences import DEVICES, Fault, Run
from tools.random_calls import device_calls
from tools.random_calls.drafts import Choices, Draft
from tools.random_calls.operations import OPERATIONS
from tools.random_calls.tensors import image

# Operations that give no numbers, or none that are defined.
WITHOUT_VALUES: Final = ("deallocate", "filled L1", "command_queue", "empty", "empty_like", "prepare_grid_sample_grid")
NAMES: Final = tuple(
    name
    for name, operation in OPERATIONS.items()
    if operation.draw.__module__ != device_calls.__name__ and name not in WITHOUT_VALUES
)
ATTEMPTS: Final = 12  # calls that are drawn until one of them is accepted
TENSORS: Final = 3  # that calls are drawn of


def check(seed: int, index: int) -> Finding:
    """Makes a call on a device with exact values and on one with fast values."""
    name, counts = NAMES[index % len(NAMES)], Counter[str]()
    for values in ("exact", "fast"):
        draw = Choices(np.random.default_rng([seed, index]))
        going = Run(f'spec="{draw.pick(DEVICES)}", l1_small_size=32768, values="{values}"')
        try:
            compared = _made(going, name, seed, index)
            going.close()
        except Fault as fault:
            return Finding(outcome="fault", text=f"{values}: {fault}", again=going.script, calls=counts)
        counts["compared"] += compared
        counts["refused"] += going.counts["refused"] + going.counts["does not fit"]
    return Finding(outcome="right" if counts["compared"] else "none accepted", calls=counts)


def _made(going: Run, name: str, seed: int, index: int) -> bool:
    """Whether a call of an operation was accepted."""
    for number in range(TENSORS + 2 * ATTEMPTS):
        draft = Draft(np.random.default_rng([seed, index, number]), going.state, number)
        if number >= TENSORS and number % 2:
            going.carry_out(name, OPERATIONS[name](draft))
            if going.accepted[name]:
                return True
        else:  # one tensor more before each further attempt
            made = image(draft, 0.3) if draft.chance(0.3) else OPERATIONS["from_numpy"](draft)
            going.carry_out("from_numpy", made)
    return False
