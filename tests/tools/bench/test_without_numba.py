"""The benchmark without numba: what it measures is measured where numba is hidden."""

import importlib
import json

from device.host.compiling import load_numba, numba_installed
from tools.bench import without_numba
from tools.bench.figure import Figure


def test_numba_is_hidden_where_the_layers_run(monkeypatch, capsys):
    load_numba.cache_clear()
    monkeypatch.setitem(importlib.import_module("sys").modules, "numba", None)  # and given back afterwards
    figure = Figure(bench="exact", case="all eight", name="without numba", value=2.0, unit="ms", limit=3.0)
    seen = []

    def beside(bench, ops, turns, limits, limits_in_sum):
        seen.append((bench, turns, numba_installed(), load_numba(), limits_in_sum))
        yield figure

    monkeypatch.setattr(without_numba, "beside_torch", beside)
    without_numba.main()
    load_numba.cache_clear()
    assert seen == [("exact", 1, False, None, {"without numba": 40.0})]
    (printed,) = json.loads(capsys.readouterr().out)
    assert Figure(**printed) == figure


def test_figures_come_from_an_interpreter_of_their_own(monkeypatch):
    class Done:
        stdout = '[{"bench": "exact", "case": "c", "name": "n", "value": 1.5, "unit": "x"}]'

    commands = []
    monkeypatch.setattr(without_numba.subprocess, "run", lambda command, **_: commands.append(command) or Done())
    assert [figure.value for figure in without_numba.bench_without_numba()] == [1.5]
    assert commands[0][1:] == ["-m", "tools.bench.without_numba"]
