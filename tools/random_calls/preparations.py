"""Steps that prepare the weights or the bias of a convolution ahead of the call, for an input that there may be."""

from dataclasses import replace
from typing import Final

from tools.random_calls.convolutions import Convolution, configured, raw_bias, raw_weights, window
from tools.random_calls.drafts import BLOCKS, FLOATS, UNSPECIFIED, Draft, Expected, Shadow, Step, operation

ELSEWHERE: Final = 0.35  # How often the place, the layout and the format of the input are not those of the tensor
BIAS_FORMAT: Final = 0.85  # How often the config of a bias has the format, without which there is no bias


@operation(
    "prepare_conv_weights", "prepare_conv_bias", "prepare_conv_transpose2d_weights", "prepare_conv_transpose2d_bias"
)
def preparation(draft: Draft) -> Step | None:
    """A preparation for a convolution of a live tensor, or of one like it in another place or format."""
    function = "conv_transpose2d" if "transpose" in draft.function else "conv2d"
    x = draft.tensor(lambda x: len(x.shape) == 4, anywhere=True)
    plain = None if x is None else window(function, draft, x) or window(function, draft, x)
    if x is None or plain is None:
        return None
    call = configured(draft, plain, x)
    if draft.function.endswith("bias"):
        if draft.chance(BIAS_FORMAT):
            formats = ("bfloat16", "bfloat16", "float32", *BLOCKS)
            call = replace(call, config={**call.config, "weights_dtype": f"ttsim.{draft.pick(formats)}"})
        bias, _ = raw_bias(draft, call, draft.pick(("bfloat16", "float32")))
        text = call.prepared(x, "bias", bias_tensor=bias.name, **_input(draft, call, x))
    else:
        weights, _ = raw_weights(draft, call)
        order, has_bias = '"IOHW"' if call.transposed else '"OIHW"', f"{draft.chance(0.4)}"
        own = {"weight_tensor": weights.name, "weights_format": order, "has_bias": has_bias}
        text = call.prepared(x, "weights", **own, **_input(draft, call, x))
    made = "".join(operand.text for operand in draft.operands)
    results = {**draft.operand_results, draft.name: Expected}
    return Step(text=f"{made}{draft.name} = {text}", results=results, opaque=(draft.name,))


def _input(draft: Draft, call: Convolution, x: Shadow) -> dict[str, str]:
    """Where the input of the later call lies, and its format, where they are not those of the tensor."""
    own: dict[str, str] = {}
    if draft.chance(ELSEWHERE) or not x.on_device:
        rows = (1, 1, call.batch * call.size[0] * call.size[1], call.channels[0])
        place = draft.memory_config(rows, tiled=x.tiled, sharded=0.5)
        own["input_memory_config"] = draft.pick(UNSPECIFIED) if draft.chance(0.2) else place
    if draft.chance(ELSEWHERE):
        own["input_layout"] = f"ttsim.{draft.pick(('TILE', 'ROW_MAJOR'))}_LAYOUT"
    if draft.chance(ELSEWHERE):
        own["input_dtype"] = f"ttsim.{draft.pick(FLOATS)}"
    return own
