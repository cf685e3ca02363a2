"""A layer as Python does what the layer does."""

import ttsim as ttnn
from device.spec.device_spec import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, run_layer


def test_the_script_makes_the_same_call() -> None:
    layer = Layer(
        in_channels=32,
        out_channels=32,
        input_height=8,
        input_width=8,
        stride=(2, 2),
        dtype="bfloat8_b",
        input_memory="l1",
        config={"weights_dtype": "bfloat8_b", "shard_layout": "HEIGHT_SHARDED", "output_layout": "TILE"},
        compute={"math_fidelity": "HiFi2"},
        slice="l1_full",
    )
    result = run_layer(layer, Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False))
    assert result.summary is not None
    assert result.summary.cycles is not None
    with ttnn.open_device(device_id=0, spec="wormhole_n150", values="off", l1_small_size=32768) as device:
        with ttnn.profile(device) as made:
            names = {"device": device}
            exec(result.source, names)
        assert made.report().cycles == result.summary.cycles.cycles
        assert names["output"].dtype == ttnn.bfloat8_b
