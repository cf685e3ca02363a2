"""Plans of calls: arguments, checks in the real library's order, device operations.

A planner raises DeviceError, in the library's words, where the library refuses a call for its tensors or places, and
ArgumentError where it refuses arguments or where ttsim does not simulate a case. With the first step of a plan, an
error becomes the end of the plan, since the steps before it run.
"""
