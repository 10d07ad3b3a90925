"""What to write in place of the special functions that have no rule.

The messages of `funcgrad.core.dispatch` ask for it.
"""

from __future__ import annotations

from funcgrad.core.alternatives import INSTEAD

__all__: list[str] = []

# Functions without a rule -> what to write instead.
_INSTEAD = {
    **dict.fromkeys(("pbdv", "pbvv", "pbwa"), "use hyp1f1, of which it can be made"),
    **dict.fromkeys(
        ("mathieu_a", "mathieu_b", "mathieu_cem", "mathieu_sem"),
        "integrate the differential equation with funcgrad.scipy.integrate.odeint",
    ),
    **dict.fromkeys(("chndtr", "chndtrix"), "add chdtr for more degrees, weighed as by Poisson"),
    **dict.fromkeys(("ncfdtr", "ncfdtri"), "add betainc for more degrees, weighed as by Poisson"),
    **dict.fromkeys(("nctdtr", "nctdtrit"), "use stdtr, or funcgrad.scipy.integrate.quad"),
    **dict.fromkeys(
        ("it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0", "itstruve0"),
        "use funcgrad.scipy.integrate.quad of the function that it integrates",
    ),
    "airye": "use airy",
    "assoc_laguerre": "use eval_genlaguerre",
    "bdtrik": "use bdtr",
    "bdtrin": "use bdtr",
    "besselpoly": "use quad of the integrand, in funcgrad.scipy.integrate",
    "btdtria": "use betaincinv",
    "btdtrib": "use betaincinv",
    "chdtriv": "use chdtri",
    "diric": "write numpy.sin(n * x / 2) / (n * numpy.sin(x / 2))",
    "factorial2": "use gamma: 2**(n / 2) * gamma(n / 2 + 1) for even n",
    "factorialk": "use gamma",
    "fdtridfd": "use fdtri",
    "gdtria": "use gdtrix",
    "gdtrib": "use gdtrix",
    "kelvin": "use ber, bei, ker, kei and their derivatives berp, beip, kerp, keip",
    "lpmv": "use eval_legendre, or sph_harm_y",
    "lqmn": "write the recurrence of the Legendre functions, from eval_legendre",
    "lqn": "write the recurrence of the Legendre functions, from eval_legendre",
    "modfresnelm": "use fresnel",
    "modfresnelp": "use fresnel",
    "nbdtri": "use betaincinv(n, k + 1, y)",
    "radian": "write (d + m / 60 + s / 3600) * numpy.pi / 180",
    "smirnov": "use kolmogorov, which is its limit",
    "smirnovi": "use kolmogi, which is its limit",
    "stdtridf": "use stdtrit",
    "stirling2": "compute it outside of what is differentiated: it is an integer",
}
INSTEAD.update({f"scipy.special.{name}": instead for name, instead in _INSTEAD.items()})
