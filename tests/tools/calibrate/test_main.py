"""python -m tools.calibrate."""

import sys

from tools.calibrate.__main__ import main


def test_command_prints_what_it_used_and_both_errors(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tools.calibrate", "--arch", "wormhole_b0", "--programs", "conv"])
    main()
    printed = capsys.readouterr().out
    for title in ("figures", "in sample", "cross-validated by configuration"):
        assert f"wormhole_b0: {title}" in printed
    assert "transfer_costs_page_issue_cycles" in printed
    assert "blackhole" not in printed
