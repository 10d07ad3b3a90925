"""Many tests are made of what is declared, when they are collected: so all rules are loaded now."""

from funcgrad.rules import entropy, neural  # noqa: F401 - which load the others too
