"""A call of every function that funcgrad covers, for `test_names.py`.

What a call differentiates are its floating and complex arrays; `Call.plain` tells whether NumPy or
SciPy itself passes such a call on (the other names work in `funcgrad.numpy` and `funcgrad.scipy`).
"""

from __future__ import annotations

import numpy as np


class Call:
    """One call: arguments, what to look at of the result, and what kind of function it is.

    Attributes
    ----------
    kind : {"smooth", "discrete", "constant"}
        Whether the result has a derivative; a constant takes no array.
    plain : bool
        Whether the function of NumPy or SciPy itself takes traced values.
    part : callable
        What to look at of the result.
    batch : bool
        Whether `vmap` can map it: False if the shape of the result depends on the elements.
    symmetric : bool
        The function is one of symmetric matrices, and looks at one triangle.
    """

    def __init__(
        self, *args, kind="smooth", plain=True, part=None, batch=True, symmetric=False, **kwargs
    ):
        self.args = args
        self.kwargs = kwargs
        self.kind = kind
        self.plain = plain
        self.part = part
        self.batch = batch
        self.symmetric = symmetric


def rng():
    return np.random.default_rng(0)


X = np.array([0.31, 0.72, 0.45])
Y = np.array([0.64, 0.27, 0.83])
LARGE = X + 1.5
A = rng().uniform(0.2, 0.9, size=(3, 3))
B = rng().normal(size=(3, 3))
SPD = A @ A.T + 3 * np.eye(3)
T = rng().uniform(0.2, 0.9, size=(2, 3, 4))
Z = X + 1j * Y
BITS = np.array([3, 5, 6])
MASK = np.array([True, False, True])

CALLS: dict[str, Call] = {}


def same(names, *args, **kwargs):
    for name in names.split():
        CALLS[f"numpy.{name}"] = Call(*args, **kwargs)


def first(out):
    return out[0]


# Elementwise

same(
    "abs absolute acos angle arccos arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt "
    "conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs i0 imag log log10 log1p log2 "
    "nan_to_num negative positive rad2deg radians real real_if_close reciprocal sin sinc sinh "
    "sqrt square tan tanh",
    X,
)
same("acosh arccosh", LARGE)
same("angle imag real conj conjugate abs absolute", Z)
same(
    "add arctan2 atan2 copysign divide float_power fmax fmin hypot logaddexp logaddexp2 "
    "maximum minimum multiply pow power subtract true_divide",
    X,
    Y,
)
same("fmod mod remainder", LARGE, Y)
same("divmod", LARGE, Y, part=lambda out: out[1])
same("heaviside", X, Y)
same("nextafter", X, 2.0)
same("ldexp", X, np.array([1, 2, 3]))
same("frexp modf", LARGE, part=first)
same("clip", X, 0.1, 0.6)
same("where", MASK, X, Y)
same("select", [MASK, ~MASK], [X, Y])
same("choose", np.array([0, 1, 0]), [X, Y])
same("piecewise", X, [MASK], [np.sin, np.cos])
same("unwrap", 9 * X)

# Discrete

same(
    "ceil floor isfinite isinf isnan isneginf isposinf iscomplex isreal logical_not rint "
    "round around sign signbit spacing trunc argmax argmin argsort nanargmax nanargmin all "
    "any count_nonzero argwhere flatnonzero nonzero iscomplexobj isrealobj ndim shape size "
    "array_repr array_str isscalar iterable",
    X,
    kind="discrete",
)
same(
    "equal floor_divide greater greater_equal less less_equal logical_and logical_or "
    "logical_xor not_equal allclose array_equal array_equiv isclose isin",
    X,
    Y,
    kind="discrete",
)
same("digitize searchsorted", np.sort(X), Y, kind="discrete")
CALLS["numpy.digitize"] = Call(Y, np.array([0.3, 0.6]), kind="discrete")
same("argpartition", X, 1, kind="discrete")
same("lexsort", (X, Y), kind="discrete")
same("result_type", X, np.float32, kind="discrete")
same("can_cast", np.float32, np.float64, kind="constant")
same("promote_types", np.float32, np.float64, kind="constant")
same("issubdtype isdtype", np.dtype(float), np.float64, kind="constant")
same(
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift left_shift "
    "right_shift gcd lcm",
    BITS,
    np.array([1, 2, 3]),
    kind="discrete",
)
same("bitwise_count bitwise_invert bitwise_not invert", BITS, kind="discrete")
same("packbits", MASK, kind="discrete")
same("unpackbits", BITS.astype(np.uint8), kind="discrete")
same("broadcast_shapes", (3, 1), (4,), kind="constant")
same("diag_indices", 3, kind="constant")
same("tril_indices triu_indices", 3, kind="constant")
same("diag_indices_from tril_indices_from triu_indices_from", A, kind="discrete")
same("mask_indices", 3, np.triu, kind="constant")
same("unravel_index", np.array([2, 3]), (2, 3), kind="discrete")
same("ravel_multi_index", (np.array([1, 0]), np.array([2, 1])), (2, 3), kind="discrete")
same("histogram_bin_edges", X, 3, kind="smooth")
same("einsum_path", "ij,jk->ik", A, B, kind="discrete", batch=False)

