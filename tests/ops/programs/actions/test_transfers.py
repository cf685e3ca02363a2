"""Transfers one behind the other."""

import numpy as np
import pytest

from ops.programs.actions.transfers import burst_cycles, streamed_cycles


def test_what_takes_longer_of_issue_and_wire_decides():
    transfers, moved = np.array([2.0, 2.0]), np.array([10.0, 1000.0])
    assert streamed_cycles(20, transfers, moved, 10.0).tolist() == [40, 100]


@pytest.mark.parametrize(("transfer_bytes", "cycles"), [(100, 3 * 20 + 300 + 10), (400, 3 * 40 + 300 + 40)])
def test_a_burst_is_waited_for_until_its_last_transfer_is_answered(transfer_bytes, cycles):
    assert burst_cycles(20, 4, transfer_bytes, 300, 10.0) == cycles
