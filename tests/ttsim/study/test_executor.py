"""Workers of studies: chunks, processes that die or are interrupted, and what is refused."""

import os
import signal
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import replace
from multiprocessing import get_context

import pytest

from device.errors import ArgumentError, DeviceError
from ops.op_models import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study import executor
from ttsim.study.evaluate import Evaluator, Point
from ttsim.study.executor import THREADS, InProcess, Pool, Run, Workers, evaluate_chunk, same_spec, workers
from ttsim.study.store import Verdict

SPEC = load_spec("wormhole_n150")
evaluate = Evaluator().row
LAYER = Layer(name="a", in_channels=32, out_channels=16, input_height=6, input_width=5)
POINTS = [Point(spec=SPEC, layer=replace(LAYER, name=str(at))) for at in range(12)]
GROUPS = [[point] for point in POINTS]


def points(**counts):
    return [
        Point(spec=SPEC, layer=replace(LAYER, name=name, input_width=5 + index))
        for name, count in counts.items()
        for index in range(count)
    ]


def rows_by(start, slots=2):
    rows = []
    Run(GROUPS, len(POINTS), Workers(start=start, slots=slots, where="here"), rows.extend).go()
    return {row.layer: row for row in rows}


@pytest.mark.parametrize(
    ("counts", "values", "slots", "sizes"),
    [
        ({"a": 12}, "off", 1, [1] * 12),
        ({"a": 96}, "off", 2, [6] * 16),
        ({"a": 1200}, "off", 1, [16] * 75),
        ({"a": 33}, "off", 2, [2] * 16 + [1]),
        ({"a": 20, "b": 7}, "off", 1, [3] * 6 + [2, 3, 3, 1]),  # each of one layer
        ({"a": 96}, "fast", 1, [1] * 96),  # values take long
    ],
)
def test_chunks(counts, values, slots, sizes):
    groups = [[replace(point, values=values) for point in points(**{name: count})] for name, count in counts.items()]
    sent = []

    class Noting(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            sent.append(args[0])
            return super().submit(list)

    team = Workers(start=Noting, slots=slots, where="here")
    Run(groups, sum(counts.values()), team, lambda rows: None).go()
    assert [len(chunk) for chunk in sent] == sizes
    assert [point for chunk in sent for point in chunk] == [point for group in groups for point in group]


def test_a_layer_stays_in_a_process_until_another_has_nothing_left():
    """Of three layers with 2, 2 and 4 chunks, two executors take one each; one takes the third, and both end it."""
    sent = []

    class Noting(InProcess):
        def __init__(self, place):
            self.place = place

        def submit(self, fn, /, *args, **kwargs):
            sent.append((self.place, args[0][0].layer.name))
            return super().submit(list)

    places = iter("xy")
    team = Workers(start=InProcess, slots=2, where="here", start_one=lambda: Noting(next(places)))
    groups = [points(a=2), points(b=2), points(c=4)]
    Run(groups, 8, team, lambda rows: None).go()
    assert sent == [*2 * [("x", "a"), ("y", "b")], *2 * [("x", "c"), ("y", "c")]]


@pytest.mark.parametrize(("count", "alone", "shared"), [(3, 3, 0), (64, 64, 0), (65, 0, 1)])
def test_no_more_processes_start_than_have_points(count, alone, shared):
    """Processes with an executor of their own, each with 8 open files, are 64 at most; more share one executor."""
    begun = []
    team = Workers(
        start=lambda: begun.append("shared") or Noted(),
        slots=1_000_000,
        where="here",
        start_one=lambda: begun.append("alone") or Noted(),
    )
    Run([points(a=count)], count, team, lambda rows: None).go()
    assert (begun.count("alone"), begun.count("shared")) == (alone, shared)


class Noted(InProcess):
    """An executor that evaluates nothing."""

    def submit(self, fn, /, *args, **kwargs):
        return super().submit(list)


def seen(value):
    return value, [os.environ.get(name) for name in THREADS], signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.slow  # starts processes twice
def test_processes_one_of_which_is_killed(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    rows, killed, pools = [], [], []
    with workers(processes=2, scheduler=None) as team:

        def start():
            pools.append(team.start_one())
            return pools[-1]

        def take(some):
            rows.extend(some)
            if not killed:
                killed.append(next(iter(pools[-1]._processes)))
                os.kill(killed[0], signal.SIGKILL)
            elif len(pools) == 4 and len(killed) == 1:
                killed.append(pools[-1].submit(seen, 7).result())

        asked = points(a=4, b=4)
        Run([asked[:4], asked[4:]], len(asked), replace(team, start_one=start), take).go()
    assert (len(pools), killed[1]) == (4, (7, ["3", "1", "1", "1"], True))
    assert sorted(rows, key=lambda row: row.key) == sorted(map(evaluate, asked), key=lambda row: row.key)
    assert (team.slots, team.where) == (2, "in 2 processes")
    assert "MKL_NUM_THREADS" not in os.environ or os.environ["MKL_NUM_THREADS"]


def test_a_process_ignores_the_keyboard_before_it_can_say_so():
    with Pool(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result() == {signal.SIGINT}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_interrupt_waits_until_a_process_has_started():
    handler = signal.getsignal(signal.SIGINT)
    done = []

    def start():
        with executor._children_without_sigint():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert (done, signal.getsignal(signal.SIGINT)) == (["started"], handler)


@pytest.mark.parametrize(("quick", "slots"), [(64, 1), (65, 3), (None, 3)])
def test_few_quick_points_are_evaluated_in_this_process(monkeypatch, quick, slots):
    monkeypatch.setattr(executor.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    with workers(processes=None, scheduler=None, quick=quick) as team:
        assert team.slots == slots
    assert InProcess().submit(seen, 1).result()[0] == 1
    assert isinstance(InProcess().submit(seen).exception(), TypeError)
    assert same_spec(load_spec("wormhole_n150")) is same_spec(load_spec("wormhole_n150"))


@pytest.mark.parametrize(
    ("processes", "scheduler", "words"),
    [
        *((count, None, "processes must be an integer of at least 1") for count in (0, 1.5, True, "2")),
        (2, "tcp://127.0.0.1:1", "give processes or a scheduler, not both"),
        (None, "tcp://127.0.0.1:1", r"pip install 'ttsim\[dask\]'"),
    ],
)
def test_workers_that_are_refused(monkeypatch, processes, scheduler, words):
    monkeypatch.setattr(executor, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=words), workers(processes=processes, scheduler=scheduler):
        pass
    with pytest.raises(ArgumentError, match="a worker has another version of ttsim"):
        evaluate_chunk(POINTS[:1], "another")


class Deadly(InProcess):
    """An executor that breaks, as one whose process is killed does, with all that is under way."""

    def __init__(self, kills):
        self.kills = kills
        self.held = []
        self.broken = False

    def submit(self, fn, /, *args, **kwargs):
        if self.broken:
            raise BrokenExecutor("broken")
        future = Future()
        self.held.append((future, fn, args))
        if len(self.held) == 2 or len(args[0]) == 1:  # two are under way at once, or one alone
            self._run()
        return future

    def _run(self):
        self.broken = any(self.kills(args[0]) for _, _, args in self.held)
        for future, fn, args in self.held:
            if self.broken:
                future.set_exception(BrokenExecutor("a process died"))
            else:
                future.set_result(fn(*args))
        self.held = []


def test_points_whose_process_was_killed_once_are_evaluated_again(monkeypatch):
    monkeypatch.setattr(executor, "CHUNKS_OF_A_SLOT", 2)
    killed = []

    def once(chunk):
        if killed or chunk[0] is not POINTS[3]:
            return False
        killed.append(chunk)
        return True

    assert rows_by(lambda: Deadly(once)) == {point.layer.name: evaluate(point) for point in POINTS}
    assert len(killed) == 1


def test_a_point_that_kills_twice_is_a_row_and_no_other_is_blamed(monkeypatch):
    monkeypatch.setattr(executor, "CHUNKS_OF_A_SLOT", 2)
    rows = rows_by(lambda: Deadly(lambda chunk: POINTS[5] in chunk))
    lost = rows.pop("5")
    assert lost.verdict is Verdict.LOST
    assert lost.error == "the process that evaluated this point died twice: BrokenExecutor: a process died"
    assert [row.verdict for row in rows.values()] == [Verdict.FITS] * 11


class NotStarting(InProcess):
    def submit(self, fn, /, *args, **kwargs):
        return super().submit(seen)


@pytest.mark.parametrize(
    ("start", "said"), [(lambda: Deadly(lambda chunk: True), "a process died"), (NotStarting, "TypeError")]
)
def test_processes_that_always_die_end_the_run(start, said):
    with pytest.raises(DeviceError, match=f"every process dies while it evaluates a point here .*{said}"):
        rows_by(start)


def failing_at(number, error):
    """An executor whose submission of this number raises an error, or gives it in its future."""
    submitted = []

    class Failing(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            submitted.append(fn)
            if len(submitted) != number:
                return super().submit(fn, *args, **kwargs)
            if isinstance(error, KeyboardInterrupt):
                raise error
            future = Future()
            future.set_exception(error)
            return future

    return Failing


def test_canceled_points_are_evaluated_again_and_an_interrupt_takes_rows_that_are_ready():
    assert rows_by(failing_at(1, CancelledError())) == rows_by(InProcess)
    rows = []
    with pytest.raises(KeyboardInterrupt):
        Run(
            GROUPS, len(POINTS), Workers(start=failing_at(4, KeyboardInterrupt()), slots=1, where="here"), rows.extend
        ).go()
    assert [row.layer for row in rows] == ["0", "1", "2"]


def test_workers_that_are_gone_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(executor, "LISTEN_SECONDS", 0.01)

    class Silent(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            return Future()

        def shutdown(self, wait=True, *, cancel_futures=False):
            raise AssertionError("nobody is there who could")

    answers = iter([True, True, False, False, False])
    team = Workers(start=Silent, slots=1, where="there", alive=lambda: next(answers))
    with pytest.raises(DeviceError, match="no process answers any more there"):
        Run(GROUPS, len(POINTS), team, lambda rows: None).go()
    assert next(answers, None) is None
