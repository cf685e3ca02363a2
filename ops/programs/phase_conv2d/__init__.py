"""A transposed convolution by output phases, composed of steps of the micro-op's kernels; no library has it."""
