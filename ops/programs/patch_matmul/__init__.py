"""oneDNN's deconvolution: patches gathered from DRAM, products in float32, one rounding."""
