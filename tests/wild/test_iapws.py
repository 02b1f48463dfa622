"""iapws: the steam tables of 1997 in pure Python, sums over tables of exponents and objects that fill themselves."""

import warnings

import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    iapws = pytest.importorskip("iapws")
    from iapws import iapws97


@pytest.mark.parametrize(
    "region, t, p", [("_Region1", 300.0, 3.0), ("_Region2", 700.0, 5.0), ("_Region5", 1500.0, 5.0)]
)
def test_the_basic_equations(agrees, region, t, p):
    equation = getattr(iapws97, region)
    agrees(lambda t, p: equation(t, p)["h"], t, p)
    agrees(lambda t, p: equation(t, p)["s"] + equation(t, p)["cp"], t, p)


def test_enthalpy_and_heat_capacity_belong_together():
    """cp is (dh/dT) at constant pressure, and the package has both."""
    for t, p in ((300.0, 3.0), (420.0, 20.0)):
        slope = plaingrad.grad(lambda t: iapws97._Region1(t, p)["h"])(t)
        assert slope == pytest.approx(iapws97._Region1(t, p)["cp"], rel=1e-9)


def test_boiling_pressure_and_temperature_are_inverse():
    slope = plaingrad.grad(iapws97._PSat_T)(400.0)
    assert slope * plaingrad.grad(iapws97._TSat_P)(iapws97._PSat_T(400.0)) == pytest.approx(1.0, rel=1e-7)


def test_a_state_given_by_temperature_and_pressure(agrees):
    def mixture(t, p):
        state = iapws.IAPWS97(T=t, P=p)
        return state.h + state.s + 1e3 * state.mu + state.k

    agrees(mixture, 500.0, 3.0, rtol=1e-5)


def test_a_state_given_by_pressure_and_quality(agrees):
    agrees(lambda p, x: iapws.IAPWS97(P=p, x=x).s, 1.0, 0.5, rtol=1e-5)


def test_a_state_given_by_pressure_and_enthalpy(agrees):
    agrees(lambda p, h: iapws.IAPWS97(P=p, h=h).T, 3.0, 500.0, rtol=1e-5)


def test_the_work_of_a_steam_turbine(agrees):
    """A Rankine cycle: boiler at p and t, isentropic expansion to 0.01 MPa."""

    def work(p, t):
        fresh = iapws.IAPWS97(P=p, T=t)
        spent = iapws.IAPWS97(P=0.01, s=fresh.s)
        return fresh.h - spent.h

    agrees(work, 8.0, 773.15, rtol=1e-4)