# Constants

same("arange", 3, kind="constant")
same("bartlett blackman hamming hanning", 4, kind="constant")
same("empty eye identity indices ones tri zeros", 3, kind="constant")
CALLS["numpy.indices"] = Call((2, 3), kind="constant")
same("fromstring", "1 2 3", sep=" ", kind="constant")
same("frombuffer", np.arange(3.0).tobytes(), kind="constant")
same("fromiter", [1.0, 2.0], float, kind="constant")
same("get_printoptions", kind="constant")
same("printoptions", precision=3, kind="constant", part=lambda out: None)
same("set_printoptions", kind="constant")
same("from_dlpack", np.arange(3.0), kind="constant")
same("empty_like ones_like zeros_like", X, kind="discrete", part=lambda out: 0 * np.nan_to_num(out))

# Making

same("array asarray", [X, Y], plain=False)
same("full", (2, 3), X, plain=False)
same("full_like", A, X)
same("copy", X)
same("linspace", np.float64(0.3), np.float64(1.7), 4)
same("logspace", np.float64(0.3), np.float64(1.7), 4)
same("geomspace", np.float64(0.3), np.float64(1.7), 4)
same("meshgrid", X, Y)
same("kaiser", 4, np.float64(1.5), plain=False)
same("vander", X)
same("fromfunction", lambda i, j, x: (i + j) * x, (3, 3), plain=False, x=X)
same("ix_", [0, 2], [1], kind="constant")
same("c_ r_", plain=False)
CALLS["numpy.c_"] = Call(X, Y, plain=False)
CALLS["numpy.r_"] = Call(X, Y, plain=False)
same("vectorize", np.sin, X, plain=False)
same("frompyfunc", np.sin, X, plain=False, part=lambda out: out.astype(float))

# Shapes

same("reshape resize", A, (9,))
same("broadcast_to", X, (2, 3))
same("broadcast_arrays", A, X)
same(
    "ravel squeeze transpose permute_dims matrix_transpose fliplr flipud flip rot90 diag diagonal",
    A,
)
same("diagflat", X)
same("trace tril triu", A)
same("atleast_1d atleast_2d atleast_3d", X)
same("expand_dims", A, 1)
same("moveaxis", T, 0, -1)
same("rollaxis", T, 2)
same("swapaxes", T, 0, 1)
same("roll", A, 1)
same("tile repeat", X, 2)
same("pad", A, 1)
same("append", X, Y)
same("insert", X, 1, np.float64(2.0))
same("delete", X, 1)
same("trim_zeros", X, batch=False)
same("concat concatenate stack hstack vstack dstack column_stack row_stack block", [X, Y])
same("array_split split", np.arange(4.0) + 0.5, 2)
same("hsplit", np.arange(4.0) + 0.5, 2)
same("vsplit", T, 2)
same("dsplit", T, 2)
same("unstack", A)
same("astype", X, np.float64)
same("take", X, np.array([0, 2]))
same("take_along_axis", A, np.array([[0], [1], [2]]), axis=1)
same("compress", MASK, X, batch=False)
same("extract", MASK, X, batch=False)
same("apply_along_axis", np.cumsum, 0, A)
same("apply_over_axes", np.sum, A, [0, 1])
CALLS["numpy.lib.stride_tricks.sliding_window_view"] = Call(X, 2)

# Writing in place: on a copy

same("fill_diagonal", A, np.float64(2.0))
same("place", X, MASK, Y)
same("put", X, np.array([0, 2]), Y)
same("put_along_axis", A, np.array([[0], [1], [2]]), np.float64(1.5), 1)
same("copyto", X, Y)
same("putmask", X, MASK, Y)
IN_PLACE = {
    "numpy.copyto",
    "numpy.fill_diagonal",
    "numpy.place",
    "numpy.put",
    "numpy.put_along_axis",
    "numpy.putmask",
}

# Reductions, sorting, statistics

