"""Which calls of conv_transpose2d the lowering by output phases can not carry out.

No library computes them so; the paths, scheme, cores, shards and slices are those of the call as ttnn makes it, and the
program is that of `ops.programs.phase_conv2d`. A stride of 1 leaves one phase: that call is ttnn's own.
"""

from collections.abc import Iterator

from device.errors import ArgumentError
from device.plan import Plan, Work
from ops.calls.conv_transpose2d.validation import require_sane
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.sanity import refuse_first
from ops.programs.conv2d.prepared import AsWanted
from ops.programs.phase_conv2d.weights import PreparePhaseWeights

FUNCTION = 'conv_transpose2d, lowering="phase"'


def require_phases(call: ConvArguments) -> None:
    """Refuses a call that this lowering can not carry out, and all that a strict device refuses.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    require_sane(call)
    refuse_first(FUNCTION, call, (_config,))


def _config(call: ConvArguments) -> Iterator[str]:
    config = call.conv_config
    for name, given, why in (
        ("padding_mode", config.replicate_padding, "padding is zero"),
        ("enable_activation_reuse", config.enable_activation_reuse, "rows of a phase are gathered by themselves"),
        ("force_split_reader", bool(config.force_split_reader), "the second processor reads weights alone"),
    ):
        if given:
            yield f'conv_config.{name} is not known to this lowering ({why}); leave it out, or use lowering="frame"'


def require_phase_weights(plan: Plan, call: ConvArguments) -> None:
    """Refuses weights on the device that were prepared for anything else than this plan.

    Raises:
        ArgumentError: They were.
    """
    given: dict[str, Work | None] = {} if call.weight.on_host else {call.weight.name or "weight": call.weight.made_by}
    for one in plan.expected:
        if not isinstance(one.work, PreparePhaseWeights) or one.tensor not in given:
            continue
        made = given[one.tensor]
        if made != one.work and not isinstance(made, AsWanted):
            raise ArgumentError(
                f"{FUNCTION}: weight_tensor is on the device and was not prepared for this call and lowering; pass it "
                "as it was made, on the host, or as an earlier call of the same arguments returned it"
            )
