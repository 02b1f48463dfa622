"""astropy: quantities with units, constants, angles, coordinates, cosmology, models: subclasses of ndarray throughout."""

import warnings

import numpy as np
import pytest

from plaingrad import grad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("astropy")
    import astropy.constants as c
    import astropy.units as u
    from astropy.coordinates import Angle, SkyCoord, spherical_to_cartesian
    from astropy.cosmology import FlatLambdaCDM
    from astropy.modeling import models
    from astropy.stats import biweight_location, mad_std
    from astropy.table import Column, MaskedColumn, Table
    from astropy.time import Time

X = np.array([1.0, 2.0, 3.5])


def test_a_speed_keeps_its_unit(agrees):
    agrees(lambda v: ((v * u.km) / (2.0 * u.s)).to(u.m / u.s).value, 2.5)


def test_kinetic_energy_in_joule(agrees):
    value, _ = agrees(lambda v: (0.5 * u.kg * (v * u.km / u.s) ** 2).to(u.J).value, 2.5)
    assert value == pytest.approx(0.5 * 2500.0**2)


def test_squares_of_lengths_in_several_units(agrees):
    agrees(lambda v: np.sum((v * u.km + v * u.m) ** 2).to_value(u.m**2), X)


def test_the_largest_length(agrees):
    agrees(lambda v: (v * u.km).max().to_value(u.m) * 2.0, X)


def test_angles_in_degrees(agrees):
    agrees(lambda v: np.sin(v * u.deg).sum().value, X)
    agrees(lambda a: Angle(a, "deg").radian, 10.0)


def test_hypotenuse_and_mean(agrees):
    agrees(lambda v: (np.hypot(v * u.km, 3 * u.m).sum() + np.mean(v * u.km)).to_value(u.m), X)


def test_elements_and_a_comparison_with_units(agrees):
    agrees(lambda v: ((v * u.km)[1] * (v * u.m if v[0] * u.km > 1 * u.m else v * u.km)[2]).to_value(u.m**2), X)


def test_the_energy_of_a_photon_by_an_equivalency(agrees):
    agrees(lambda v: (v * u.nm).to(u.eV, equivalencies=u.spectral()).value, 500.0)


def test_gravity_with_a_constant(agrees):
    agrees(lambda m: (c.G * m * u.kg / (1 * u.m) ** 2).to_value(u.m / u.s**2), 2e10, atol=1e-14)


def test_the_separation_of_two_stars(agrees):
    there = SkyCoord(ra=12 * u.deg, dec=21 * u.deg)
    agrees(lambda a: SkyCoord(ra=a * u.deg, dec=20 * u.deg).separation(there).deg, 10.0)


def test_the_expansion_of_the_universe(agrees):
    agrees(lambda h, om: FlatLambdaCDM(H0=h, Om0=om).H(0.7).value, 70.0, 0.3)


def test_models_and_robust_statistics(agrees):
    agrees(lambda a, m: float(models.Gaussian1D(a, m, 1.0)(0.5)), 2.0, 0.1)
    agrees(lambda v: biweight_location(v), X)
    agrees(lambda v: mad_std(v), np.array([1.0, 2.0, 4.1, 8.0, 3.0]))


def test_columns_and_times(agrees):
    agrees(lambda v: Table({"a": v})["a"].sum() * 2.0, X)
    agrees(lambda t: Time(t, format="jd").mjd, 2450000.5, step=1e-7)


def test_compiled_routines_are_refused_by_what_was_called(refuses):
    refuses(lambda a: spherical_to_cartesian(1.0, a, 0.3)[0].value, 0.4, called="astropy.coordinates.spherical_to_cartesian")


def test_distances_by_scipys_special_functions(agrees):
    cosmos = FlatLambdaCDM(H0=70, Om0=0.3)
    agrees(lambda z: cosmos.luminosity_distance(z).value, 0.5)


def test_elements_of_columns_whose_items_are_read_by_c_code(agrees):
    agrees(lambda v: Column(v)[0] * v[1], X)
    agrees(lambda v: Column(v)[[2, 0]] @ v[:2], X)
    agrees(lambda v: Column(v)[v > 1.5].sum() * v[2], X)
    agrees(lambda v: sum(x * x for x in Column(v)), X)
    agrees(lambda v: Column(np.outer(v, v))[1].sum(), X)
    agrees(lambda v: MaskedColumn(v, mask=[False, True, False])[[1, 2]].sum() * v[0], X)
    agrees(lambda v: sum(row["a"] * row["b"] for row in Table({"a": v, "b": v[::-1]})), X)
    agrees(lambda v: Table({"a": v, "b": v[::-1]})[0].get("a") ** 2, X)


def test_elements_of_columns_keep_class_and_attributes():
    seen = []

    def f(v):
        part = Column(v, name="n", unit="m", meta={"k": 1})[[2, 0]]
        masked = MaskedColumn(v, mask=[False, True, False])
        seen.append((type(part), part.name, str(part.unit), part.meta, masked[1] is np.ma.masked))
        seen[-1] += (masked[[1, 2]].mask.tolist(), type(masked[[1, 2]]))
        return part[0] * v[1]

    f(X)
    np.testing.assert_array_equal(grad(f)(X), [0.0, 3.5, 2.0])
    assert seen[0] == seen[1]
