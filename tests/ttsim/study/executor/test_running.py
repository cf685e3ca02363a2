import pickle
from concurrent.futures import BrokenExecutor, CancelledError, Future

import pytest

from device.errors import ArgumentError, DeviceError
from ops.op_models import load_spec
from ttsim.study.evaluate import Point, evaluate
from ttsim.study.executor import InProcess, PointExecutor, Run, look_into
from ttsim.study.store import Verdict
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
POINTS = [
    Point(spec=SPEC, layer=Layer(name=str(index), in_channels=32, out_channels=16, input_height=6, input_width=5))
    for index in range(12)
]


class Deadly(InProcess):
    """An executor that breaks, as one whose process is killed does, with all that is under way."""

    def __init__(self, kills):
        self.kills = kills
        self.held = []
        self.broken = False

    def submit(self, fn, /, *args, **kwargs):
        if self.broken:
            raise BrokenExecutor("broken")
        made = Future()
        self.held.append((made, fn, args))
        if len(self.held) == 2 or len(args[0]) == 1:  # two are under way at once, or one alone
            self._run()
        return made

    def _run(self):
        self.broken = any(self.kills(args[0]) for _, _, args in self.held)
        for future, fn, args in self.held:
            if self.broken:
                future.set_exception(BrokenExecutor("a process died"))
            else:
                future.set_result(fn(*args))

        self.held = []


def run(executor, lanes=2):
    rows = []
    Run(POINTS, PointExecutor(executor=executor, lanes=lanes, where="here"), rows.extend).go()
    return {row.layer: row for row in rows}


def test_all_points_have_their_rows():
    rows = run(InProcess)
    assert list(rows) == [point.layer.name for point in POINTS]
    assert rows["3"] == evaluate(POINTS[3])


def test_points_whose_process_was_killed_once_are_looked_into_again(monkeypatch):
    monkeypatch.setattr("ttsim.study.executor.CHUNKS_OF_A_WORKER", 2)
    killed = []

    def once(points):
        if killed or points[0] is not POINTS[3]:
            return False
        killed.append(points)
        return True

    assert run(lambda: Deadly(once)) == run(InProcess)
    assert len(killed) == 1


def test_a_point_that_kills_twice_is_a_row_and_no_other_is_blamed(monkeypatch):
    monkeypatch.setattr("ttsim.study.executor.CHUNKS_OF_A_WORKER", 2)
    rows = run(lambda: Deadly(lambda points: POINTS[5] in points))
    assert rows["5"].verdict is Verdict.LOST
    assert rows["5"].error == "the process that looked into this point died twice: BrokenExecutor: a process died"
    rows.pop("5")
    assert {row.verdict for row in rows.values()} == {Verdict.FITS}
    assert len(rows) == 11


def test_processes_that_always_die_end_the_run():
    with pytest.raises(DeviceError, match=r"what runs here ends whatever it looks into .*a process died"):
        run(lambda: Deadly(lambda points: True))


def test_what_a_future_that_was_canceled_stood_for_is_looked_into_again():
    class Canceling(InProcess):
        first = True

        def submit(self, fn, /, *args, **kwargs):
            if Canceling.first:
                Canceling.first = False
                made = Future()
                made.set_exception(CancelledError())
                return made
            return super().submit(fn, *args, **kwargs)

    assert run(Canceling) == run(InProcess)


def test_who_is_gone_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("ttsim.study.executor.LISTEN_SECONDS", 0.01)

    class Silent(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            return Future()

        def shutdown(self, wait=True, *, cancel_futures=False):
            raise AssertionError("nobody is there who could")

    answers = iter([True, True, False, False, False])
    crew = PointExecutor(executor=Silent, lanes=1, where="there", there=lambda: next(answers))
    with pytest.raises(DeviceError, match="nobody answers any more there"):
        Run(POINTS, crew, lambda rows: None).go()
    assert next(answers, None) is None


def test_an_interrupt_takes_what_is_ready():
    class Interrupted(InProcess):
        submitted = 0

        def submit(self, fn, /, *args, **kwargs):
            Interrupted.submitted += 1
            if Interrupted.submitted == 4:
                raise KeyboardInterrupt
            return super().submit(fn, *args, **kwargs)

    rows = []
    with pytest.raises(KeyboardInterrupt):
        Run(POINTS, PointExecutor(executor=Interrupted, lanes=1, where="here"), rows.extend).go()
    assert [row.layer for row in rows] == ["0", "1", "2"]


def test_workers_of_another_version_are_refused():
    with pytest.raises(ArgumentError, match="a worker has another version of ttsim"):
        look_into(POINTS[:1], "another")


def test_points_and_rows_travel():
    points = pickle.loads(pickle.dumps(POINTS[:2]))
    assert points[0].key == POINTS[0].key
    assert [evaluate(one) for one in points] == [evaluate(one) for one in POINTS[:2]]
