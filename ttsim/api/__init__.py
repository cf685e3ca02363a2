"""The functions of the library, under ttnn's names."""
