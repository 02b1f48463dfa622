"""pandas: its data lives in compiled blocks, so active numbers are refused at the door; constants and text are free."""

import io
import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pd = pytest.importorskip("pandas")

X = np.array([1.0, 2.0, 3.5, 2.2])
ASKED = "plaingrad.nondifferentiable(pandas.api.types.is_"


@pytest.mark.parametrize(
    "f",
    [
        lambda v: pd.Series(v).sum(), lambda v: pd.Series(v).rolling(2).mean().sum(),
        lambda v: pd.Series(v).apply(lambda z: z * z).sum(), lambda v: np.exp(pd.Series(v)).sum(),
        lambda v: pd.Series(v, index=list("abcd"))["b"],
    ],
)
def test_a_series_of_active_numbers_is_refused(refuses, f):
    refuses(f, X, called="pandas.Series", says=ASKED)


def test_a_series_of_a_list_is_refused(refuses):
    refuses(lambda v: pd.Series(v).mean(), X.tolist(), called="pandas.Series")


@pytest.mark.parametrize(
    "f",
    [
        lambda v: pd.DataFrame({"a": v, "b": v * 2.0}).sum().sum(),
        lambda v: pd.DataFrame({"k": [0, 0, 1, 1], "v": v}).groupby("k")["v"].sum().iloc[0],
        lambda v: sum(row["a"] for _, row in pd.DataFrame({"a": v}).iterrows()),
    ],
)
def test_a_frame_of_active_numbers_is_refused(refuses, f):
    refuses(f, X, called="pandas.DataFrame", says=ASKED)


def test_a_frame_times_an_active_number_is_refused(refuses):
    frame = pd.DataFrame({"a": X})
    refuses(lambda s: (frame * s).sum().sum(), 2.0, called="")
    refuses(lambda s: assigned(frame.copy(), s), 2.0, called="pandas.core.indexing.")


def assigned(frame, s):
    frame.loc[0, "a"] = s
    return frame["a"].sum()


def test_numbers_taken_out_of_a_frame_are_constants_like_others(agrees):
    frame = pd.DataFrame({"a": X, "b": X * 2.0})

    def model(rate):
        total = 0.0
        for _, row in frame.iterrows():
            total = total + row["a"] * rate ** row["b"]
        return total + rate * frame["a"].mean() + (frame["a"].to_numpy() * rate).sum()

    agrees(model, 0.7)


def test_a_table_read_from_text_is_constant(agrees):
    agrees(lambda x: x * pd.read_csv(io.StringIO("a,b\n1.5,2\n2.5,3"))["a"].sum(), 2.0)


def test_numbers_that_come_back_as_text_are_refused(refuses):
    refuses(
        lambda x: pd.to_numeric(pd.Series([str(x)])).iloc[0] * 2.0, 2.123456, called="pandas.to_numeric",
        error=plaingrad.errors.RoundTripError,
    )


def test_a_gradient_for_a_frames_column(agrees):
    """The way to write it: take the arrays out first."""
    frame = pd.DataFrame({"x": X, "y": 2.0 * X + 1.0})
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    agrees(lambda w: ((w[0] * x + w[1] - y) ** 2).mean(), np.array([0.5, 0.1]))