same(
    "sum prod mean std var max min amax amin ptp average median nansum nanprod nanmean nanstd "
    "nanvar nanmax nanmin nanmedian cumsum cumprod nancumsum nancumprod cumulative_sum "
    "cumulative_prod sort sort_complex unique unique_values diff ediff1d gradient trapezoid",
    X,
)
CALLS["numpy.sort_complex"] = Call(Z)
same("unique_all unique_counts unique_inverse", X, part=first, batch=False)
same("unique unique_values", X, batch=False)
same("percentile nanpercentile", X, 30.0)
same("quantile nanquantile", X, 0.3)
same("partition", X, 1)
same("cov corrcoef", A)
same("histogram", X, 3, weights=Y, part=first)
CALLS["numpy.histogram"] = Call(X, np.array([0.0, 0.4, 1.0]), weights=Y, part=first)
CALLS["numpy.histogram2d"] = Call(X, Y, 2, [[0.0, 1.0], [0.0, 1.0]], weights=LARGE, part=first)
CALLS["numpy.histogramdd"] = Call(A, 2, [[0.0, 1.0]] * 3, weights=LARGE, part=first)
same("bincount", np.array([0, 2, 2]), weights=X)
same("interp", Y, np.array([0.0, 0.5, 1.0]), X)
same("union1d setdiff1d setxor1d", X, Y, batch=False)
same("intersect1d", X, batch=False)  # with itself

# Products and polynomials

same("matmul dot inner outer kron cross vdot vecdot", X, Y)
CALLS["numpy.matmul"] = Call(A, B)
same("matvec", A, X)
same("vecmat", X, A)
same("tensordot", A, B)
same("einsum", "ij,jk->ik", A, B)
same("convolve correlate", X, Y)
same("poly roots polyder polyint", X)
same("polyadd polymul polysub", X, Y)
same("polydiv", LARGE, Y[:2])
same("polyval", X, Y)
CALLS["numpy.polyfit"] = Call(np.arange(4.0), np.array([0.3, 0.9, 0.2, 0.5]), 2)

# numpy.linalg and numpy.fft


def under(prefix, names, *args, **kwargs):
    for name in names.split():
        CALLS[f"{prefix}.{name}"] = Call(*args, **kwargs)


under("numpy.linalg", "cond det inv pinv slogdet matrix_norm eigvals svdvals norm", A + np.eye(3))
CALLS["numpy.linalg.slogdet"] = Call(SPD, part=lambda out: out[1])
under("numpy.linalg", "cholesky eigvalsh", SPD, symmetric=True)
under("numpy.linalg", "eigh", SPD, symmetric=True, part=lambda out: [out[0], np.abs(out[1])])
under("numpy.linalg", "eig", SPD + A, part=first)
under("numpy.linalg", "qr", A + np.eye(3), part=lambda out: [np.abs(out[0]), np.abs(out[1])])
under("numpy.linalg", "svd", A, part=lambda out: [np.abs(out[0]), out[1], np.abs(out[2])])
under("numpy.linalg", "diagonal trace matrix_transpose", A)
under("numpy.linalg", "matrix_power", A, 3)
under("numpy.linalg", "matrix_rank", A, kind="discrete")
under("numpy.linalg", "matmul tensordot", A, B)
under("numpy.linalg", "cross outer vecdot", X, Y)
under("numpy.linalg", "vector_norm", X)
under("numpy.linalg", "multi_dot", [A, B, SPD])
under("numpy.linalg", "solve", SPD, X)
under("numpy.linalg", "lstsq", A[:, :2], X, part=first)
under("numpy.linalg", "tensorsolve", SPD, X)
under("numpy.linalg", "tensorinv", SPD, ind=1)
under("numpy.fft", "fft ifft rfft ihfft fftshift ifftshift irfft hfft", X)
under("numpy.fft", "fft2 ifft2 fftn ifftn rfft2 rfftn irfft2 irfftn", A)
under("numpy.fft", "fftfreq rfftfreq", 4, kind="constant")

# scipy.special

S = "scipy.special"
under(
    S,
    "digamma erf erfc erfcinv erfcx erfinv expit exp1 expi gamma gammaln i0 i0e i1 i1e j0 j1 "
    "log_ndtr loggamma logit ndtr ndtri psi rgamma spence wofz y0 y1 dawsn entr",
    X,
)
under(S, "logsumexp log_softmax softmax", X, plain=False)
under(S, "sici fresnel", X)
under(S, "gammasgn", X, kind="discrete")
under(S, "beta betaln rel_entr kl_div xlogy xlog1py boxcox boxcox1p owens_t poch", X, Y)
under(S, "betainc", X, Y, np.array([0.2, 0.5, 0.8]))
under(S, "gammainc gammaincc", LARGE, Y)
under(S, "hyp1f1", 1.5, 2.5, X)
under(S, "hyp2f1", 1.5, 0.5, 2.5, 0.5 * X)
under(S, "iv ive", 2.0, LARGE)
under(S, "jn yn", 2, LARGE)
under(S, "expn", 2, X)
under(S, "zeta", 3.0, LARGE)
under(S, "polygamma", 1, LARGE, plain=False)
under(S, "multigammaln", LARGE, 2, plain=False)
under(S, "comb", 5.5, LARGE, plain=False)
under(S, "factorial", LARGE, plain=False)
under(S, "bernoulli", 4, kind="constant", plain=False)
under(S, "sph_harm_y", 2, 1, X, Y, plain=False)

