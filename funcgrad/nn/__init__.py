"""Neural networks: activation functions and losses, for traced and plain arrays alike."""

from funcgrad.nn import functional, losses

__all__ = ["functional", "losses"]
