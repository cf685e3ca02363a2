"""Public types: data types, shapes and configs; and the checks of arguments."""
