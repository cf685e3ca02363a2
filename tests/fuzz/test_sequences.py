"""Random sequences of calls on one device hold; `python -m tools.fuzz --kind sequences` makes more."""

import inspect

import pytest

import ttsim
from tools.fuzz.sequences.choices import Choices
from tools.fuzz.sequences.operations import BESIDE, NOT_DRAWN, OPERATIONS
from tools.fuzz.sequences.running import Record, Run, run
from tools.fuzz.sequences.state import Draft

PART = 8
LENGTH = 20
MODULES = {"": ttsim, "experimental.": ttsim.experimental, "onednn.": ttsim.onednn, "graph.": ttsim.graph}
IN_WORDS = {"convolution again", "program cache", "graph capture", "question", "filled L1", "onednn"}


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


@pytest.fixture(scope="module")
def tensors():
    """A run that has tensors of many kinds."""
    import numpy as np

    generator = np.random.default_rng(1)
    going = Run(Choices([0, 0, 0, 0]))
    made = 0
    for shape in ((1, 4, 8, 32), (1, 1, 32, 64), (2, 2, 4, 8), (32, 32)):
        for how in (
            "ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device",
            "ttsim.float32, device=device",
            "ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, memory_config=ttsim.L1_MEMORY_CONFIG",
        ):
            text = f't{made} = ttsim.from_numpy(numbers(1, {shape}, "positive"), {how})'
            exec(text, going.state.names)
            from tools.fuzz.sequences.state import Shadow, exactly

            tensor = going.state.names[f"t{made}"]
            going.state.shadows[f"t{made}"] = Shadow(made, f"t{made}", tensor, exactly(tensor))
            made += 1
    tensor = ttsim.to_memory_config(
        going.state.names["t3"], going.state.names["shards"]("HEIGHT", (32, 64), (0, 0, 0, 0))
    )
    going.state.names["t99"] = tensor
    going.state.shadows["t99"] = Shadow(99, "t99", tensor, exactly(tensor))
    return going, generator


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "convolution again"])
def test_the_steps_of_an_operation_call_it(name, tensors):
    going, generator = tensors
    wanted = {f"ttsim.{one}(" for one in BESIDE.get(name, ())}
    if name not in IN_WORDS | {"copy.copy", "Tensor.__getitem__"}:
        wanted.add(f"ttsim.{name}(")
    if name == "conv1d":
        wanted.add("ttsim.Conv1dConfig(")
    texts = ""
    for number in range(100, 500):
        step = OPERATIONS[name](Draft(Choices(generator), going.state, number))
        texts += "" if step is None else step.text
        if all(call in texts for call in wanted) and texts:
            return
    assert not [call for call in wanted if call not in texts]
    assert texts
