"""The order of candidates and their ties, by hand-worked bars."""

import pytest

from device.errors import ArgumentError
from ttsim.report.cycles import ErrorBar
from ttsim.runtime.queried import ExecutionStatus, RuntimeQueryResponse
from ttsim.study.ask.choice import Candidate, TimedPart, bounds, choice


def part(nanoseconds, share, identity="own", kind="Conv2d"):
    return TimedPart(identity, kind, nanoseconds, ErrorBar(share=share, configurations=0, text=""))


def candidates(*parts):
    """Candidates of these device operations."""
    runtimes = [sum(part.nanoseconds for part in each) for each in parts]
    responses = [RuntimeQueryResponse(status=ExecutionStatus.Success, runtime=runtime) for runtime in runtimes]
    return list(map(Candidate, range(len(parts)), responses, parts))


@pytest.mark.parametrize(
    ("parts", "best", "tied"),
    [
        ([[part(110, 0.04)], [part(100, 0.04)]], 1, [False, False]),  # up to 104, and from 105.6
        ([[part(110, 0.05)], [part(100, 0.05)]], 1, [False, True]),  # up to 105, and from 104.5
        ([[part(100, None)], [part(399, None)]], 0, [False, True]),  # up to 200, and from 199.5
        ([[part(100, None)], [part(401, None)]], 0, [False, False]),
        # up to 50 + 5 + 2 x 50 = 155
        ([[part(50, 0.1), part(50, None)], [part(200, 0.0)]], 0, [False, False]),
        ([[part(50, 0.1), part(50, None)], [part(150, 0.0)]], 0, [False, True]),
        ([[part(7, 0.1)]], 0, [False]),
    ],
)
def test_candidates_tie_where_bars_overlap(parts, best, tied):
    chosen = choice(candidates(*parts))
    assert (chosen["best"], chosen["tie"]) == (best, any(tied))
    assert [row["tie"] for row in chosen["ranked"]] == tied
    times = [row["runtime"] for row in chosen["ranked"]]
    assert times == sorted(times)
    assert [row["times_best"] for row in chosen["ranked"]] == [round(time / times[0], 4) for time in times]


def test_errors_of_shared_operations_cancel():
    halo = part(100, None, "halo")
    assert choice(candidates([halo, part(100, 0.05)], [halo, part(112, 0.05)]))["tie"] is False  # 105, and 106.4
    assert choice(candidates([halo, part(100, 0.05)], [halo, part(110, 0.05)]))["tie"] is True
    other = part(100, None, "another halo")
    assert choice(candidates([halo, part(100, 0.05)], [other, part(112, 0.05)]))["tie"] is True


def test_a_shared_operation_counts_as_often_as_both_candidates_run_it():
    halo, once, twice = part(100, None, "halo"), [part(10, 0.0)], [part(60, 0.0)]
    assert choice(candidates([halo, *once], [halo, halo, *twice]))["tie"] is False  # 10, and from 110
    assert choice(candidates([halo, halo, *once], [halo, *twice]))["ranked"][0]["candidate"] == 1
    assert choice(candidates([halo, halo, *once], [halo, *twice]))["tie"] is True  # up to 60, and from 60


def test_bounds_add_errors_of_one_kind_and_join_other_kinds_as_squares():
    assert bounds([part(100, 0.03), part(200, 0.03)]) == pytest.approx((291, 309))
    assert bounds([part(100, 0.03), part(100, 0.04, kind="Halo")]) == pytest.approx((195, 205))


def test_equal_times_stay_in_the_order_of_the_question():
    assert [row["candidate"] for row in choice(candidates([part(5, 0.1)], [part(5, 0.1)]))["ranked"]] == [0, 1]


def test_what_does_not_run_or_has_no_time_is_not_ranked():
    refused = RuntimeQueryResponse(status=ExecutionStatus.Error, error_message="Out of Memory", refusal="memory")
    untimed = RuntimeQueryResponse(status=ExecutionStatus.Success, runtime=1, untimed=("Sort",))
    chosen = choice([Candidate(0, refused), *candidates([part(5, 0.1)])[:1], Candidate(2, untimed)])
    assert [row["candidate"] for row in chosen["ranked"]] == [0]
    assert chosen["refused"] == [
        {"candidate": 0, "error_message": "Out of Memory", "refusal": "memory"},
        {"candidate": 2, "error_message": "no time: Sort", "refusal": "not simulated"},
    ]
    assert choice([Candidate(0, refused)]) == {
        "best": None, "tie": False, "ranked": [], "refused": [chosen["refused"][0]],
    }  # fmt: skip


def test_a_choice_has_candidates():
    with pytest.raises(ArgumentError, match=r"^choose has no candidates"):
        choice([])
