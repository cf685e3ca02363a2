"""ttnn.upsample: arguments, refusals and plan."""
