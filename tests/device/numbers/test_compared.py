"""What was compared with recordings of the real kernels: one table for the code, the documents and whoever calls."""

import re
from pathlib import Path

import pytest

import ttsim
from device.numbers.vector_unit import COMPARED, FUNCTIONS, NARROW, UNCOMPARED_CALLS, WIDE, comparison, uncompared

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "values.md"
ROW = re.compile(r"^\| `(\w+)` \| (yes|no) \| (yes|no) \|", re.MULTILINE)


def test_the_document_has_the_table():
    rows = {name: (narrow == "yes", wide == "yes") for name, narrow, wide in ROW.findall(DOCUMENT.read_text())}
    assert rows == {
        name: (NARROW in COMPARED.get(name, ()), WIDE in COMPARED.get(name, ())) for name in ("relu", *FUNCTIONS)
    }


def test_functions_are_named_with_the_width_in_which_they_were_not_compared():
    assert uncompared(["relu", "exp"], fp32_dest=False) is None
    told = "numbers of exp in a 32-bit Dst never compared with the real kernel's"
    assert uncompared(["relu", "exp", "fill"], fp32_dest=True) == told
    told = "numbers of relu and tanh fused into add never compared with the real kernel's"
    assert uncompared(["relu", "tanh"], fp32_dest=False, fused_into="add") == told


@pytest.mark.parametrize("name", [name for name in ("relu", *FUNCTIONS) if hasattr(ttsim, name)])
def test_functions_say_so(name):
    assert comparison(name) in getattr(ttsim, name).__doc__


@pytest.mark.parametrize("name", sorted(UNCOMPARED_CALLS))
def test_calls_say_so(name):
    assert "Its outputs were never compared with recordings of the real library" in getattr(ttsim, name).__doc__
