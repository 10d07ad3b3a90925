"""The core: levels, tracers, primitives, and the way from NumPy's protocols to them."""
