"""scipy.special: derivatives against values from mpmath, and behaviour at the edges.

The laws in tests/rules/test_laws.py compare every rule with differences. The tables here, made with
mpmath at 45 digits, say how exact they are: also far in the tails and at poles, where differences
of SciPy's values say nothing, and for the derivatives that are themselves numerical.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import MissingRuleError
from funcgrad.scipy import special

INF = np.inf

# function, arguments, which of them, derivative
FIRST = [
    ("gamma", (2.5,), 0, 0.9347345216260855),
    ("gamma", (-1.5,), 0, 1.6617502606685965),
    ("gammaln", (2.5,), 0, 0.7031566406452432),
    ("gammaln", (-1.5,), 0, 0.7031566406452432),
    ("gammaln", (1e-08,), 0, -100000000.57721564),
    ("rgamma", (-0.3,), 0, 0.4884174949595609),
    ("rgamma", (-2.0,), 0, 2.0),
    ("rgamma", (-7.4,), 0, -10663.607880962029),
    ("psi", (2.5,), 0, 0.49035775610023485),
    ("psi", (-1.5,), 0, 9.379246644989124),
    ("beta", (1.5, 2.5), 0, -0.23947333781305657),
    ("beta", (1.5, 2.5), 1, -0.10857364391348187),
    ("betaln", (1.5, 2.5), 1, -0.5529610277865573),
    ("betaln", (100000000.0, 1.5), 0, -1.49999999625e-08),
    ("betaln", (100000000.0, 1.5), 1, -18.38419077997379),
    ("betaln", (30.0, 0.001), 0, -3.389448598811442e-05),
    ("binom", (5.5, 2.5), 0, 7.749958494664913),
    ("binom", (5.5, 2.5), 1, 2.208374838668421),
    ("poch", (2.5, 1.5), 0, 2.4957988158802964),
    ("poch", (2.5, 1.5), 1, 5.669508033916129),
    ("poch", (1000000.0, 0.5), 0, 0.0005000000624999883),
    ("zeta", (2.5, 1.5), 0, -0.4648123481394763),
    ("zeta", (2.5, 1.5), 1, -0.7677404111428352),
    ("zeta", (1.01, 0.3), 0, -9995.971837942307),
    ("zeta", (30.0, 1.0), 0, -6.45548953880003e-10),
    ("zeta", (2.0,), 0, -0.9375482543158438),
    ("zeta", (0.5,), 0, -3.9226461392091516),
    ("zeta", (-1.5,), 0, -0.07630925532055088),
    ("zetac", (40.0,), 0, -6.304137786330142e-13),
    ("gammainc", (2.5, 1.2), 0, -0.21517024669068047),
    ("gammainc", (2.5, 1.2), 1, 0.29783949788259667),
    ("gammainc", (0.01, 0.3), 0, -0.9087458022685458),
    ("gammainc", (1e-05, 2.0), 0, -0.04890203843888691),
    ("gammainc", (500.0, 520.0), 0, -0.011850398373452092),
    ("gammainc", (3.0, 40.0), 0, -9.974330300089282e-15),
    ("gammainc", (3.0, 0.001), 0, -1.3596358251998284e-09),
    ("gammainc", (1000000.0, 1001000.0), 0, -0.00024193040952413304),
    ("gammainc", (1000000.0, 1001000.0), 1, 0.00024180950473148182),
    ("gammaincc", (30.0, 20.0), 0, 0.010205257324989506),
    ("betainc", (1.5, 2.5, 0.3), 0, -0.3075569951305262),
    ("betainc", (1.5, 2.5, 0.3), 1, 0.15116264414909963),
    ("betainc", (1.5, 2.5, 0.3), 2, 1.6337206456367988),
    ("betainc", (40.0, 60.0, 0.45), 0, -0.027801706569232844),
    ("betainc", (40.0, 60.0, 0.45), 1, 0.020506282168790118),
    ("betainc", (0.001, 5.0, 0.2), 0, -0.21673739338892603),
    ("betainc", (5.0, 0.001, 0.2), 1, 7.71769647966264e-05),
    ("betainc", (2.0, 3.0, 1e-08), 1, 3.499999913333334e-16),
    ("betainc", (1000.0, 2000.0, 0.34), 2, 34.06907306503176),
    ("erf", (0.7,), 0, 0.6912748604105386),
    ("erfc", (6.0,), 0, -2.617301239249265e-16),
    ("erfi", (0.7,), 0, 1.841871616709746),
    ("erfcx", (0.7,), 0, -0.39207669480629526),
    ("erfcx", (30.0,), 0, -0.0006258354105074841),
    ("erfcx", (1000000.0,), 0, -5.6418958354691e-13),
    ("dawsn", (0.7,), 0, 0.28529431941707556),
    ("dawsn", (50.0,), 0, -0.00020012012016830307),
    ("dawsn", (-1000000.0,), 0, -5.0000000000075e-13),
    ("erfinv", (0.999,), 0, 198.93951776442475),
    ("ndtr", (-8.0,), 0, 5.052271083536892e-15),
    ("log_ndtr", (-40.0,), 0, 40.02496884720726),
    ("log_ndtr", (-100000.0,), 0, 100000.00001),
    ("log_ndtr", (9.0,), 0, 1.0279773571668915e-18),
    ("owens_t", (0.7, 1.3), 0, -0.09948058878641683),
    ("owens_t", (0.7, 1.3), 1, 0.030608783766475803),
    ("voigt_profile", (0.4, 1.1, 0.6), 0, -0.05091431615223504),
    ("voigt_profile", (0.4, 1.1, 0.6), 1, -0.12615105959422185),
    ("voigt_profile", (0.4, 1.1, 0.6), 2, -0.1280152956458539),
    ("jv", (1.5, 2.5), 0, -0.07562235750909382),
    ("jv", (0.0, 2.5), 0, 0.7823670913690195),
    ("jv", (2.5, 0.01), 0, -3.4050661102470057e-06),
    ("jv", (1.5, 2.5), 1, -0.013043252736036206),
    ("jv", (20.0, 30.0), 0, -0.14190947296569914),
    ("yv", (1.5, 2.5), 0, -0.5389873067832829),
    ("yv", (1.5, 2.5), 1, 0.48845445333910265),
    ("iv", (1.5, 2.5), 0, -1.279396999080816),
    ("iv", (1.5, 2.5), 1, 1.929126504894147),
    ("kv", (1.5, 2.5), 0, 0.045399546742612956),
    ("kv", (0.3, 0.001), 0, 62.09917050480178),
    ("kv", (1.5, 2.5), 1, -0.11972133540337838),
    ("kve", (1.5, 2.5), 0, 0.5530797040105574),
    ("kve", (1.5, 100.0), 1, -0.0006454567807174826),
    ("ive", (1.5, 2.5), 0, -0.10501930090896903),
    ("ive", (1.5, 2.5), 1, 0.004584292529647459),
    ("j0", (2.5,), 0, -0.49709410246427405),
    ("j1", (0.0,), 0, 0.5),
    ("j1", (2.5,), 0, -0.2472214174539076),
    ("y0", (2.5,), 0, -0.1459181379667858),
    ("y1", (2.5,), 0, 0.43970310442851757),
    ("i0", (2.5,), 0, 2.5167162452886984),
    ("i1", (2.5,), 0, 2.283152645934644),
    ("i0e", (2.5,), 0, -0.06346179208093619),
    ("i1e", (-2.5,), 0, -0.019172067731570437),
    ("k0", (2.5,), 0, -0.07389081634774707),
    ("k1", (2.5,), 0, -0.09190387973946501),
    ("k0e", (2.5,), 0, -0.1406257335797785),
    ("k1e", (2.5,), 0, -0.21944403598337273),
    ("struve", (1.5, 2.5), 0, -0.39801832723227176),
    ("struve", (1.5, 2.5), 1, 0.49350071838314297),
    ("modstruve", (1.5, 2.5), 0, -1.1192313025106935),
    ("modstruve", (1.5, 2.5), 1, 1.758076487028213),
    ("exp1", (2.5,), 0, -0.03283399944955952),
    ("expi", (2.5,), 0, 4.872997584281389),
    ("expi", (-2.5,), 0, -0.03283399944955952),
    ("spence", (0.3,), 0, -1.7199611490370514),
    ("spence", (1.0,), 0, -1.0),
    ("spence", (1.000000001,), 0, -0.9999999995),
    ("ellipk", (0.3,), 0, 0.5848582159226464),
    ("ellipk", (0.0,), 0, 0.39269908169872414),
    ("ellipk", (0.999,), 0, 499.1639931300771),
    ("ellipe", (0.3,), 0, -0.447543972943543),
    ("ellipe", (0.999,), 0, -1.9214022871450709),
    ("ellipe", (-30.0,), 0, -0.08738863409047087),
    ("ellipkm1", (1e-20,), 0, -5.00000000000001e19),
    ("ellipkm1", (0.7,), 0, -0.5848582159226465),
    ("ellipkinc", (0.7, 0.3), 0, 1.0687426652811642),
    ("ellipkinc", (0.7, 0.3), 1, 0.0585699547087012),
    ("ellipkinc", (0.7, 0.0), 1, 0.05181878375144247),
    ("ellipkinc", (0.7, 0.99), 1, 0.0834598687510188),
    ("ellipeinc", (2.7, 0.3), 0, 0.9722159900924255),
    ("ellipeinc", (2.7, 0.3), 1, -0.8810487813411346),
    ("hyp0f1", (1.5, 0.7), 0, -0.3869648038105472),
    ("hyp0f1", (1.5, 0.7), 1, 0.8729993718497425),
    ("hyp1f1", (1.5, 2.5, 0.7), 0, 0.42270307500572624),
    ("hyp1f1", (1.5, 2.5, 0.7), 1, -0.26072617563220163),
    ("hyp1f1", (1.5, 2.5, 0.7), 2, 0.99987798158041),
    ("hyp1f1", (-0.5, 0.2, 3.0), 1, 108.20491044188624),
    ("hyp2f1", (1.5, 0.5, 2.5, 0.3), 0, 0.08051103957211214),
    ("hyp2f1", (1.5, 0.5, 2.5, 0.3), 1, 0.22988108250652228),
    ("hyp2f1", (1.5, 0.5, 2.5, 0.3), 2, -0.04936366585392228),
    ("hyp2f1", (1.5, 0.5, 2.5, 0.3), 3, 0.4358302913873082),
    ("hyp2f1", (1.5, 0.5, 2.5, -7.0), 0, -0.16233420276968186),
    ("hyperu", (1.5, 1.2, 2.0), 0, -0.2813239867483603),
    ("hyperu", (1.5, 1.2, 2.0), 1, 0.0786059032242479),
    ("hyperu", (1.5, 1.2, 2.0), 2, -0.10822341302796899),
    ("lambertw", (2.0,), 0, 0.23010983749291725),
    ("chdtr", (3.5, 2.0), 0, -0.16366078214503252),
    ("stdtr", (3.5, 1.2), 0, 0.009788669694199741),
    ("stdtr", (3.5, -1.2), 1, 0.17121607779251197),
    ("stdtr", (1000.0, -3.0), 0, -3.367402917998611e-08),
    ("stdtr", (0.3, 10.0), 0, 0.5103651468441017),
    ("fdtr", (3.5, 4.5, 1.2), 0, -0.014630220887267373),
    ("fdtr", (3.5, 4.5, 1.2), 1, 0.017760150364568298),
    ("fdtr", (3.5, 4.5, 1.2), 2, 0.304600949270335),
    ("fdtr", (200.0, 300.0, 0.8), 0, -0.0002652945060343878),
    ("fdtr", (200.0, 300.0, 0.8), 1, -9.174397571413348e-05),
    ("boxcox", (1.7, 1e-09), 1, 0.1407831704624512),
    ("boxcox", (1.7, -1.3), 1, 0.09010237703194991),
    ("inv_boxcox", (0.7, 1e-09), 1, -0.49336941274891305),
    ("inv_boxcox", (0.7, 1.3), 1, -0.1661243647254188),
    ("exprel", (1e-09,), 0, 0.5000000003333334),
    ("exprel", (0.5,), 0, 0.7025574585997437),
    ("exprel", (30.0,), 0, 344341958738.01154),
    ("pseudo_huber", (1.5, 0.001), 0, 7.40740411522771e-14),
    ("pseudo_huber", (1.5, 0.7), 1, 0.6343281979966857),
    ("eval_legendre", (4, 1.0), 1, 10.0),
    ("ndtri", (1e-10,), 0, 1535723698.1963859),
    ("betainc", (200.0, 3.0, 0.5), 0, -2.179578397601115e-57),
    ("betainc", (200.0, 3.0, 0.5), 1, 1.18020848476457e-56),
    ("agm", (1.5, 0.25), 0, 0.3415666988072201),
    ("agm", (1e-06, 1.0), 0, 6797.192459380835),
    ("elliprf", (0.5, 1.0, 2.0), 0, -0.2370336692299659),
    ("elliprc", (0.5, 2.0), 1, -0.1671599431715452),
    ("elliprd", (0.5, 1.0, 2.0), 0, -0.26817601595751345),
    ("elliprj", (0.5, 1.0, 2.0, 3.0), 3, -0.11032270339003156),
    ("betaln", (2.0, 1e-08), 0, -6.449340648276574e-09),
    ("betaln", (2.0, 0.0019), 0, -0.001224645865765467),
    ("poch", (3.0, -1e-09), 0, -3.949340665608444e-10),
]

SECOND = [
    ("gammainc", (2.5, 1.25), 0, 0, 0.16247611638765921),
    ("gammainc", (2.5, 1.25), 0, 1, -0.14458185669324966),
    ("gammainc", (2.5, 1.25), 1, 1, 0.060240797556060426),
    ("gammainc", (500.0, 520.0), 0, 0, -0.0004648546064446435),
    ("betainc", (1.5, 2.5, 0.25), 0, 0, 0.22167360027716917),
    ("betainc", (1.5, 2.5, 0.25), 0, 1, -0.0412417643470048),
    ("betainc", (1.5, 2.5, 0.25), 1, 2, 0.4387678602701075),
    ("jv", (1.5, 2.5), 0, 0, -0.42893782183567514),
    ("jv", (1.5, 2.5), 0, 1, 0.4045549642392461),
    ("kv", (1.5, 2.5), 0, 0, 0.05122904793107542),
    ("hyp1f1", (1.5, 2.5, 0.75), 0, 1, -0.2442538874008217),
    ("zeta", (2.5, 1.5), 0, 0, 0.6006957171278203),
    ("zeta", (2.5, 1.5), 0, 1, 0.12496107818968583),
    ("ellipkinc", (0.75, 0.25), 1, 1, 0.034054528441314215),
    ("spence", (1.0,), 0, 0, 0.5),
    ("spence", (1.000000001,), 0, 0, 0.4999999993333333),
    ("spence", (0.9,), 0, 0, 0.5750595453284809),
    ("spence", (1.25,), 0, 0, 0.3702968210273561),
]

# d/dz at 0.5 + 1.5i
COMPLEX = [
    ("gamma", 0.34297742588826585 + 0.17304292396087592j),
    ("loggamma", 0.38496912007482387 + 1.5705428222410447j),
    ("psi", 0.0015926875589478001 - 0.6972394119125386j),
    ("erf", 0.5897825222778001 - 8.316771024141419j),
    ("dawsn", -5.017852324898779 - 19.99728332029512j),
    ("wofz", -0.06980249753473974 + 0.14046293322978737j),
    ("log_ndtr", 0.18415819881927656 - 0.8396252162855968j),
    ("exp1", 0.35442591905225346 + 0.14674482741324277j),
    ("expi", 1.0100799069023756 + 0.25894268295456097j),
    ("spence", -0.6577983902515372 + 0.5246963740418974j),
    ("lambertw", 0.19946999810959487 - 0.2331977929085247j),
]

# d/dz and d/dv at v = 1.5, z = 0.5 + 1.5i
COMPLEX_BESSEL = [
    ("jv", 0.7325411817667704 + 0.2599202778533759j, -0.7223537976138857 - 0.7795493281639254j),
    ("kv", 0.908583744961206 + 0.02108873056594832j, -0.6095821232226926 + 0.2723636063474282j),
    (
        "hankel1",
        0.05086968543312597 - 0.34596615237988193j,
        -0.1604035430972682 + 0.3184306311964857j,
    ),
]


def at(fun, args, index):
    """Return `fun` as a function of one of its arguments."""

    def of_one(x):
        return fun(*args[:index], x, *args[index + 1 :])

    return of_one


def real_part(fun):
    def real(*args):
        return np.real(fun(*args))

    return real


@pytest.mark.parametrize(("name", "args", "index", "expected"), FIRST)
def test_derivative_is_that_of_mpmath(name, args, index, expected):
    fun = at(real_part(getattr(sp, name)), args, index)
    assert_allclose(fg.grad(fun)(args[index]), expected, rtol=2e-11)
    assert_allclose(fg.jvp(fun, (args[index],), (1.0,))[1], expected, rtol=2e-11)


@pytest.mark.parametrize(("name", "args", "index", "second", "expected"), SECOND)
def test_second_derivative_is_that_of_mpmath(name, args, index, second, expected):
    first = fg.grad(getattr(sp, name), argnums=second)
    direction = tuple(1.0 if position == index else None for position in range(len(args)))
    assert_allclose(fg.grad(first, argnums=index)(*args), expected, rtol=2e-11)
    assert_allclose(fg.jvp(first, args, direction)[1], expected, rtol=2e-11)


@pytest.mark.parametrize(("name", "expected"), COMPLEX)
def test_complex_derivative_is_that_of_mpmath(name, expected):
    z = 0.5 + 1.5j
    _, pullback = fg.vjp(getattr(sp, name), z)
    assert_allclose(fg.jvp(getattr(sp, name), (z,), (1.0 + 0.0j,))[1], expected, rtol=1e-13)
    assert_allclose(pullback(1.0 + 0.0j)[0], expected, rtol=1e-13)


@pytest.mark.parametrize(("name", "by_z", "by_order"), COMPLEX_BESSEL)
def test_bessel_functions_of_complex_argument(name, by_z, by_order):
    fun, z = getattr(sp, name), 0.5 + 1.5j
    assert_allclose(fg.jvp(at(fun, (1.5, z), 1), (z,), (1.0 + 0.0j,))[1], by_z, rtol=1e-12)
    assert_allclose(fg.jvp(at(fun, (1.5, z), 0), (1.5,), (1.0,))[1], by_order, rtol=1e-11)


# Edges: the values are SciPy's, the derivatives limits


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("xlogy", (0.0, 2.0), (math.log(2.0), 0.0)),
        ("xlogy", (0.0, 0.0), (-INF, 0.0)),
        ("xlog1py", (0.0, -1.0), (-INF, 0.0)),
        ("rel_entr", (0.0, 2.0), (-INF, 0.0)),
        ("rel_entr", (0.0, 0.0), (0.0, 0.0)),
        ("kl_div", (0.0, 2.0), (-INF, 1.0)),
        ("entr", (0.0,), (INF,)),
        ("erfinv", (1.0,), (INF,)),
        ("gammainc", (1.0, 0.0), (0.0, 1.0)),
        ("gammainc", (2.0, 0.0), (0.0, 0.0)),
        ("gammainc", (0.0, 2.0), (-0.04890051070806112, 0.0)),  # minus E1(2)
        ("betainc", (1.0, 3.0, 0.0), (0.0, 0.0, 3.0)),
        ("betainc", (3.0, 1.0, 1.0), (0.0, 0.0, 3.0)),
        ("boxcox", (0.0, 2.0), (0.0, 0.25)),
        ("boxcox", (2.0, 0.0), (0.5, 0.5 * math.log(2.0) ** 2)),
        ("huber", (1.0, 1.0), (0.0, 1.0)),
        ("pseudo_huber", (0.0, -3.0), (3.0, 0.0)),
        ("i0e", (0.0,), (0.0,)),
        ("logit", (0.0,), (INF,)),
        ("expit", (-800.0,), (0.0,)),
        ("log_expit", (-800.0,), (1.0,)),
        ("binom", (5.0, 7.0), (-1 / 42, 1 / 42)),
        ("poch", (-3.0, 2.0), (-5.0, 0.0)),
    ],
)
def test_derivative_at_an_edge(name, args, expected):
    with np.errstate(all="ignore"):
        got = fg.grad(getattr(sp, name), argnums=tuple(range(len(args))))(*args)
    assert_allclose(got, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", ["xlogy", "rel_entr", "kl_div"])
def test_empty_class_behind_a_mask_is_no_nan(name):
    p = np.array([0.0, 0.25])

    def masked(p):
        return np.sum(np.where(p > 0, getattr(sp, name)(p, p), 0.0))

    with np.errstate(all="ignore"):
        assert np.all(np.isfinite(fg.grad(masked)(p)))


def test_logarithm_of_a_vanishing_probability_has_a_gradient():
    x = np.array([-40.0, -1e4, -1e8])
    assert_allclose(
        fg.grad(lambda x: np.sum(sp.log_ndtr(x)))(x),
        [40.024968847207264, 10000.0001, 1e8],
        rtol=1e-9,
    )


def test_gammasgn_is_a_constant():
    assert fg.grad(lambda x: sp.gammasgn(x) * x)(-0.5) == -1.0


# No silent zeros


@pytest.mark.parametrize(
    ("name", "args", "argument"),
    [
        ("yn", (2.0, 1.5), "n"),
        ("kn", (2.0, 1.5), "n"),
        ("expn", (2.0, 1.5), "n"),
        ("pdtr", (2.0, 1.5), "k"),
        ("bdtr", (2.0, 4, 0.5), "k"),
        ("eval_legendre", (2.0, 0.5), "n"),
        ("eval_gegenbauer", (2.0, 0.5, 0.3), "n"),
    ],
)
@pytest.mark.filterwarnings("ignore:floating point number truncated")
@pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated")
def test_derivative_in_a_count_is_an_error_that_names_it(name, args, argument):
    fun = at(getattr(sp, name), args, 0)
    message = f"{name} has no derivative in its argument '{argument}'"
    with pytest.raises(MissingRuleError, match=message):
        fg.grad(fun)(args[0])
    with pytest.raises(MissingRuleError, match=message):
        fg.jvp(fun, (args[0],), (1.0,))


def test_shape_parameter_without_a_rule_is_an_error_that_names_it():
    with pytest.raises(MissingRuleError, match="argument 'alpha'"):
        fg.grad(lambda alpha: sp.eval_genlaguerre(2, alpha, 0.3))(0.5)


@pytest.mark.parametrize("n", [0, 2])
def test_polygamma_in_its_order_is_an_error(n):
    with pytest.raises(MissingRuleError, match="polygamma has no derivative in its argument 'n'"):
        fg.grad(lambda n: special.polygamma(n, 1.5))(float(n))


def test_ufunc_without_rules_is_an_error():
    with pytest.raises(MissingRuleError, match="nctdtr"):
        fg.grad(sp.nctdtr)(2.0, 3.0, 0.4)


@pytest.mark.parametrize("name", ["jv", "iv", "kv", "yv"])
def test_gradient_in_the_order_is_not_zero(name):
    assert abs(fg.grad(getattr(sp, name))(1.5, 2.5)) > 1e-3


# Sums of exponentials


def test_logsumexp_of_nothing_but_minus_infinity_shares_evenly():
    assert_allclose(fg.grad(special.logsumexp)(np.full(3, -INF)), np.full(3, 1 / 3))


def test_logsumexp_of_an_infinite_term_goes_to_it():
    assert_allclose(fg.grad(special.logsumexp)(np.array([INF, 1.0, 2.0])), [1.0, 0.0, 0.0])


def test_logsumexp_term_without_weight_may_be_of_any_size():
    def weighted(a):
        return special.logsumexp(a, b=np.array([1.0, 0.0, 0.0]))

    assert_allclose(fg.grad(weighted)(np.array([1.0, 1000.0, INF])), [1.0, 0.0, 0.0])


def test_log_of_a_softmax_that_underflows_has_a_gradient():
    def second(x):
        with np.errstate(divide="ignore"):
            return np.log(special.softmax(x))[1]

    assert_allclose(fg.grad(second)(np.array([0.0, 900.0])), [0.0, 0.0])


def test_logsumexp_with_sign_of_a_negative_sum():
    b = np.array([1.0, -3.0])

    def magnitude(a):
        return special.logsumexp(a, b=b, return_sign=True)[0]

    assert_allclose(fg.grad(magnitude)(np.zeros(2)), [-0.5, 1.5])


def test_logsumexp_of_complex_terms_with_sign_has_a_gradient():
    z = np.array([0.1 + 0.4j, -0.6 + 1.2j, 0.3 - 0.9j])

    def mixed(z):
        log, sign = special.logsumexp(z, return_sign=True)
        return 1.25 * log + 0.75 * sign.real + 0.25 * sign.imag

    step = 1e-6
    expected = [
        (mixed(z + step * e) - mixed(z - step * e)) / (2 * step)
        - 1j * (mixed(z + 1j * step * e) - mixed(z - 1j * step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    assert_allclose(fg.grad(mixed)(z), expected, rtol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axis": 0},
        {"axis": (0, 1), "keepdims": True},
        {"axis": -1, "return_sign": True},
        {"axis": 1, "b": 2.0},
        {"axis": 1, "b": np.array([1.0, 0.0, -0.5]), "return_sign": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_logsumexp_has_the_value_and_dtype_of_scipy(options, dtype):
    a = np.linspace(-1.0, 2.0, 6).reshape(2, 3).astype(dtype)
    expected = sp.logsumexp(a, **options)
    got = fg.vjp(lambda a: special.logsumexp(a, **options), a)[0]
    for x, y in zip(np.atleast_1d(got), np.atleast_1d(expected), strict=True):
        assert np.array_equal(x, y)
        assert x.dtype == y.dtype


# The namespace


def test_ufuncs_of_the_namespace_are_scipys_own():
    assert special.gammaln is sp.gammaln
    assert special.betainc is sp.betainc


@pytest.mark.parametrize("name", special.__all__)
def test_replaced_function_without_traced_values_is_scipys(name):
    args = {
        "comb": ([5, 6], 2),
        "factorial": ([0, 3],),
        "perm": (5, [0, 2]),
        "multigammaln": ([2.5, 3.0], 2),
        "polygamma": ([0, 1], 1.5),
        "sph_harm_y": (2, [0, 1], 0.4, 0.7),
        "log_softmax": ([[0.0, 1.0]],),
        "logsumexp": ([0.0, 1.0],),
        "softmax": ([0, 1],),
    }.get(name, ([0, 2], 1.5))
    expected = getattr(sp, name)(*args)
    got = getattr(special, name)(*args)
    assert np.array_equal(got, expected)
    assert type(got) is type(expected)


def test_comb_exact_stays_an_integer():
    assert special.comb(50, 25, exact=True) == 126410606437752


def test_namespace_takes_lists_of_traced_values():
    def total(x):
        return special.logsumexp([x, 2.0 * x])

    assert_allclose(fg.grad(total)(0.0), 1.5)


def test_namespace_lists_its_names_beside_scipys():
    assert {"logsumexp", "gammaln", "erf"} <= set(dir(special))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"funcgrad\.scipy\.special"):
        special.gamma_of_the_year  # noqa: B018 - the access is the test


# How ufuncs of several arguments and results are called


def test_out_and_where_of_a_ufunc_of_three_arguments():
    def masked(x):
        y = np.ones_like(x)
        sp.betainc(1.0, 2.0, x, out=y, where=np.array([True, False]))
        return y

    out, pullback = fg.vjp(masked, np.array([0.25, 0.5]))
    assert_allclose(out, [0.4375, 1.0])
    assert_allclose(pullback(np.ones(2))[0], [1.5, 0.0])


def test_out_that_is_traced_takes_plain_values():
    def overwritten(x):
        y = x * np.array([1.0, 1.0])
        sp.betainc(1.0, 1.0, np.array([0.25, 0.5]), out=y)
        return np.sum(x * y)

    assert fg.grad(overwritten)(3.0) == 0.75


def test_keyword_that_is_not_for_traced_values_is_an_error():
    with pytest.raises(TypeError, match=r"betainc.* takes no dtype="):
        fg.grad(lambda x: sp.betainc(1.0, 2.0, x, dtype=np.float64))(0.5)


def test_results_of_a_ufunc_with_several_have_their_own_derivatives():
    _, (sine, cosine) = fg.jvp(sp.sici, (2.0,), (1.0,))
    assert_allclose([sine, cosine], [math.sin(2.0) / 2.0, math.cos(2.0) / 2.0])


def test_ufunc_takes_a_list_beside_traced_values():
    assert_allclose(fg.grad(lambda x: np.sum(sp.betainc([1.0, 1.0], 1.0, x)))(0.5), 2.0)


def test_outer_of_a_special_ufunc():
    x = np.array([1.0, 2.0])
    got = fg.grad(lambda x: np.sum(sp.xlogy.outer(x, np.array([2.0, 4.0]))))(x)
    assert_allclose(got, np.full(2, math.log(8.0)))


# Single precision


@pytest.mark.parametrize(
    ("name", "args"), [("gammainc", (2.5, 1.25)), ("jv", (1.5, 2.5)), ("stdtr", (3.5, 1.25))]
)
def test_numerical_derivative_in_single_precision_is_exact_to_it(name, args):
    single = tuple(map(np.float32, args))
    got = fg.grad(getattr(sp, name))(*single)
    assert got.dtype == np.float32
    assert_allclose(got, fg.grad(getattr(sp, name))(*args), rtol=1e-5)


# vmap


@pytest.mark.parametrize("name", ["betainc", "hyp1f1", "fdtr"])
def test_vmap_of_a_gradient_of_three_arguments_is_a_loop(name):
    a, x = np.array([1.5, 2.0, 2.5]), np.array([0.25, 0.5, 0.75])
    gradient = fg.grad(getattr(sp, name), argnums=(0, 1, 2))
    got = fg.vmap(gradient, in_axes=(0, None, 0))(a, 2.0, x)
    expected = np.transpose([gradient(p, 2.0, q) for p, q in zip(a, x, strict=True)])
    assert_allclose(np.stack(np.broadcast_arrays(*got)), expected, rtol=1e-12)
