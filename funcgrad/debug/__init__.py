"""Looking into a function that a transform is running: printing, stopping, and modes that watch.

A transform runs Python code, so Python's own `print` and debugger work in it; what is here gives
them plain values, example by example under `vmap`. The modes are context managers and decorators:
`debug_nans` and `debug_infs` stop at the operation that first made a NaN or an infinity, `strict`
lets a NaN appear that funcgrad would keep from the gradient, `check_leaks` finds traced values that
were stored away, and `check_branches` runs the branches that were not chosen. `residuals` reports
the memory that reverse mode keeps, by line, `profile` how long each operation takes, and
`show_passes` what `jit` makes of a function.
"""

from funcgrad.debug.modes import check_branches, check_leaks, debug_infs, debug_nans, strict
from funcgrad.debug.passes import show_passes
from funcgrad.debug.printing import breakpoint, callback, print, value
from funcgrad.debug.profiling import Profile, Timed, profile
from funcgrad.debug.residuals import Kept, Residuals, residuals

__all__ = [
    "Kept",
    "Profile",
    "Residuals",
    "Timed",
    "breakpoint",
    "callback",
    "check_branches",
    "check_leaks",
    "debug_infs",
    "debug_nans",
    "print",
    "profile",
    "residuals",
    "show_passes",
    "strict",
    "value",
]
