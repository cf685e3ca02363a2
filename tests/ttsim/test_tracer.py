import pytest

import ttsim


def test_nothing_is_traced_or_stored() -> None:
    ttsim.tracer.disable_tracing()
    assert not ttsim.tracer.is_tracing_enabled()
    with pytest.raises(ValueError, match="begin_graph_capture"):
        ttsim.tracer.enable_tracing()
    for refuse in (ttsim.tracer.trace, ttsim.tracer.visualize):
        with pytest.raises(ttsim.ArgumentError, match=r"begin_graph_capture|pretty_print"):
            refuse()
    assert ttsim.database.SQLITE_CONNECTION is None
    assert not ttsim.database.DEVICE_IDS_IN_DATABASE
