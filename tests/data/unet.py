"""A U-Net of four levels at 256x256, with two convolutions on each level."""

import numpy as np
import ttnn

SIDE, LEVELS, CHANNELS = 256, 4, 32


def weight(*shape):
    return ttnn.from_torch(np.zeros(shape, np.float32), ttnn.bfloat16)


def sizes(device, image, side, channels, outputs):
    return {
        "input_tensor": image,
        "device": device,
        "in_channels": channels,
        "out_channels": outputs,
        "batch_size": 1,
        "input_height": side,
        "input_width": side,
    }


def interleaved(output):
    return ttnn.sharded_to_interleaved(output) if output.is_sharded() else output


def conv(device, image, side, channels, outputs):
    window = {"weight_tensor": weight(outputs, channels, 3, 3), "kernel_size": (3, 3), "padding": (1, 1)}
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat8_b, activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU))
    return interleaved(ttnn.conv2d(**sizes(device, image, side, channels, outputs), **window, conv_config=config))


def level(device, image, side, channels, outputs):
    return conv(device, conv(device, image, side, channels, outputs), side, outputs, outputs)


def up(device, image, side, channels, outputs):
    window = {"weight_tensor": weight(channels, outputs, 2, 2), "kernel_size": (2, 2), "stride": (2, 2)}
    return interleaved(ttnn.conv_transpose2d(**sizes(device, image, side, channels, outputs), **window))


device = ttnn.open_device(device_id=0, l1_small_size=32768)
image = ttnn.zeros((1, 1, SIDE * SIDE, CHANNELS), layout=ttnn.TILE_LAYOUT, device=device)
side, channels, outputs, skips = SIDE, CHANNELS, CHANNELS, []
for _ in range(LEVELS):
    skips.append(level(device, image, side, channels, outputs))
    rows = ttnn.to_layout(skips[-1], ttnn.ROW_MAJOR_LAYOUT)
    image = ttnn.max_pool2d(rows, 1, side, side, outputs, [2, 2], [2, 2], [0, 0], [1, 1])
    image = ttnn.to_layout(interleaved(image), ttnn.TILE_LAYOUT)
    side, channels, outputs = side // 2, outputs, outputs * 2
image, channels = level(device, image, side, channels, outputs), outputs
for skip in reversed(skips):
    image = up(device, image, side, channels, channels // 2)
    side = side * 2
    image = level(device, ttnn.concat([image, skip], dim=3), side, channels, channels // 2)
    channels = channels // 2
output = conv(device, image, side, channels, 32)
ttnn.close_device(device)
