"""The functions of the convolutions; ``convolutions.pyi`` has their types, which depend on two flags."""

from ttsim.api.conv import Conv1d, Conv2d, ConvTranspose2d
from ttsim.runtime.calls import on_device
from ttsim.runtime.types.call import function_of

conv_transpose2d = on_device(function_of(ConvTranspose2d, __name__))
conv2d = on_device(function_of(Conv2d, __name__))
conv1d = on_device(function_of(Conv1d, __name__))
