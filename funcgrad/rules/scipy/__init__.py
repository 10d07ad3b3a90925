"""The functions of SciPy, by its modules.

Nothing here is loaded by `import funcgrad.rules`, nor by importing this package: each part needs
its module of SciPy, and is imported when that part of `funcgrad.scipy` is first used, or when a
ufunc of that module first meets a traced value (`funcgrad.core.dispatch.LATE`).
"""
