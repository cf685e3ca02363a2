"""The fields of a device: their units, which way they are better, and what each of them moves."""
