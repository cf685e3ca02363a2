"""A transposed convolution by output phases, of what the micro-op's kernels do; no library has it."""
