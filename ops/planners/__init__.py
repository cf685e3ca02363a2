"""Plans of calls: arguments, checks in the real library's order, device operations.

A planner raises DeviceError, with the library's text, where the library refuses a call for its tensors or places, and
ArgumentError where it refuses arguments or where ttsim does not simulate a case. With the first step of a plan, an
error becomes the end of the plan, since the steps before it run.
"""
