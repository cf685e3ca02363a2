"""A transposed convolution by output phases: the conv2d micro-op over the image without inserted zeros, phase by phase.

No library has it. It is a program that could be written of what the micro-op's kernels do (X
program): each output phase is a dense convolution of its own over one halo, whose finished sticks are copied to their
places in the output shard.
"""
