import pytest

from device.spec.device_spec import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, call, layouts_of, make_inputs, place, run_layer, summary_of

SPEC = load_spec("wormhole_n150")
SMALL = {"in_channels": 32, "out_channels": 16, "input_height": 6, "input_width": 5, "stride": (2, 2)}


@pytest.mark.parametrize("memory", ["dram", "l1", "host"])
@pytest.mark.parametrize("layout", ["ROW_MAJOR", "TILE"])
def test_wherever_the_input_lies(memory, layout):
    layer = Layer(**SMALL, input_memory=memory, input_layout=layout, input_4d=layout == "ROW_MAJOR")
    result = run_layer(layer, Settings(spec=SPEC))
    assert result.error is None
    assert result.summary.accuracy.pcc > 0.999
    assert (result.summary.output.height, result.summary.output.width) == (12, 10)
    assert len(result.summary.partitions) == 1


def test_activation_and_mirroring_are_part_of_the_accuracy():
    layer = Layer(**SMALL, mirror_kernel=False, config={"activation": "relu"}, compute={"math_fidelity": "HiFi4"})
    assert run_layer(layer, Settings(spec=SPEC)).summary.accuracy.pcc > 0.999


def test_no_definition_no_accuracy():
    result = run_layer(Layer(**SMALL, config={"padding_mode": "Replicate"}), Settings(spec=SPEC))
    assert result.error is None
    assert result.summary.accuracy is None


def test_a_layer_on_a_placed_device_step_by_step():
    layer = Layer(**SMALL, input_memory="l1")
    placed = place(layer, make_inputs(layer), Settings(spec=SPEC, values="off", cycles=False))
    assert placed.before == len(placed.events) == 1
    called = call(placed)
    summary = summary_of(placed, called)
    assert summary.accuracy is None
    assert summary.cycles is None
    assert called.profile.calls == []
    assert [layout.scheme.name for layout in layouts_of(placed.events)] == [summary.partitions[0].scheme]
    assert summary.operations[0].buffers[0].address == placed.events[0].address
    placed.device.close()


def test_a_layer_that_is_none_says_why():
    result = run_layer(Layer(**SMALL, groups=5), Settings(spec=SPEC))
    assert result.summary is None
    assert result.error.startswith("groups must divide in_channels")
    assert result.reached == ()


@pytest.mark.parametrize("settings", [{"config": {"weights_dtype": "x"}}, {"config": {"x": 1}}, {"slice": "x"}])
def test_a_layer_that_names_what_there_is_not_says_so(settings):
    result = run_layer(Layer(**SMALL, **settings), Settings(spec=SPEC))
    assert "x" in result.error
    assert result.reached == ()


@pytest.mark.parametrize("field", [{"dilation": (1 << 40, 1)}, {"padding": (9, 9)}])
def test_a_call_that_is_refused_says_why(field):
    result = run_layer(Layer(**SMALL, **field), Settings(spec=SPEC, values="off"))
    assert next(iter(field)) in result.error


def test_a_mistake_of_ours_is_no_property_of_the_layer(monkeypatch):
    def broken(*_, **__):
        raise ValueError("a mistake")

    monkeypatch.setattr("ttsim.study.layers.run.conv_transpose2d", broken)
    with pytest.raises(ValueError, match="a mistake"):
        run_layer(Layer(**SMALL), Settings(spec=SPEC))


def test_slices_that_are_cut_up_alike_are_counted():
    layer = Layer(**{**SMALL, "input_height": 64, "input_width": 64, "padding": (1, 1)}, slice="H:4")
    result = run_layer(layer, Settings(spec=SPEC, values="off"))
    partitions = result.summary.partitions
    assert sum(partition.convolutions for partition in partitions) == 4
    assert len(set(partitions)) == len(partitions) < 4


def test_cycles_of_a_layer_are_those_of_its_operations():
    summary = run_layer(Layer(**SMALL), Settings(spec=SPEC, values="off")).summary
    (call,) = summary.cycles.calls
    assert [one.name for one in call.operations] == [one.name for one in summary.operations]
    assert call.untimed == ()
    assert summary.cycles.cycles > 0


@pytest.mark.parametrize("error", [ValueError, TypeError, LookupError, ArithmeticError])
def test_a_mistake_in_a_model_is_no_missing_model(monkeypatch, error):
    def broken(*_, **__):
        raise error("a mistake")

    monkeypatch.setattr("ops.programs.conv2d.cycles.time_conv", broken)
    with pytest.raises(error, match="a mistake"):
        run_layer(Layer(**SMALL), Settings(spec=SPEC, values="off"))
