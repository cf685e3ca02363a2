"""Random sequences of calls on one device hold; `python -m tools.fuzz --kind sequences` makes more."""

import contextlib
import inspect

import numpy as np
import pytest

import ttsim
from tools.fuzz.sequences.operations import BESIDE, NOT_DRAWN, OPERATIONS
from tools.fuzz.sequences.running import Fault, Record, Run, run
from tools.fuzz.sequences.state import Choices, Draft, Expected, Step

PART = 8
LENGTH = 20
MODULES = {"": ttsim, "experimental.": ttsim.experimental, "onednn.": ttsim.onednn, "graph.": ttsim.graph}
IN_WORDS = {"convolution again", "program cache", "graph capture", "question", "filled L1", "onednn"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A folder for the files of `dump_tensor`, which drawn calls write where they run."""
    monkeypatch.chdir(tmp_path)


def faults(seed, first, count):
    """What does not hold, with a script that shows it."""
    for index in range(first, first + count):
        outcome = run(Record((seed, index)), LENGTH)
        if outcome.fault is not None:
            yield f"seed {seed}, index {index}: {outcome.fault}\n{outcome.script}"


@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("first", range(0, 4 * PART, PART))
def test_a_few_sequences(first):
    assert not list(faults(20281, first, PART))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_collections")
@pytest.mark.parametrize("seed", range(20282, 20286))
def test_more_sequences(seed):
    assert not list(faults(seed, 0, 25))


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
    drawn = set(OPERATIONS) - IN_WORDS - {"copy.copy", "Tensor.__getitem__"}
    drawn |= {name for names in BESIDE.values() for name in names}
    everything = set(exported()) | {"onednn.run"}
    assert everything - drawn - set(NOT_DRAWN) == set()
    assert (drawn | set(NOT_DRAWN)) - everything == set()
    assert drawn & set(NOT_DRAWN) == set()
    assert all(len(reason) > 10 for reason in NOT_DRAWN.values())


def begun():
    """A run that begins with tensors of many kinds, and with weights that a convolution prepared."""
    going = Run(Choices([0, 0, 0, 0]))
    tiles, rows = "ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device", "ttsim.float32, device=device"
    sharded = f'{tiles}, memory_config=shards("HEIGHT", (32, 64), (0, 0, 0, 0))'
    host = "ttsim.bfloat16"
    kinds = [
        ((32, 32), host),
        ((1, 4, 8, 32), tiles),
        ((1, 4, 8, 32), rows),
        ((1, 1, 32, 64), tiles),
        ((1, 1, 32, 64), rows),
    ]
    for number, (shape, how) in enumerate([*kinds, ((32, 64), sharded)]):
        text = f't{number} = ttsim.from_numpy(numbers(1, {shape}, "positive"), {how})'
        held = going.state.names["numbers"](1, shape, "positive")
        made = Expected(values=held, bound=0.02)
        going.carry_out("from_numpy", Step(text=text, results={f"t{number}": lambda made=made: made}), number)
    return going


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_called_and_accepted(name):
    generator = np.random.default_rng(1)
    wanted = {f"ttsim.{one}(" for one in BESIDE.get(name, ())}
    if name not in IN_WORDS | {"copy.copy", "Tensor.__getitem__"}:
        wanted.add(f"ttsim.{name}(")
    texts, accepted = "", 0
    for number in range(100, 500):
        if number % 10 == 0:
            going = begun()
            while name == "convolution again" and not any(one in going.state.shadows for one in going.state.prepared):
                going = begun()
                first = OPERATIONS["conv2d"](Draft(Choices(generator), going.state, 9))
                if first is not None:
                    going.carry_out("conv2d", first, 9)
        step = OPERATIONS[name](Draft(Choices(generator), going.state, number))
        texts += "" if step is None else step.text
        if step is not None and not accepted:
            with contextlib.suppress(Fault):  # here it is enough that some call is right
                going.carry_out(name, step, number)
            accepted = going.accepted[name]
        if accepted and all(call in texts for call in wanted):
            return
    assert accepted
    assert not [call for call in wanted if call not in texts]
