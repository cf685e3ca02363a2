"""torch's transposed convolutions, whose forward and backward passes run on a simulated device.

This is the only package that needs torch (``pip install ttsim[torch]``). Functions and modules have torch's names and
arguments, and additional keywords for the device, precision and lowering.
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
