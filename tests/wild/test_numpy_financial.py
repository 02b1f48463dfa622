"""numpy-financial: broadcasting formulas, masks and Newton's method on arrays."""

import numpy as np
import pytest

import plaingrad

npf = pytest.importorskip("numpy_financial")


def test_the_payment_of_a_loan(agrees):
    agrees(lambda rate, loan: npf.pmt(rate / 12, 120, loan), 0.05, 1000.0)


def test_the_present_value_of_a_series(agrees):
    agrees(lambda rate, flows: npf.npv(rate, flows), 0.08, np.array([-100.0, 39.0, 59.0, 55.0, 20.0]))


def test_a_rate_found_by_newtons_method(agrees):
    agrees(lambda price, redemption: npf.rate(10, 0.0, price, redemption), -3500.0, 10000.0, rtol=1e-4)


def test_interest_and_principal_are_what_is_paid():
    """The interest and principal parts sum to the payment, hence so do their derivatives."""

    def gap(rate, loan):
        months = np.arange(1, 13)
        return np.sum(npf.ipmt(rate / 12, months, 12, loan) + npf.ppmt(rate / 12, months, 12, loan))

    by_payment = plaingrad.grad(lambda rate, loan: 12 * npf.pmt(rate / 12, 12, loan), (0, 1))(0.08, 2500.0)
    assert plaingrad.grad(gap, (0, 1))(0.08, 2500.0) == pytest.approx(by_payment)


def test_the_modified_rate_of_return(agrees):
    agrees(lambda flows: npf.mirr(flows, 0.1, 0.12), np.array([-100.0, 39.0, 59.0, 55.0, 20.0]))


def test_the_number_of_periods(agrees):
    agrees(lambda rate, payment: npf.nper(rate, payment, 8000.0), 0.07 / 12, -150.0)
