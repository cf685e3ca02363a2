"""Whether a plan that was written holds together: a walk over its steps, and what is there at each of them."""

from collections.abc import Collection

from device.plan import Allocate, Free, Operation, Plan, Refuse, Relocate, Step


def verify(plan: Plan, *, given: Collection[str], known_works: Collection[type] | None = None) -> None:
    """Checks that a plan holds together; who wrote it has a bug if it does not.

    Every name is known where it is used, every buffer that the plan allocates is released once or returned, nothing is
    read or released after its release, and every work has a meaning. A plan that ends in a refusal returns nothing.

    Args:
        given: Names of the caller's tensors.
        known_works: Classes of work that have a meaning; None for any.

    Raises:
        AssertionError: What is wrong, and in which step.
    """
    walk = _Walk(set(given))
    for number, step in enumerate(plan.steps):
        fault = walk.take(step)
        work = None if isinstance(step, Free | Refuse) else step.work
        if fault is None and known_works is not None and work is not None and type(work) not in known_works:
            fault = f"nothing is known of the work {type(work).__name__}"
        if fault is not None:
            raise AssertionError(f"step {number} of the plan, {_named(step)}: {fault}")
    if plan.refused:
        return
    results = set(plan.results.values())
    if missing := sorted(results - walk.live):
        raise AssertionError(f"the plan returns {', '.join(missing)}, which is not there at its end")
    if left := sorted(walk.own - results):
        raise AssertionError(f"the plan neither releases nor returns {', '.join(left)}")


class _Walk:
    """What is there while a plan is walked.

    Attributes:
        live: Names of tensors that can be read.
        own: Those of them that the plan allocated.
    """

    def __init__(self, given: set[str]) -> None:
        self.live = set(given)
        self.own: set[str] = set()

    def take(self, step: Step) -> str | None:
        """Takes a step; returns what is wrong with it."""
        match step:
            case Allocate(source=source):
                if source is not None and source not in self.live:
                    return f"its source {source} is not there"
                return self._make(step.tensor)
            case Free(tensor=tensor):
                if tensor not in self.live:
                    return "it is not there, or was released before"
                self.live.discard(tensor)
                self.own.discard(tensor)
                return None
            case Relocate(tensor=tensor):
                return None if tensor in self.live else "it is not there"
            case Refuse():
                return None
            case Operation():
                return self._operation(step)

    def _operation(self, step: Operation) -> str | None:
        for name in step.inputs:
            if name not in self.live:
                return f"its input {name} is not there"
        for output in step.outputs:
            if fault := self._make(output.tensor):
                return fault
        seen = {*step.inputs, *[one.tensor for one in step.outputs], *[one.tensor for one in step.resident]}
        for buffer in step.circular_buffers:
            if buffer.view_of is not None and buffer.view_of not in seen:
                return f"its circular buffer {buffer.name} lies on {buffer.view_of}, which it neither reads nor makes"
        return None

    def _make(self, name: str) -> str | None:
        if name in self.live:
            return f"there is a tensor {name} already"
        self.live.add(name)
        self.own.add(name)
        return None


def _named(step: Step) -> str:
    """A step in an error."""
    if isinstance(step, Refuse):
        return f"Refuse {step.text}"
    return step.name if isinstance(step, Operation) else f"{type(step).__name__} {step.tensor}"
