"""xarray: labelled arrays over NumPy, with its own wrappers of every reduction."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    xr = pytest.importorskip("xarray")

X = np.array([[1.1, 2.0, 3.5], [2.2, 0.4, 5.0]])


def labelled(values):
    return xr.DataArray(values, dims=("t", "x"), coords={"t": [0, 1], "x": [10.0, 20.0, 30.0]})


@pytest.mark.parametrize("name", ["sum", "mean", "std", "var", "max", "min", "prod", "median"])
def test_reductions(agrees, name):
    agrees(lambda v: float(getattr(labelled(v), name)()), X)
    agrees(lambda v: float(getattr(labelled(v), name)("t")[1]), X)


def test_arithmetic_aligns_by_name(agrees):
    weights = xr.DataArray([1.0, 2.0], dims="t")
    agrees(lambda v: float((labelled(v) * 2 + labelled(v) ** 2).sum()), X)
    agrees(lambda v: float((labelled(v) * weights).sum()), X)
    agrees(lambda s: float((labelled(X) * s).sum()), 2.0)


def test_selection_by_label_and_position(agrees):
    agrees(lambda v: float(labelled(v).sel(x=20.0, t=1)), X)
    agrees(lambda v: labelled(v).isel(x=1, t=1).item() * 2.0, X)
    agrees(lambda v: float(labelled(v).T[1, 0]), X)
    agrees(lambda v: float(labelled(v).stack(z=("t", "x"))[3]), X)


def test_interpolation(agrees):
    agrees(lambda v: float(labelled(v).interp(x=15.0).sum()), X)


def test_where_clip_and_missing_values(agrees):
    agrees(lambda v: float(labelled(v).where(labelled(v) > 1).sum()), X)
    agrees(lambda v: float(labelled(v).clip(1.0, 3.0).sum()), X)
    agrees(lambda v: float(labelled(v).fillna(0.0).sum()), X)


def test_windows_groups_and_differences(agrees):
    agrees(lambda v: float(labelled(v).rolling(x=2).mean().sum()), X)
    agrees(lambda v: float(labelled(v).groupby("t").sum(...)[0]), X)
    agrees(lambda v: float(labelled(v).diff("x").sum()), X)
    agrees(lambda v: float(labelled(v).differentiate("x").sum()), X)
    agrees(lambda v: float(labelled(v).integrate("x").sum()), X)
    agrees(lambda v: float(labelled(v).cumsum("x")[1, 1]), X)


def test_datasets_and_statistics(agrees):
    agrees(lambda v: float(xr.Dataset({"a": labelled(v)}).mean()["a"]), X)
    agrees(lambda v: float(xr.concat([labelled(v), labelled(v)], "t").sum()), X)
    agrees(lambda v: float(xr.dot(labelled(v), labelled(X))), X)
    agrees(lambda v: float(xr.corr(labelled(v), labelled(X**2))), X)
    agrees(lambda v: float(labelled(v).quantile(0.3)), X)
    agrees(lambda v: float(xr.apply_ufunc(lambda z: z**2, labelled(v)).sum()), X)


def test_an_element_is_assigned(agrees):
    def assigned(s):
        array = labelled(X.copy())
        array[0, 1] = s
        return float((array**2).sum())

    agrees(assigned, 2.0)


def test_interpolation_at_an_active_point_is_refused(refuses):
    refuses(lambda a: float(labelled(X).interp(x=a).sum()), 15.0, called="xarray.DataArray.interp")
