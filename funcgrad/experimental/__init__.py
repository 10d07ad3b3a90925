"""What may still change: Taylor mode, `jet`.

Names here follow ``jax.experimental``. They are tested like everything else; it is their place and
their signature that are not promised yet.
"""

from funcgrad.experimental.taylor import jet

__all__ = ["jet"]
