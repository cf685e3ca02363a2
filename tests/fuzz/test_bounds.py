"""Random calls on invented machines are never faster than a resource, and what would be is found."""

from dataclasses import replace

import pytest

from ops.passes import cycles
from tools.fuzz import bounds


@pytest.mark.parametrize("index", range(40))
def test_calls_on_invented_machines(index):
    finding = bounds.check(seed=271126, index=index)
    assert finding.outcome in ("right", "none fits"), (finding.text, finding.again)


@pytest.mark.long
def test_many_calls_on_invented_machines():
    """`python -m tools.fuzz --kind bounds --count 5000` looks at more."""
    findings = [bounds.check(seed=271127, index=index) for index in range(1000)]
    assert [finding.text for finding in findings if finding.outcome == "fault"] == []
    assert sum(finding.outcome == "right" for finding in findings) > 900


def test_an_operation_that_is_too_fast_is_found(monkeypatch):
    monkeypatch.setattr(cycles, "floored", lambda timed, ends, phases, spec: replace(timed, cycles=1.0))
    finding = next(found for index in range(9) if (found := bounds.check(seed=1, index=index)).outcome == "fault")
    assert "takes 1 cycles" in finding.text
