"""The one table of meanings."""

from importlib import import_module
from pathlib import Path

import pytest

from device.plan import Work
from ops.meanings import MEANINGS

PROGRAMS = Path(__file__).resolve().parents[2] / "ops" / "programs"
MODULES = [
    import_module(f"ops.programs.{path.parent.name}.{path.stem}")
    for path in sorted(PROGRAMS.glob("*/*.py"))
    if path.stem != "__init__"
]


def works():
    """Every class of work that a folder of programs defines."""
    return {
        found
        for module in MODULES
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Work) and found.__module__ == module.__name__
    }


def test_every_work_of_every_program_has_a_meaning():
    assert set(MEANINGS) == works()
    assert all(meaning.work is work for work, meaning in MEANINGS.items())


def test_the_table_is_not_to_be_changed():
    with pytest.raises(TypeError):
        MEANINGS[Work] = None


def test_what_has_no_model_of_its_cycles():
    """Host works have none by nature; these device operations run untimed, and reports say so."""
    names = {work.__name__ for work, meaning in MEANINGS.items() if meaning.cycles is None}
    assert names == {
        "PrepareWeights", "PrepareBias", "PrepareSticks", "PrepareTaps", "AddRow", "Activate", "FoldWindows"
    }  # fmt: skip
