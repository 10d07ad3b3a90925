"""Programs: a run of a function as a list of equations, to read, to evaluate and to compile."""
