"""python -m tools.calibrate."""

import sys

import pytest

from tools.calibrate.__main__ import ROWS, main


@pytest.fixture
def some(tmp_path):
    """A folder with every third convolution of the measured rows, and all halos."""
    for program, step in (("conv", 3), ("halo", 1)):
        header, *rows = (ROWS / f"{program}.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"{program}.csv").write_text("".join([header, *rows[::step]]), encoding="utf-8")
    return tmp_path


def test_command_prints_what_it_used_and_both_errors(capsys, monkeypatch, some):
    monkeypatch.setattr(sys, "argv", ["tools.calibrate", str(some), "--arch", "wormhole_b0", "--programs", "conv"])
    main()
    printed = capsys.readouterr().out
    for title in ("figures", "in sample", "cross-validated by configuration"):
        assert f"wormhole_b0: {title}" in printed
    assert "transfer_costs_page_issue_cycles" in printed
    assert "all of conv" in printed
    assert "all of halo" not in printed
    assert "blackhole" not in printed
