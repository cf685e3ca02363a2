"""A scoreboard of the model tests of a checkout of tt-metal."""
