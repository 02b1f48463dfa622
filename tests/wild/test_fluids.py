"""fluids: engineering formulas in pure Python, with iterations, tables, splines and classes."""

import math

import pytest

import plaingrad

fluids = pytest.importorskip("fluids")


def test_the_friction_factor_of_a_pipe(agrees):
    agrees(lambda reynolds, roughness: fluids.friction_factor(Re=reynolds, eD=roughness), 1.0e5, 1.0e-4)


def test_the_colebrook_equation_against_its_implicit_derivative():
    """1/sqrt(f) = -2 log10(e/3.7 + 2.51/(Re sqrt(f))), differentiated by hand."""
    reynolds, roughness = 1.0e5, 1.0e-4
    f, slope = plaingrad.value_and_grad(fluids.friction.Colebrook)(reynolds, roughness, tol=1e-14)
    inside = roughness / 3.7 + 2.51 / (reynolds * math.sqrt(f))
    factor = 2 / (math.log(10) * inside)
    df = -0.5 * f**-1.5 - factor * 2.51 / reynolds * 0.5 * f**-1.5
    assert slope == pytest.approx(-factor * 2.51 / (reynolds**2 * math.sqrt(f)) / -df, rel=1e-4)


def test_every_regime_of_the_flow(agrees):
    agrees(lambda reynolds: fluids.friction_factor(Re=reynolds, eD=1e-3), 900.0)
    agrees(lambda reynolds: fluids.friction_factor(Re=reynolds, eD=1e-3), 3.0e6)


def test_two_phases_in_a_pipe(agrees):
    def drop(mass, quality, diameter):
        return fluids.two_phase.Friedel(
            m=mass, x=quality, rhol=915.0, rhog=2.67, mul=180e-6, mug=14e-6, sigma=0.0487, D=diameter,
            roughness=0.0, L=1.0,
        )

    agrees(drop, 0.6, 0.1, 0.05)


def test_a_gas_in_a_pipeline(agrees):
    agrees(lambda p, d: fluids.Panhandle_A(D=d, P1=p, P2=20e5, L=160e3, SG=0.693, Tavg=277.15), 90e5, 0.34)
    agrees(lambda p: fluids.T_critical_flow(473.0, 1.289) * fluids.P_critical_flow(p, 1.289), 1.4e6)


def test_the_standard_atmosphere_is_a_class_with_a_table(agrees):
    def refraction(height):
        air = fluids.ATMOSPHERE_1976(height)
        return air.rho * air.T / air.P * 1e3 + air.v_sonic + air.mu * 1e6

    agrees(refraction, 5000.0)
    agrees(refraction, 25000.0)


def test_a_solver_inside(agrees):
    def flow(upstream):
        return fluids.differential_pressure_meter_solver(
            D=0.07366, D2=0.05, P1=upstream, P2=183000.0, rho=999.1, mu=0.0011, k=1.33,
            meter_type="ISO 5167 orifice", taps="D",
        )

    agrees(flow, 200000.0, rtol=1e-4)


def test_the_drag_of_a_sphere(agrees):
    agrees(lambda re: fluids.drag_sphere(re), 200.0)
    agrees(lambda d: fluids.v_terminal(D=d, rhop=2600.0, rho=1000.0, mu=1e-3), 7e-5, rtol=1e-4)
