"""The tables of docs/reference/device-fields.md are what the sources say and what is measured."""

import random

import pytest

from tools.device_fields import BEGIN, DOCUMENT, documented, general, measured, written

MEASURED_AGAIN = 12  # fields
TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_names_units_meanings_and_sources_are_those_of_the_code():
    """What fields move is taken from the document: measuring it is the slow test below."""
    assert TEXT[TEXT.index(BEGIN) :] == written(documented(TEXT)), (
        "python -m tools.device_fields writes the document anew"
    )


def test_entries_of_a_list_are_one_field():
    assert general("reader.tilize[3].dst_16bit_cycles") == "reader.tilize.dst_16bit_cycles"


@pytest.mark.slow
def test_fields_move_what_the_document_says():
    """Some fields, drawn with a fixed seed; `python -m tools.device_fields --all` measures all."""
    said = documented(TEXT)
    some = random.Random(0).sample(sorted(said), MEASURED_AGAIN)
    again = measured(set(said) - set(some))  # of tables nothing
    assert again == {name: said[name] for name in some if name in again}
    assert len(again) > MEASURED_AGAIN / 2
