"""Every exported operation is drawn by random sequences, and accepted."""

import contextlib
import inspect

import numpy as np
import pytest

import ttsim
from tools.fuzz.sequences import Fault, Run
from tools.random_calls.drafts import Choices, Draft, Expected, Step
from tools.random_calls.operations import BESIDE, NOT_DRAWN, OPERATIONS

MODULES = {"": ttsim, "experimental.": ttsim.experimental, "onednn.": ttsim.onednn, "graph.": ttsim.graph}
IN_WORDS = {"convolution again", "program cache", "graph capture", "question", "filled L1", "onednn", "copy.copy"}
IN_WORDS |= {"Tensor.__getitem__"}


def exported():
    """Every function of the library by its name after `ttsim.`."""
    for prefix, module in MODULES.items():
        names = module.__all__ if prefix in ("", "experimental.", "onednn.") else vars(module)
        for name in names:
            function = getattr(module, name)
            own = prefix == "" or inspect.getmodule(function) is module or prefix == "experimental."
            if inspect.isfunction(function) and own and not name.startswith("_"):
                yield prefix + name


def test_every_exported_operation_is_drawn_or_named_with_a_reason():
    drawn = set(OPERATIONS) - IN_WORDS | {name for names in BESIDE.values() for name in names}
    everything = set(exported()) | {"onednn.run"}
    assert everything - drawn - set(NOT_DRAWN) == set()
    assert (drawn | set(NOT_DRAWN)) - everything == set()
    assert drawn & set(NOT_DRAWN) == set()


def begun():
    """A run that begins with tensors of many kinds."""
    going = Run(Choices([0, 0, 0, 0]))
    tiles, rows = "ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device", "ttsim.float32, device=device"
    sharded = f'{tiles}, memory_config=shards("HEIGHT", (32, 64), (0, 0, 0, 0))'
    image, matrix = (1, 4, 8, 32), (1, 1, 32, 64)
    kinds = [((32, 32), "ttsim.bfloat16"), (image, tiles), (image, rows), (matrix, tiles), (matrix, rows)]
    for number, (shape, how) in enumerate([*kinds, ((32, 64), sharded)]):
        text = f't{number} = ttsim.from_numpy(numbers(1, {shape}, "positive"), {how})'
        made = Expected(values=going.state.names["numbers"](1, shape, "positive"), bound=0.02)
        going.carry_out("from_numpy", Step(text=text, results={f"t{number}": lambda made=made: made}), number)
    return going


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_called_and_accepted(name):
    generator = np.random.default_rng(1)
    wanted = {f"ttsim.{function}(" for function in BESIDE.get(name, ())}
    wanted |= set() if name in IN_WORDS else {f"ttsim.{name}("}
    texts, accepted = "", 0
    for number in range(100, 500):
        if number % 10 == 0:
            going = begun()
            while name == "convolution again" and not going.state.prepared.keys() & going.state.shadows.keys():
                going = begun()
                first = OPERATIONS["conv2d"](Draft(generator, going.state, 9))
                if first is not None:
                    going.carry_out("conv2d", first, 9)
        step = OPERATIONS[name](Draft(generator, going.state, number))
        texts += "" if step is None else step.text
        if step is not None and not accepted:
            with contextlib.suppress(Fault):  # here it is enough that some call is right
                going.carry_out(name, step, number)
            accepted = going.accepted[name]
        if accepted and all(call in texts for call in wanted):
            return
    assert accepted
    assert not [call for call in wanted if call not in texts]
