import pytest

from tools.bench import onednn
from tools.bench.onednn import CASES, bench_onednn

DIRECTIONS = ("forward", "data", "weights")


@pytest.mark.parametrize("compared", [True, False])
def test_every_direction_is_set_beside_torch_and_has_a_limit(monkeypatch, compared):
    took = {"ours": 0.003, "theirs": 0.002}
    ops = [(name, "ours", "theirs" if compared else None) for name in DIRECTIONS]
    monkeypatch.setattr(onednn, "_works", lambda case, device: ops)
    monkeypatch.setattr(onednn, "least_seconds", lambda op, repeats, *, clock: took[op])
    figures = {(figure.case, figure.name): figure for figure in bench_onednn(1)}
    times = [figure for figure in figures.values() if figure.unit == "ms"]
    assert len(times) == len(CASES) * len(DIRECTIONS) * (2 if compared else 1)
    assert figures["depthwise", "data"].value == pytest.approx(3)
    assert figures["depthwise", "data"].median == pytest.approx(3)
    ratios = {key: figure for key, figure in figures.items() if figure.unit == "x"}
    assert len(ratios) == (len(CASES) * (len(DIRECTIONS) + 1) + 1 if compared else 0)
    assert all(figure.value == pytest.approx(1.5) for figure in ratios.values())
    limited = [key for key, figure in ratios.items() if figure.limit]
    assert len(limited) == (len(CASES) * len(DIRECTIONS) + 1 if compared else 0)


def test_works_run_all_directions():
    case = onednn.Case("small", 1, (2, 2), 3, 2)
    with onednn.open_device(values="fast") as device:
        for direction, ours, theirs in onednn._works(case, device):
            assert direction in DIRECTIONS
            assert ours() is not None
            assert (theirs is None) is (onednn.torch is None)
