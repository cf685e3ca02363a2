"""What would help: tried on the model, bounded, the same every time, and off where nobody asks."""

import pytest

import ttsim
from device.errors import DeviceError, OutOfMemoryError
from ops.passes.sensitivity import Sensitivity
from tests.ttsim.recording.calls import opened, options as options_of_conv
from tests.ttsim.report.test_approved import approve
from ttsim.recording.suggestions import TRIALS, Attempt, Measured, Search, arguments_source, attempts
from ttsim.report.advice import explain_advice, machine_changes
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, make_inputs, place

HEIGHT = ttsim.TensorMemoryLayout.HEIGHT_SHARDED


def test_the_slowest_of_the_eight_layers_has_a_faster_config():
    """E3 of a review: d4.up, left to the library, takes eight times what it could."""
    layer = next(layer for layer in read_layers(DEFAULT_LAYERS) if layer.name == "vgg_unet.d4.up")
    settings = Settings(spec=ttsim.load_spec("wormhole_n150"), values="off")
    options = dict(place(layer, make_inputs(layer, values=False), settings).arguments)
    device = options.pop("device")
    report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, suggestions=True, **options)
    advice = report.advice
    assert advice.cycles == report.cycles
    assert 20 < advice.tried <= TRIALS
    schemes = {change.kind: change for change in advice.changes}["shard_layout"]
    assert schemes.text == "shard_layout=HEIGHT_SHARDED"
    assert schemes.cycles < report.cycles / 7
    assert schemes.saved_share == 1 - schemes.cycles / report.cycles
    buffers = {change.kind: change for change in advice.changes}["enable_act_double_buffer"]
    assert buffers.text == "enable_act_double_buffer=False (the library then chooses HEIGHT_SHARDED)"
    changed = dict(options, conv_config=ttsim.Conv2dConfig(**{**vars(options["conv_config"]), "shard_layout": HEIGHT}))
    assert ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **changed).cycles == schemes.cycles
    assert "shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED" in schemes.arguments
    assert f"\n  shard_layout=HEIGHT_SHARDED: {report.cycles:,} -> {schemes.cycles:,} cycles" in report.explain()


def small(device, **changes):
    return options_of_conv(device, memory=ttsim.DRAM_MEMORY_CONFIG, **changes)


def test_what_is_tried():
    """Of an input in DRAM, in L1 and in float32, of other configs, and of another function; a product has no config."""
    source, sliced = ttsim.TensorDescription((1, 1, 64, 32), ttsim.float32), ttsim.Conv2dL1FullSliceConfig
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.float32, act_block_h_override=64, force_split_reader=True)
    compute = ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi2, packer_l1_acc=True)
    shards = ttsim.create_sharded_memory_config((32, 32), ttsim.CoreGrid(x=1, y=2), ttsim.ShardStrategy.HEIGHT)
    described = ttsim.TensorDescription((1, 1, 64, 32), memory_config=shards)
    with opened() as device:
        calls = [
            (ttsim.conv_transpose2d, small(device, lowering="zero_insertion")),
            (ttsim.conv_transpose2d, small(device, input_tensor=source, conv_config=config, dram_slice_config=sliced)),
            (ttsim.conv_transpose2d, small(device, input_tensor=described, compute_config=compute, lowering="phase")),
            (ttsim.conv2d, small(device, weight_tensor=ttsim.TensorDescription((16, 32, 3, 3)))),
            (ttsim.matmul, {}),
        ]
        lines = [
            f"{attempt.kind}: {attempt.text} ({attempt.price}): {arguments_source(attempt.options)}"
            for function, options in calls
            for attempt in (*attempts(function, options), Attempt("", "", {}))
        ]
        in_l1 = attempts(ttsim.conv_transpose2d, options_of_conv(device))
        assert not any("slices" in attempt.text for attempt in in_l1)
    approve("attempts.txt", "\n".join(lines) + "\n")


