"""Every field of every device has a meaning, in the words of its dataclass."""

from inspect import cleandoc

import pytest

from device.spec.device_spec import catalog_names
from device.spec.parts import GridSpec
from ops.op_models import load_spec
from ops.sensitivity.fields import fields_of, table_words, words_of


@pytest.mark.parametrize("name", catalog_names())
def test_every_field_has_a_meaning(name):
    silent = [field.name for field in fields_of(load_spec(name)) if not words_of(field.path)]
    assert not silent


def test_words():
    assert words_of(("dram", "banks")) == "Independent banks; interleaved buffers spread over all."
    assert words_of(("reader", "tilize", 2, "dst_16bit_cycles")) == "With 16-bit destination registers."
    assert words_of(("conv_costs", "start_cycles")) == "Kernel start and skew between cores."
    assert "(there may be none) has a network" in words_of(("noc", "worker_cols"))  # of two lines
    assert table_words(("grid",)) == "The worker cores a program can use."
    assert table_words(()) == "One kind of device."


def test_words_do_not_hang_on_indentation(monkeypatch):
    """Python 3.13 takes it from the text of a class, older ones leave it."""
    monkeypatch.setattr(GridSpec, "__doc__", cleandoc(GridSpec.__doc__))
    assert words_of(("grid", "cols")) == "Cores in a row, at most 64."
    assert table_words(("grid",)) == "The worker cores a program can use."
