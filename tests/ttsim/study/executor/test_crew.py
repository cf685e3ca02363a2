import os
import signal
from multiprocessing import get_context

import pytest

from device.errors import ArgumentError, DeviceError
from ops.op_models import load_spec
from ttsim.study import executor as crew
from ttsim.study.evaluate import Point, evaluate
from ttsim.study.executor import THREADS, InProcess, PointExecutor, Pool, Run, crew_of, same_spec
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
POINTS = [
    Point(spec=SPEC, layer=Layer(name=str(at), in_channels=32, out_channels=16, input_height=6, input_width=5 + at))
    for at in range(24)
]


def told(value):
    return value, [os.environ.get(name) for name in THREADS], signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_processes_of_its_own_one_of_which_is_killed(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    rows, killed = [], []
    with crew_of(processes=2, scheduler=None) as made:

        def executor():
            pool = made.executor()
            monkeypatch.setattr(crew, "pool", pool, raising=False)
            return pool

        def take(some):
            rows.extend(some)
            if not killed:
                killed.append(next(iter(crew.pool._processes)))
                os.kill(killed[0], signal.SIGKILL)

        Run(POINTS, PointExecutor(executor=executor, lanes=made.lanes, where=made.where), take).go()
        with made.executor() as pool:
            value, threads, ignores = pool.submit(told, 7).result()
    assert sorted(rows, key=lambda row: int(row.layer)) == [evaluate(point) for point in POINTS]
    assert (value, threads, ignores) == (7, ["3", "1", "1", "1"], True)
    assert (made.lanes, made.where) == (2, "in 2 processes")
    assert "MKL_NUM_THREADS" not in os.environ or os.environ["MKL_NUM_THREADS"]


def test_a_process_is_deaf_to_the_keyboard_before_it_can_say_so():
    with Pool(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result() == {signal.SIGINT}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_interrupt_waits_until_a_process_has_started():
    handler = signal.getsignal(signal.SIGINT)
    done = []

    def start():
        with crew._deaf_children():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert (done, signal.getsignal(signal.SIGINT)) == (["started"], handler)


def test_in_this_process():
    with crew_of(processes=1, scheduler=None) as made:
        assert (made.lanes, made.executor().submit(told, 1).result()[0]) == (1, 1)
    failed = InProcess().submit(told)
    assert isinstance(failed.exception(), TypeError)


@pytest.mark.parametrize(("quick", "lanes"), [(64, 1), (65, 3), (None, 3)])
def test_few_quick_points_are_looked_into_here(monkeypatch, quick, lanes):
    monkeypatch.setattr(crew.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    with crew_of(processes=None, scheduler=None, quick=quick) as made:
        assert made.lanes == lanes


@pytest.mark.parametrize("processes", [0, -1, 1.5, True, "2"])
def test_so_many_processes_there_are_not(processes):
    with (
        pytest.raises(ArgumentError, match="processes must be an integer"),
        crew_of(processes=processes, scheduler=None),
    ):
        pass


def test_equal_devices_are_one():
    assert same_spec(load_spec("wormhole_n150")) is same_spec(load_spec("wormhole_n150"))


def test_without_dask(monkeypatch):
    monkeypatch.setattr(crew, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match="pip install"), crew_of(processes=None, scheduler="tcp://127.0.0.1:1"):
        pass


def test_processes_that_do_not_start_are_told():
    class Broken(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            return super().submit(told)

    with pytest.raises(DeviceError, match=r"ends whatever it looks into .*TypeError"):
        Run(POINTS[:2], PointExecutor(executor=Broken, lanes=1, where="there"), lambda rows: None).go()
