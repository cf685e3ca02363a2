"""The tables of docs/device-file.md are what the sources say and what is measured."""

import pytest

from tools.device_file import BEGIN, DOCUMENT, END, documented, general, measured, written

PARTS = 4
TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_units_and_meanings_are_those_of_the_sources():
    tables = TEXT[TEXT.index(BEGIN) : TEXT.index(END)]
    assert tables == written(documented(TEXT)), "python -m tools.device_file writes the document anew"


def test_entries_of_a_list_are_one_field():
    assert general("reader.tilize[3].dst_16bit_cycles") == "reader.tilize.dst_16bit_cycles"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_fields_move_what_the_document_says(part):
    said = documented(TEXT)
    rest = [name for at, name in enumerate(said) if at % PARTS != part]
    for name, moves in measured(rest).items():
        assert said[name] == moves, name
