"""The frame that windows slide over: its axes, its sticks, and which outputs meet inputs under which taps."""
