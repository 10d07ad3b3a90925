"""Many tests are made of what is declared, when they are collected: so all rules are loaded now."""

from funcgrad.rules import nn  # noqa: F401 - which `import funcgrad.rules` leaves out
from funcgrad.rules.scipy import (  # noqa: F401 - as above
    convolving,
    filters,
    interpolating,
    linalg,
    special,
)
from funcgrad.scipy import integrate  # noqa: F401 - as above

# No tests and no examples: the laws import them.
collect_ignore = ["rules/cases.py", "rules/recorded.py"]
