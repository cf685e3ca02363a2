"""python -m tools.calibrate."""

import sys

from tools.calibrate.__main__ import main


def test_command_prints_what_it_used_and_both_errors(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tools.calibrate"])
    main()
    printed = capsys.readouterr().out
    for architecture in ("wormhole_b0", "blackhole"):
        assert f"{architecture}: constants of ConvCosts" in printed
        assert f"{architecture}: in sample" in printed
        assert f"{architecture}: cross-validated by configuration" in printed
    assert "weight_issue_cycles" in printed