# scipy.stats

P = [0.2, 0.3, 0.5]  # adds up to 1, and must go on to
K = np.array([0, 1, 3])


def stats(name, methods, *args, **options):
    under(f"scipy.stats.{name}", methods, *args, plain=False, **options)


stats("norm", "cdf logcdf logpdf logsf pdf sf", X, Y, LARGE)
stats("t", "cdf logcdf logpdf pdf", X, 3.5, Y, LARGE)
stats("beta", "cdf logpdf pdf", X, LARGE, Y)
stats("gamma", "cdf logpdf pdf", X, LARGE)
stats("chi2", "cdf logpdf pdf", X, LARGE)
stats("poisson", "cdf logpmf pmf", K, LARGE)
stats("dirichlet", "logpdf pdf", P, LARGE)
stats("multivariate_normal", "logpdf pdf", X, Y, SPD, symmetric=True)
stats("multivariate_normal", "entropy", Y, SPD, symmetric=True)

# The rest of scipy

under("scipy.linalg", "solve_triangular", np.tril(SPD), X, lower=True, plain=False)
CALLS["scipy.linalg.solve_banded"] = Call(
    (1, 1), np.array([[0.0, 0.1, 0.2], [2.0, 3.0, 4.0], [0.3, 0.4, 0.0]]), X, plain=False
)
under("scipy.linalg", "solve_sylvester", A, SPD, B, plain=False)
under("scipy.linalg", "sqrtm", SPD, plain=False)
under("scipy.linalg", "expm inv det pinv norm svdvals", A + np.eye(3), plain=False)
under("scipy.linalg", "logm", SPD, plain=False)
under("scipy.linalg", "solve", SPD, X, plain=False)
under("scipy.linalg", "cho_solve", (np.linalg.cholesky(SPD), True), X, plain=False)
under("scipy.linalg", "lu", A + 2 * np.eye(3), plain=False)
under("scipy.linalg", "toeplitz hankel", X, Y, plain=False)
under("scipy.linalg", "block_diag", A, B, plain=False)
under("scipy.signal", "convolve correlate fftconvolve oaconvolve", X, Y, plain=False)
under("scipy.signal", "convolve2d correlate2d", A, B, plain=False)
under("scipy.signal", "lfilter", X, np.array([1.0, 0.3]), Y, plain=False)
under("scipy.ndimage", "gaussian_filter", A, 1.0, plain=False)
under("scipy.ndimage", "uniform_filter", A, 2, plain=False)
under("scipy.ndimage", "correlate convolve", A, B, plain=False)
under("scipy.ndimage", "map_coordinates", A, np.stack([X, Y]), order=1, plain=False)
under("scipy.integrate", "simpson trapezoid cumulative_trapezoid", X, plain=False)
for _name in ["cauchy", "expon", "gumbel_l", "gumbel_r", "laplace", "logistic", "uniform"]:
    stats(_name, "cdf logpdf pdf sf", X, Y - 0.5, LARGE)
for _name in ["halfnorm", "lognorm", "pareto", "rayleigh", "weibull_min", "invgamma"]:
    stats(_name, "cdf logpdf pdf", LARGE, *((Y,) if _name not in ("halfnorm", "rayleigh") else ()))


def pendulum(y, t, a):
    return np.stack([y[1], -a * np.sin(y[0])])


CALLS["scipy.integrate.odeint"] = Call(
    pendulum,
    X[:2],
    np.array([0.0, 0.4, 1.0]),
    (np.float64(1.5),),
    plain=False,
    rtol=1e-11,
    atol=1e-11,
)

# Left out: what reads or writes files
LEFT_OUT = {
    "numpy.fromfile": "reads a file: what comes out is a plain array",
    "numpy.load": "reads a file: what comes out is a plain array",
    "numpy.save": "writes a file, which takes plain arrays: use funcgrad.stop_gradient(x)",
    "numpy.savez": "writes a file, which takes plain arrays: use funcgrad.stop_gradient(x)",
}
