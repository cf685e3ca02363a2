"""Train on a simulated device: torch's transposed convolutions, whose passes in both directions run there.

The one package that needs torch; nothing else imports it. ``pip install ttsim[torch]``. Functions and modules have
torch's names and arguments, and a few keywords of their own: where to run and how.
"""

from ttsim.runtime.types.signatures import public
from ttsim.torch.functions import conv_transpose1d, conv_transpose2d, conv_transpose3d
from ttsim.torch.modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

__all__ = [
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]


__dir__ = public(globals())
