"""What the host does to weights and bias before it uploads them."""

from dataclasses import dataclass

from device.plan import Work
from ops.programs.conv2d.weights import WeightsLayout


@dataclass(frozen=True, slots=True)
class PrepareWeights(Work):
    """Raw weights become a matrix (`weights.prepare_weights`)."""

    layout: WeightsLayout


@dataclass(frozen=True, slots=True)
class PrepareBias(Work):
    """A raw bias becomes a row of tiles (`weights.prepare_bias`)."""

    layout: WeightsLayout
