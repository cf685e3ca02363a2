"""How a team of processes ends."""

from concurrent import futures

import pytest

from ttsim.study.ask.team import Team
from ttsim.study.executor import Workers


class Recorded(futures.Executor):
    """Futures that are never run, and how it was shut down."""

    def __init__(self):
        self.submitted, self.waited = [], None

    def submit(self, fn, /, *args, **kwargs):
        self.submitted.append(futures.Future())
        return self.submitted[-1]

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.waited = wait


@pytest.mark.parametrize("answered", [True, False])
def test_idle_processes_are_waited_for(answered):
    """Their pool would otherwise end beside Python; running questions take too long."""
    pool = Recorded()
    team = Team(Workers(start=lambda: pool, slots=1, where="here"), seconds=0)
    asked = team.ask("{}")
    if answered:
        pool.submitted[0].set_result(['{"refusal":null}'])
        team.result("{}", asked)
    team.end()
    assert pool.waited is answered
