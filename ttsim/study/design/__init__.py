"""Designs of a machine: a space over the fields of a device, costs, and the Pareto front of time and costs."""
