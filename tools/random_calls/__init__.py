"""Random calls of the public functions as Python text, with what each must give: for fuzzing and for golden records."""