def test_a_search_tries_everything_alone_then_on_top_of_the_best():
    """Cycles of a toy: HEIGHT saves 40 %, two readers 10 %, both 45 %; BLOCK does not fit, LoFi costs bits."""

    def measure(options):
        config, compute = options.get("conv_config"), options.get("compute_config")
        cycles = 1000
        if config is not None and config.shard_layout is ttsim.TensorMemoryLayout.BLOCK_SHARDED:
            raise OutOfMemoryError("no")
        if config is not None and config.shard_layout is HEIGHT:
            cycles -= 400
        if config is not None and config.force_split_reader:
            cycles -= 100 if cycles == 1000 else 50
        if compute is not None and compute.math_fidelity is ttsim.MathFidelity.LoFi:
            cycles -= 500
        return Measured(cycles=cycles, untimed=0, effort=1)

    options = {"input_tensor": ttsim.TensorDescription((1, 1, 64, 32), memory_config=ttsim.L1_MEMORY_CONFIG)}
    found = Search(ttsim.conv2d, options, measure).run(Measured(cycles=1000, untimed=0, effort=1))
    changes = [(change.text, change.cycles) for change in found.changes]
    assert changes == [("shard_layout=HEIGHT_SHARDED", 600), ("force_split_reader=True", 900)]
    assert found.together is not None
    assert (found.together.text, found.together.cycles) == ("shard_layout=HEIGHT_SHARDED, force_split_reader=True", 550)
    (priced,) = found.at_a_price
    assert (priced.text, priced.cycles, priced.price) == ("math_fidelity=LoFi", 500, "fewer bits of each product")


def test_a_search_is_bounded_and_not_fooled():
    before = Measured(cycles=1000, untimed=0, effort=1)
    options = {"input_tensor": ttsim.TensorDescription((1, 1, 64, 32))}
    long = Search(ttsim.conv2d, options, lambda _: Measured(cycles=10, untimed=0, effort=10_000))
    assert long.run(before).tried == 1

    def fails(_):
        raise OutOfMemoryError("no")

    costly = Measured(cycles=1000, untimed=0, effort=2000)
    assert Search(ttsim.conv2d, options, fails).run(costly).tried == 3  # a call that fails costs as much as the first
    hidden = Search(ttsim.conv2d, options, lambda _: Measured(cycles=10, untimed=1, effort=1)).run(before)
    assert hidden.changes == ()  # something is faster because nobody knows what a part of it takes
    assert "no other config that was tried is faster" in explain_advice(hidden)


def test_a_profile_tells_of_the_machine_and_described_tensors_are_estimated():
    source = ttsim.TensorDescription((1, 1, 64, 32), memory_config=ttsim.DRAM_MEMORY_CONFIG)
    with opened() as device, ttsim.profile(device) as profile:
        options = small(device)
        ttsim.conv_transpose2d(device=device, **options)
        report, plain = profile.report(suggestions=True), profile.report()
        options |= {"input_tensor": source, "weight_tensor": ttsim.TensorDescription((32, 16, 2, 2))}
        described = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **options)
    assert (plain.advice, report.advice.changes, described.cycles) == (None, (), plain.cycles)
    figures = {row.figure: row for row in report.advice.sensitivity}
    assert figures["clock_hz"].time_elasticity < 0
    assert "Hardware bottleneck (d log of cycles and time / d log of a figure):" in report.explain()


@pytest.mark.parametrize("suggestions", [True, False])
def test_a_failing_call_is_searched_only_where_it_should(suggestions, monkeypatch):
    asked = []
    monkeypatch.setattr("ttsim.api.conv.explain_oom", lambda *_, **__: asked.append(1) or "searched")
    config = ttsim.Conv2dConfig(shard_layout=HEIGHT)
    with opened(suggestions=suggestions) as device:
        options = small(device, size=256, channels=(256, 256), conv_config=config)
        with pytest.raises(DeviceError) as raised:
            ttsim.conv_transpose2d(device=device, dram_slice_config=ttsim.Conv2dL1FullSliceConfig, **options)
    assert bool(asked) == suggestions
    assert ("searched" in str(raised.value)) == suggestions


def test_a_machine_changes_by_the_better_of_twice_and_half():
    times = (("a", 1.0, 0.9, 0.8), ("b", 2.0, 0.5, None), ("c", 3.0, 0.995, None))
    figures = tuple(
        Sensitivity(figure=name, value=value, cycles_elasticity=0, time_elasticity=0, doubled_time=up, halved_time=down)
        for name, value, up, down in times
    )
    found = machine_changes(figures, least_share=0.01, most=5)
    assert [(change.figure, change.factor, change.value, round(change.saved_share, 9)) for change in found] == [
        ("b", 2.0, 2.0, 0.5),
        ("a", 0.5, 1.0, 0.2),
    ]
