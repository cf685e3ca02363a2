"""Device operations of a network that ran, as the tests of pages build them."""

from ttsim.report.network import RanOperation


def ran(name: str, cycles: int | None, *, where: str = "") -> RanOperation:
    """An operation of the first call; one without cycles is one that nobody knows."""
    return RanOperation(
        name=name,
        call=0,
        function="ttnn.conv_transpose2d",
        where=where,
        cycles=cycles,
        bound_by="math",
        core_count=32,
        untimed="" if cycles else "nobody knows",
        circular_buffers=(),
        buffers=(),
    )
