from tools.bench.layers import GENERATIONS, bench_cycles


def test_a_figure_for_every_layer_and_a_median_with_a_limit():
    figures = list(bench_cycles(1))
    assert len(figures) == 9 * len(GENERATIONS)
    assert all(figure.unit == "ms" and figure.value > 0 for figure in figures)
    assert [figure.case for figure in figures if figure.limit] == [f"{device}, median" for device in GENERATIONS]
