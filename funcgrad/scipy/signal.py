"""SciPy's signal processing for traced code: ``from funcgrad.scipy import signal``.

Convolutions, `lfilter`, `detrend` and `hilbert` may be differentiated, forward, in reverse and
under `vmap`, to any order. Values are SciPy's own. Every other name is SciPy's function, which
takes plain values only.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal

from funcgrad.core.alternatives import INSTEAD, offer
from funcgrad.core.namespace import standing_in
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.scipy import convolving, filters
from funcgrad.rules.scipy.adopt import in_place_of, plain_only
from funcgrad.rules.spelling import array_of

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "detrend",
    "fftconvolve",
    "hilbert",
    "lfilter",
    "oaconvolve",
]

Mode = Literal["full", "same", "valid"]


@in_place_of(signal.convolve)
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    method: Literal["auto", "direct", "fft"] = "auto",
) -> Any:
    """Convolve two arrays of as many axes, as `scipy.signal.convolve`.

    Parameters
    ----------
    in1, in2 : array_like
        Real or complex; differentiable.
    mode : {"full", "same", "valid"}
        All of the convolution, its middle of the size of `in1`, or where the arrays overlap in
        full.
    method : {"auto", "direct", "fft"}
        How to compute it; the derivatives are convolutions by the same method.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        As in SciPy: arrays that have not as many axes, an unknown mode or method.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> smooth = lambda x: np.sum(signal.convolve(x, [0.25, 0.5, 0.25], "valid"))
    >>> fg.grad(smooth)(np.arange(5.0))
    array([0.25, 0.75, 1.  , 0.75, 0.25])
    """
    return convolving.convolve(in1, in2, mode, method)


@in_place_of(signal.correlate)
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    method: Literal["auto", "direct", "fft"] = "auto",
) -> Any:
    """Correlate two arrays of as many axes, as `scipy.signal.correlate`.

    Parameters
    ----------
    in1, in2 : array_like
        Differentiable; `in2` is conjugated.
    mode, method
        See `convolve`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> fg.grad(lambda x: signal.correlate(x, x, "valid")[0])(x)
    array([2., 4., 6.])
    """
    return convolving.correlate(in1, in2, mode, method)


@in_place_of(signal.fftconvolve)
def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", axes: int | tuple[int, ...] | None = None
) -> Any:
    """Convolve two arrays by Fourier transforms, as `scipy.signal.fftconvolve`.

    Parameters
    ----------
    in1, in2 : array_like
        Differentiable.
    mode : {"full", "same", "valid"}
        See `convolve`.
    axes : int or tuple of int, optional
        Along which to convolve; along other axes the arrays are broadcast. By default all.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> rows, weights = np.ones((2, 4)), np.array([[1.0, 2.0]])
    >>> total = lambda w: np.sum(signal.fftconvolve(rows, w, "valid", axes=1))
    >>> fg.grad(total)(weights).round(12)
    array([[6., 6.]])
    """
    return convolving.fftconvolve(in1, in2, mode, axes)


@in_place_of(signal.oaconvolve)
def oaconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", axes: int | tuple[int, ...] | None = None
) -> Any:
    """Convolve a long array with a short one, part by part, as `scipy.signal.oaconvolve`.

    Parameters
    ----------
    in1, in2, mode, axes
        See `fftconvolve`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> total = lambda w: np.sum(signal.oaconvolve(np.ones(100), w, "valid"))
    >>> fg.grad(total)(np.ones(3)).round(12)
    array([98., 98., 98.])
    """
    return convolving.oaconvolve(in1, in2, mode, axes)


@in_place_of(signal.convolve2d)
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    boundary: Literal["fill", "wrap", "symm"] = "fill",
    fillvalue: float = 0,
) -> Any:
    """Convolve two matrices, as `scipy.signal.convolve2d`.

    Parameters
    ----------
    in1, in2 : array_like
        Matrices; differentiable.
    mode : {"full", "same", "valid"}
        See `convolve`.
    boundary : {"fill", "wrap", "symm"}
        What lies around `in1`: `fillvalue`, the matrix again, or its mirror images.
    fillvalue : float
        Not differentiable.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> image, weights = np.ones((3, 3)), np.ones((2, 2))
    >>> fg.grad(lambda w: np.sum(signal.convolve2d(image, w, "same")))(weights)
    array([[9., 6.],
           [6., 4.]])
    """
    in1, in2 = array_of(in1), array_of(in2)
    around = [((n - 1) // 2, n // 2) for n in shape_of(in2)]
    return _with_boundary(
        convolving.convolve2d, in1, in2, mode, boundary, fillvalue, [pair[::-1] for pair in around]
    )


@in_place_of(signal.correlate2d)
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: Mode = "full",
    boundary: Literal["fill", "wrap", "symm"] = "fill",
    fillvalue: float = 0,
) -> Any:
    """Correlate two matrices, as `scipy.signal.correlate2d`.

    Parameters
    ----------
    in1, in2 : array_like
        Matrices; differentiable. `in2` is conjugated.
    mode, boundary, fillvalue
        See `convolve2d`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> image, weights = np.arange(9.0).reshape(3, 3), np.ones((2, 2))
    >>> fg.grad(lambda w: signal.correlate2d(image, w, "valid")[0, 1])(weights)
    array([[1., 2.],
           [4., 5.]])
    """
    in1, in2 = array_of(in1), array_of(in2)
    around = [((n - 1) // 2, n // 2) for n in shape_of(in2)]
    return _with_boundary(convolving.correlate2d, in1, in2, mode, boundary, fillvalue, around)


_NUMPY_NAMES: dict[Any, Any] = {
    "fill": "constant",
    "pad": "constant",
    "wrap": "wrap",
    "circular": "wrap",
    "symm": "symmetric",
    "symmetric": "symmetric",
}


def _with_boundary(
    product: Any, in1: Any, in2: Any, mode: Any, boundary: Any, fillvalue: Any, around: Any
) -> Any:
    """Write the boundary out, `around` on the two sides of each axis, and convolve without it.

    The sums are the same and in the same order, so the values are SciPy's.
    """
    pad_mode = _NUMPY_NAMES.get(boundary)
    without = pad_mode == "constant" and not np.any(fillvalue)
    if pad_mode is None or mode not in ("full", "same") or without:
        if pad_mode is None:
            signal.convolve2d(np.ones((1, 1)), np.ones((1, 1)), mode, boundary)  # an error
        return product(in1, in2, mode)
    if len(shape_of(in1)) != 2 or len(shape_of(in2)) != 2:
        return product(in1, in2, mode)  # an error
    if mode == "full":
        around = [(n - 1, n - 1) for n in shape_of(in2)]
    options: Any = {"constant_values": fillvalue} if pad_mode == "constant" else {}
    if dtype_of(in1).kind not in "fc":
        in1 = np.asarray(in1).astype(np.result_type(dtype_of(in1), dtype_of(in2)))
    return product(np.pad(in1, around, pad_mode, **options), in2, "valid")


@in_place_of(signal.lfilter)
def lfilter(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None
) -> Any:
    """Filter a signal along an axis, as `scipy.signal.lfilter`.

    Parameters
    ----------
    b, a : array_like
        Coefficients of the numerator and of the denominator; differentiable.
    x : array_like
        The signal; differentiable.
    axis : int
        Which axis is time.
    zi : array_like, optional
        The state of the filter at the start. With it nothing can be traced.

    Returns
    -------
    y : ndarray
        The filtered signal.
    zf : ndarray
        The state at the end; only with `zi`.

    Raises
    ------
    MissingRuleError
        `zi` was given, and something is traced.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> last = lambda x: signal.lfilter([1.0], [1.0, -0.5], x)[-1]
    >>> fg.grad(last)(np.zeros(4))
    array([0.125, 0.25 , 0.5  , 1.   ])
    """
    if zi is None:
        return filters.lfilter(b, a, x, axis=axis)
    raise MissingRuleError(
        "scipy.signal.lfilter with zi= has no rule for traced values",
        where=user_line(),
        fix="leave zi away, and put the samples that led to that state before those of x",
    )


@in_place_of(signal.detrend)
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: Literal["linear", "constant"] = "linear",
    bp: int | list[int] = 0,
    overwrite_data: bool = False,
) -> Any:
    """Subtract the mean or a straight line along an axis, as `scipy.signal.detrend`.

    Parameters
    ----------
    data : array_like
        Differentiable.
    axis : int
        Along which axis.
    type : {"linear", "constant"}
        A line that fits best, or the mean.
    bp : int or list of int
        Where lines end and the next ones start.
    overwrite_data : bool
        Without effect on traced values.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> fg.grad(lambda x: signal.detrend(x, type="constant")[0])(np.arange(4.0))
    array([ 0.75, -0.25, -0.25, -0.25])
    """
    return filters.detrend(data, axis, type, bp)


@in_place_of(signal.hilbert)
def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Any:
    """Compute the analytic signal of a real one along an axis, as `scipy.signal.hilbert`.

    Parameters
    ----------
    x : array_like
        Real; differentiable.
    N : int, optional
        The length to cut or pad the signal to.
    axis : int
        Along which axis.

    Returns
    -------
    ndarray
        Complex; its real part is `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import signal
    >>> envelope = lambda x: np.sum(np.abs(signal.hilbert(x)) ** 2)
    >>> fg.grad(envelope)(np.array([1.0, 0.0, -1.0, 0.0])).round(12)
    array([ 4.,  0., -4.,  0.])
    """
    return filters.hilbert(x, N, axis)


# Functions without a rule -> what to write instead.
_INSTEAD = {
    "bode": "divide numpy.polyval of both polynomials at 1j * w",
    "coherence": "use numpy.fft.rfft of the windows",
    "csd": "use numpy.fft.rfft of the windows",
    "czt": "use numpy.fft.rfft and irfft",
    "deconvolve": "use lfilter(signal, divisor, impulse)",
    "envelope": "use the absolute value of hilbert",
    "filtfilt": "use lfilter forwards and backwards: lfilter(b, a, lfilter(b, a, x)[::-1])[::-1]",
    "freqs": "divide numpy.polyval of both polynomials at 1j * w",
    "freqz": "divide numpy.polyval of both polynomials at exp(1j * w)",
    "group_delay": "divide numpy.polyval of both polynomials at exp(1j * w)",
    "hilbert2": "use numpy.fft.fft2",
    "istft": "use numpy.fft.irfft of the columns",
    "medfilt": "use numpy.median of numpy.lib.stride_tricks.sliding_window_view",
    "medfilt2d": "use numpy.median of numpy.lib.stride_tricks.sliding_window_view",
    "order_filter": "use numpy.median of numpy.lib.stride_tricks.sliding_window_view",
    "periodogram": "use numpy.fft.rfft of the windows",
    "resample": "use numpy.fft.rfft and irfft",
    "savgol_filter": "use convolve with savgol_coeffs",
    "sepfir2d": "use convolve along each axis",
    "sosfilt": "use lfilter for one section after the other: lfilter(row[:3], row[3:], x)",
    "sosfiltfilt": "use lfilter for each section, forwards and backwards",
    "spectrogram": "use numpy.fft.rfft of the windows",
    "stft": "use numpy.fft.rfft of the windows",
    "upfirdn": "use convolve of the signal with zeros between its samples",
    "welch": "use numpy.fft.rfft of the windows",
    "zoom_fft": "use numpy.fft.rfft and irfft",
}

offer("scipy.signal", __all__)
INSTEAD.update({f"scipy.signal.{name}": instead for name, instead in _INSTEAD.items()})

__getattr__, __dir__ = standing_in(__name__, signal, __all__, plain_only)
