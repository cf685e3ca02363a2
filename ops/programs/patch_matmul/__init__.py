"""The programs of oneDNN's deconvolution: patches gathered from DRAM, float32 products, a single rounding."""
