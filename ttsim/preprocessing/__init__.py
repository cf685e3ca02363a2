"""Parameters of torch models as tensors of ttsim: what stands behind ``ttnn.model_preprocessing``."""
