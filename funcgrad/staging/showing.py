"""The program after each pass, as text, up to the memory in which it runs and its source.

Whoever wants to see it asks for `texts`; `SHOWN` is what is told of each program that is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from funcgrad.staging.printing import Names

if TYPE_CHECKING:
    from funcgrad.staging.compiled import Executable
    from funcgrad.staging.passes.buffers import Plan
    from funcgrad.staging.program import Program

__all__ = ["SHOWN", "texts"]

# Called with the name of the program, that of the pass, and the text.
SHOWN: ContextVar[Callable[[str, str, str], Any] | None] = ContextVar(
    "funcgrad_shown", default=None
)


def texts(executable: Executable) -> Iterator[tuple[str, str]]:
    """Yield the name of each pass that changed the program, with the program after it.

    ``"recorded"`` comes first. After the passes come ``"memory"``, where results are written, and
    ``"source"``.
    """
    program = executable.recorded
    yield "recorded", program.as_text()
    for number, (name, after) in enumerate(executable.stages(), 1):
        if after is not program:
            yield f"{number} {name}", after.as_text()
        program = after
    source = executable.source()
    yield "memory", _memory_text(program, executable.plan)
    yield "source", source.text()


def _memory_text(program: Program, plan: Plan) -> str:
    """Write which results share memory."""
    names = Names(program)
    known = names.by_number
    kept: dict[int, list[str]] = {}
    for number, place in plan.places.items():
        kept.setdefault(plan.views[place][0], []).append(known.get(number, f"%{number}"))
    size = sum(count * dtype.itemsize for dtype, count in plan.slots)
    rows = [f"memory that is kept: {size} bytes"]
    for slot, (dtype, count) in enumerate(plan.slots):
        rows.append(f"  {dtype}[{count}]: {', '.join(kept.get(slot, ['in loops']))}")
    if plan.results:
        large = [known.get(number, f"%{number}") for number in plan.result_places]
        rows.append(f"memory of the results: {', '.join(large)}")
    copied = [names.of(a) for a, is_one in zip(program.outputs, plan.copied, strict=True) if is_one]
    if copied:
        rows.append(f"copied before they are returned: {', '.join(copied)}")
    for result, argument in plan.donated.items():
        rows.append(f"written into an argument: {known.get(result)} into {known.get(argument)}")
    return "\n".join(rows)
