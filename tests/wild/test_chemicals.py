"""chemicals: correlations of chemical engineering with numerical solvers inside."""

import pytest

chemicals = pytest.importorskip("chemicals")


def test_vapour_pressures(agrees):
    agrees(lambda t: chemicals.Antoine(t, 23.0, 3800.0, -46.0), 350.0)
    agrees(lambda t: chemicals.Wagner(t, 190.53, 4596420.0, -6.00435, 1.1885, -0.834082, -1.22833), 150.0)


def test_heat_capacities(agrees):
    agrees(lambda t: chemicals.Shomate(t, 30.0, 6.8e-3, 6.7e-6, -2.5e-9, 8e4), 300.0)
    agrees(lambda t: chemicals.heat_capacity.TRCCp(t, 4.0, 7.65e5, 720.0, 3.565, -0.052, -1.55e6, 52.0, 201.0), 300.0)


def test_a_flash_by_iteration(agrees):
    agrees(lambda z: chemicals.rachford_rice.flash_inner_loop([z, 0.3, 0.2], [1.685, 0.742, 0.532])[0], 0.5, rtol=1e-5)


def test_water_and_virial_coefficients(agrees):
    agrees(lambda t: chemicals.iapws.iapws97_rho(t, 1e6), 330.0)
    agrees(lambda t: chemicals.virial.BVirial_Pitzer_Curl(t, 425.0, 38e5, 0.193), 510.0)
    agrees(lambda x: x * chemicals.MW("water"), 0.5)
