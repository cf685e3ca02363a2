"""The order of candidates and their ties, by hand-worked bars."""

import pytest

from device.errors import ArgumentError
from ttsim.runtime.queried import ExecutionStatus, RuntimeQueryResponse
from ttsim.study.ask.choice import Candidate, choice


def candidates(*figures):
    """Of (nanoseconds, error share, unmeasured share)."""
    return [
        Candidate(
            number,
            RuntimeQueryResponse(
                status=ExecutionStatus.Success, runtime=runtime, error_share=error, unmeasured_share=unmeasured
            ),
        )
        for number, (runtime, error, unmeasured) in enumerate(figures)
    ]


@pytest.mark.parametrize(
    ("figures", "best", "tied"),
    [
        ([(110, 0.04, 0.0), (100, 0.04, 0.0)], 1, [False, False]),  # up to 104, and from 105.6
        ([(110, 0.05, 0.0), (100, 0.05, 0.0)], 1, [False, True]),  # up to 105, and from 104.5
        ([(100, None, 1.0), (399, None, 1.0)], 0, [False, True]),  # up to 200, and from 199.5
        ([(100, None, 1.0), (401, None, 1.0)], 0, [False, False]),
        ([(100, 0.1, 0.5), (200, 0.0, 0.0)], 0, [False, False]),  # up to 100 x (0.5 + 0.05 + 1.0) = 155
        ([(100, 0.1, 0.5), (150, 0.0, 0.0)], 0, [False, True]),
        ([(7, 0.1, 0.0)], 0, [False]),
    ],
)
def test_candidates_tie_where_bars_overlap(figures, best, tied):
    chosen = choice(candidates(*figures))
    assert (chosen["best"], chosen["tie"]) == (best, any(tied))
    assert [row["tie"] for row in chosen["ranked"]] == tied
    times = [row["runtime"] for row in chosen["ranked"]]
    assert times == sorted(times)
    assert [row["times_best"] for row in chosen["ranked"]] == [round(time / times[0], 4) for time in times]


def test_equal_times_stay_in_the_order_of_the_question():
    assert [row["candidate"] for row in choice(candidates((5, 0.1, 0), (5, 0.1, 0)))["ranked"]] == [0, 1]


def test_what_does_not_run_or_has_no_time_is_not_ranked():
    refused = RuntimeQueryResponse(status=ExecutionStatus.Error, error_message="Out of Memory", refusal="memory")
    untimed = RuntimeQueryResponse(status=ExecutionStatus.Success, runtime=1, untimed=("Sort",))
    chosen = choice([Candidate(0, refused), *candidates((5, 0.1, 0))[:1], Candidate(2, untimed)])
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
