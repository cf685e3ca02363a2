"""The report on a call: memory, partition, output, accuracy."""
