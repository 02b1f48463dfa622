"""pandas: blocks hold arrays as they are, so arithmetic of Series and frames is followed; other compiled code refuses."""

import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pandas._libs.ops_dispatch")

X = np.array([1.0, 2.0, 3.5, 2.2])
SALES = pd.Series([3.0, 1.5, 4.0, 2.5], index=list("abcd"), name="sales")
FRAME = pd.DataFrame({"k": [0, 0, 1, 1], "a": X, "b": [0.5, 1.0, 1.5, 2.5]})


# -- a constant Series or frame, and differentiated numbers ------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (SALES * x).sum(), lambda x: (x * SALES).mean(), lambda x: (SALES**x).std(),
        lambda x: ((SALES * x) / (SALES + x)).sum(), lambda x: np.exp(SALES * x / 5.0).sum(),
        lambda x: (SALES * x)["b"] * (SALES + x).iloc[2] * (SALES - x).at["a"], lambda x: (SALES**x)[1:3].sum(),
        lambda x: (SALES**x).loc[["d", "a"]].var(), lambda x: (SALES**x)[SALES > 2.0].max(),
        lambda x: (SALES**x).cumsum().diff().iloc[2], lambda x: (SALES**x).dot(SALES),
        lambda x: ((SALES * x) + (SALES**x)[::-1]).median(), lambda x: (SALES * x).apply(lambda v: v * v).sum(),
        lambda x: (SALES**x).map(np.sqrt).sum(), lambda x: sum(v * v for v in SALES * x),
        lambda x: pd.concat([SALES * x, SALES]).mean(), lambda x: (SALES**x).reindex(list("cab")).sum(),
        lambda x: (SALES**x).sort_values().iloc[1], lambda x: (SALES**x).quantile(0.3),
        lambda x: (SALES**x).corr(SALES), lambda x: (SALES * x).where(SALES > 2.0, x).sum(),
        lambda x: (SALES**x).shift(1, fill_value=0.0).clip(0.0, 10.0).prod() + (SALES**x).abs().prod(),
        lambda x: (SALES**x).rolling(2).mean().sum() + (SALES**x).rolling(3, min_periods=1).sum().iloc[1],
        lambda x: (SALES**x).expanding().mean().iloc[-1], lambda x: np.asarray(-(SALES**x)).sum(),
    ],
)  # fmt: skip
def test_a_constant_series_and_a_number(agrees, f):
    agrees(f, 1.3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (FRAME * x).sum().sum(), lambda x: (FRAME["a"] ** x).mean() * (FRAME * x).loc[1, "b"],
        lambda x: FRAME.assign(c=lambda d: d["a"] ** x).pipe(lambda d: d["c"] / d["b"]).sum(),
        lambda x: (FRAME * x).T[0].sum(), lambda x: (FRAME[["a", "b"]] ** x).cov().iloc[0, 1],
        lambda x: sum(row.a * row.b for row in (FRAME * x).itertuples()),
        lambda x: sum(row["a"] ** 2 for _, row in (FRAME * x).iterrows()),
        lambda x: (FRAME**x)[FRAME["a"] > 1.5].mean().sum(), lambda x: (FRAME * x).sort_values("a").iloc[0, 1],
        lambda x: (FRAME * x).apply(np.sum).sum(), lambda x: (FRAME @ np.array([x, 1.0, x * x])).sum(),
        lambda x: FRAME.mul(FRAME["a"] ** x, axis=0).sum().sum(), lambda x: (FRAME**x).describe().loc["mean", "a"],
        lambda x: (FRAME * x).merge(FRAME, left_index=True, right_index=True).sum().sum(),
        lambda x: (FRAME * x).groupby(FRAME["k"])["a"].sum().iloc[1], lambda x: written(FRAME.copy(), x),
    ],
)  # fmt: skip
def test_a_constant_frame_and_a_number(agrees, f):
    agrees(f, 1.3)


def written(frame, x):
    frame["c"] = frame["a"] * x
    frame["a"] **= x
    frame.loc[0, "b"] = x
    frame.iloc[1, 2] = x * x
    return frame["c"].sum() + (frame["a"] * frame["b"]).sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda v: (SALES * v).sum(), lambda v: (v * SALES).mean(), lambda v: pd.Series(v).std(),
        lambda v: np.exp(pd.Series(v)).rolling(2).mean().sum(), lambda v: pd.Series(v, index=list("abcd"))["b"],
        lambda v: pd.DataFrame({"a": v, "b": v * 2.0}).prod().sum(), lambda v: FRAME.assign(c=v * v)["c"].mean(),
        lambda v: pd.DataFrame({"k": [0, 0, 1, 1], "v": v * v}).groupby("k")["v"].sum().iloc[0],
        lambda v: pd.Series([v[0], v[1] * 2.0, 1.0]).sum(), lambda v: (SALES * v).to_dict()["c"] ** 2,
    ],
)  # fmt: skip
def test_a_series_or_frame_of_differentiated_numbers(agrees, f):
    agrees(f, X)


def test_integers_and_single_precision():
    ones = pd.Series([1, 2, 3])
    assert plaingrad.grad(lambda x: (ones * x).sum())(2.0) == 6.0
    slope = plaingrad.grad(lambda x: (pd.Series(x) * 2).sum())(X.astype("f4"))
    assert slope.dtype == np.float32 and slope.tolist() == [2.0] * 4
    assert plaingrad.grad(lambda x: (pd.Series([], dtype=float) * x).sum())(2.0) == 0.0


def test_second_derivatives():
    def f(x):
        return ((SALES**x).rolling(2).sum() ** 2).sum() + (SALES**x).reindex(list("ca")).prod()

    def by_hand(x):
        s = SALES.to_numpy()
        return ((s**x)[1:] + (s**x)[:-1]) @ ((s**x)[1:] + (s**x)[:-1]) + (s[2] * s[0]) ** x

    exact = plaingrad.hessian(by_hand)(1.3)
    assert plaingrad.hessian(f)(1.3) == pytest.approx(exact, rel=1e-12)
    assert plaingrad.jvp(plaingrad.grad(f), (1.3,), (1.0,))[1] == pytest.approx(exact, rel=1e-12)


def test_missing_values_are_left_out_of_sums_over_windows():
    holes = np.array([1.0, np.nan, 2.0, 3.0, 5.0])

    def f(v):
        s = pd.Series(np.where(np.isnan(holes), holes, v))
        return (s.rolling(3, min_periods=2).mean() ** 2).sum() + (s.rolling(2).sum() ** 3).sum()

    def by_hand(v):
        return (
            ((v[0] + v[2]) / 2) ** 2
            + ((v[2] + v[3]) / 2) ** 2
            + ((v[2] + v[3] + v[4]) / 3) ** 2
            + ((v[2] + v[3]) ** 3 + (v[3] + v[4]) ** 3)
        )

    v = np.array([1.0, 7.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(plaingrad.grad(f)(v), plaingrad.grad(by_hand)(v), rtol=1e-13)
    np.testing.assert_allclose(plaingrad.jacobian(f)(v), plaingrad.grad(by_hand)(v), rtol=1e-13)


def test_a_frame_as_a_result_has_a_tangent_in_its_blocks():
    _, tangent = plaingrad.jvp(lambda x: SALES * x, (2.0,), (1.0,))
    np.testing.assert_array_equal(tangent._mgr.blocks[0].values, SALES)


# -- programs ------------------------------------------------------------------------------------------------------------


def test_an_exponential_backtest_of_a_strategy(agrees):
    """Weights by a smooth rule of a moving average, returns, and the ratio of their mean to their deviation."""
    days = pd.date_range("2024-01-01", periods=40)
    prices = pd.Series(100.0 + np.cumsum(np.sin(np.arange(40.0)) + 0.1), index=days)
    returns, trend = prices.pct_change().dropna(), (prices / prices.rolling(5).mean()).dropna()

    def ratio(p):
        signal = np.tanh(p[0] * (trend - p[1]))
        earned = signal.shift(1, fill_value=0.0) * returns.loc[signal.index]
        return earned.mean() / earned.std()

    agrees(ratio, np.array([3.0, 1.01]))


def test_a_table_of_mortality_with_a_rate(agrees):
    table = pd.DataFrame({"age": np.arange(60, 70), "q": np.linspace(0.01, 0.03, 10)}).set_index("age")

    def annuity(rate):
        d = table.assign(alive=(1.0 - table["q"]).cumprod())
        d["discount"] = (1.0 + rate) ** -(d.index - 59.0)
        d["paid"] = d["alive"] * d["discount"]
        return d.loc[62:, "paid"].sum() / d["discount"].iloc[0]

    agrees(annuity, 0.03)


# -- what is looked at, and what is refused ------------------------------------------------------------------------------


def test_predicates_of_differentiated_numbers_and_arrays_are_constants(agrees):
    types = pd.api.types

    def f(x):
        assert (
            types.is_list_like(x)
            and not types.is_scalar(x)
            and types.is_scalar(x[0])
            and types.is_float(x[0])
        )
        assert not types.is_integer(x[0]) and not types.is_iterator(x)
        return (x * x).sum() if types.is_list_like(x) else 0.0

    agrees(f, X)


def test_an_array_without_axes_gives_its_number(agrees):
    from pandas._libs.lib import item_from_zerodim

    agrees(
        lambda x: item_from_zerodim(np.asarray(x[0])) * item_from_zerodim(x[1]) + item_from_zerodim(x).sum(),
        X,
    )


def test_a_property_that_compiled_code_caches_is_followed(agrees):
    from pandas.util._decorators import cache_readonly

    class Doubled:
        def __init__(self, x):
            self.x, self._cache = x, {}

        @cache_readonly
        def twice(self):
            return self.x * 2.0

    agrees(lambda x: Doubled(x).twice ** 2, 1.5)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (SALES * x).rank().sum(), lambda x: pickle.loads(pickle.dumps(SALES * x)).sum(),
        lambda x: (SALES * x).rolling(2).skew().sum(), lambda x: pd.factorize(SALES * x)[1][0],
        lambda x: pd.DataFrame([{"a": x, "b": 1}])["a"].sum(), lambda x: (SALES * x).ewm(alpha=0.5).std().sum(),
        lambda x: float(pickle.dumps((FRAME * x)._mgr)[-1]),
    ],
)  # fmt: skip
def test_compiled_code_that_makes_new_numbers_is_refused(refuses, f):
    refuses(f, 2.0, called="")


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
        lambda x: pd.to_numeric(pd.Series([str(x)])).iloc[0] * 2.0,
        2.123456,
        called="pandas.to_numeric",
        error=plaingrad.errors.RoundTripError,
    )


def test_a_gradient_for_a_frames_column(agrees):
    """The way to write it without pandas inside: take the arrays out first."""
    frame = pd.DataFrame({"x": X, "y": 2.0 * X + 1.0})
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    agrees(lambda w: ((w[0] * x + w[1] - y) ** 2).mean(), np.array([0.5, 0.1]))


def test_rules_of_pandas_are_in_force_also_if_the_rulebook_was_listed_before_it_was_imported():
    program = """if True:
        import sys
        from plaingrad import grad, rulebook
        [*rulebook.rules()]
        assert "pandas" not in sys.modules
        import pandas
        assert grad(lambda x: (pandas.Series([3.0, 1.5]) * x).sum())(1.3) == 4.5
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WITH_HOLES = np.array([1.0, np.nan, 2.0, 3.0])


@pytest.mark.unchecked
@pytest.mark.parametrize(
    "f",
    [
        lambda x: pd.Series(x).pct_change().dropna().std(), lambda x: np.log(pd.Series(x) / pd.Series(x).shift(1)).std(),
        lambda x: (pd.Series(x) / pd.Series(x).shift(1)).apply(np.log).dropna().sum(),
        lambda x: (pd.Series(x) * pd.Series([1.0, 2.0], index=[1, 7])).dropna().pow(2).sum(),
        lambda x: (pd.Series(x) ** WITH_HOLES).sum() * (WITH_HOLES / pd.Series(x)).mean(),
        lambda x: (2.0 - pd.Series(x).shift(-1)).sum() * (1.0 / pd.Series(x).shift(-1)).sum(),
        lambda x: (pd.DataFrame({"a": x, "b": x * x}).shift(1) / pd.DataFrame({"a": x, "b": x})).mean().sum(),
        lambda x: pd.DataFrame({"a": x, "b": WITH_HOLES}).pipe(lambda d: d["a"] * d["b"]).sum(),
        lambda x: (pd.Series(x) * np.nan).fillna(pd.Series(x) * 2.0).pow(2).sum(),
    ],
)  # fmt: skip
def test_what_is_missing_does_not_poison_what_is_there(agrees, f):
    agrees(f, X)
    slope = plaingrad.grad(f)
    assert plaingrad.jvp(f, (X,), (X,))[1] == pytest.approx(slope(X) @ X, rel=1e-10)
    curvature = plaingrad.jvp(slope, (X,), (X,))[1]
    by_steps = (slope(X * (1 + 1e-5)) - slope(X * (1 - 1e-5))) / 2e-5
    np.testing.assert_allclose(curvature, by_steps, rtol=1e-5, atol=1e-7)


def test_single_precision_stays_single_where_something_is_missing():
    x = X.astype("f4")

    def f(x):
        z = pd.Series(x) * pd.Series(WITH_HOLES.astype("f4"))
        assert z.dtype == np.float32
        return z.sum()

    np.testing.assert_array_equal(plaingrad.grad(f)(x), np.array([1.0, 0.0, 2.0, 3.0], "f4"))


SERIES = np.array([1.0, 2.0, 3.5, 2.2, 4.1, 0.7, 1.9])
GAP = np.array([1.0, np.nan, 1.0, 1.0, np.nan, np.nan, 1.0])


@pytest.mark.unchecked
@pytest.mark.parametrize("gap", [np.ones(7), GAP], ids=["all there", "some missing"])
@pytest.mark.parametrize(
    "f",
    [
        lambda s: s.rolling(3, min_periods=2).std().sum(), lambda s: s.rolling(3, min_periods=2).var(ddof=0).pow(2).sum(),
        lambda s: s.expanding().var().sum(), lambda s: s.rolling(3, min_periods=1).max().pow(2).sum(),
        lambda s: s.rolling(2, min_periods=1).min().pow(2).sum(), lambda s: s.ewm(span=3).mean().pow(2).sum(),
        lambda s: s.ewm(alpha=0.3, adjust=False, min_periods=2).mean().pow(2).sum(),
        lambda s: s.ewm(com=1.5, ignore_na=True).mean().pow(2).sum(), lambda s: s.ewm(halflife=2).sum().pow(2).sum(),
        lambda s: pd.DataFrame({"a": s, "b": s**2, "c": SERIES[::-1]}).corr().pow(2).sum().sum(),
        lambda s: pd.DataFrame({"a": s, "b": s**2, "c": SERIES[::-1]}).cov().pow(2).sum().sum(),
    ],
)  # fmt: skip
def test_statistics_of_windows_and_correlations(agrees, f, gap):
    def of_numbers(v):
        return f(pd.Series(v) * gap)

    agrees(of_numbers, SERIES, rtol=1e-5, atol=1e-7)
    slope = plaingrad.grad(of_numbers)
    exact = plaingrad.jvp(slope, (SERIES,), (SERIES,))[1]
    by_steps = (slope(SERIES * (1 + 1e-5)) - slope(SERIES * (1 - 1e-5))) / 2e-5
    np.testing.assert_allclose(exact, by_steps, rtol=1e-4, atol=1e-6)


def grouped(x):
    y = np.concatenate([x, [np.nan]])
    return pd.DataFrame({"k": [0, 1, 0, 1, 1, 2, 0], "a": y, "b": y * y}).groupby("k")


HOWS = ["sum", "mean", "var", "std", "sem", "min", "max", "first", "last", "median", "prod", "cumsum"]


@pytest.mark.parametrize("how", HOWS)
def test_groups_of_differentiated_numbers(how):
    def f(x):
        squares = getattr(grouped(x), how)().values ** 2 + grouped(x)["b"].transform("sum").values[1]
        return squares[~np.isnan(squares)].sum()

    x, v = np.array([0.1, 0.5, -0.9, 0.4, 1.3, 0.7]), np.linspace(0.5, 1.5, 6)
    value, slope = plaingrad.value_and_grad(f)(x)
    assert value == f(x)
    expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert np.allclose(slope, expected, atol=1e-7)
    assert np.isclose(plaingrad.jvp(f, (x,), (v,))[1], slope @ v)
    along = (plaingrad.grad(f)(x + 1e-5 * v) - plaingrad.grad(f)(x - 1e-5 * v)) / 2e-5
    assert np.allclose(plaingrad.hvp(f, (x,), (v,))[0], along, atol=1e-5)


def test_groups_of_single_precision_of_nullable_numbers_and_of_nothing():
    slope = plaingrad.grad(lambda x: (pd.Series(x).groupby([0, 0, 1, 1]).mean().values ** 2).sum())(
        X.astype("f4")
    )
    assert slope.dtype == np.float32 and np.allclose(slope, [1.5, 1.5, 2.85, 2.85])
    assert plaingrad.grad(lambda x: pd.Series(x).groupby([-1, 5, -1, 5]).sum().iloc[1])(X).tolist() == [
        0,
        1,
        0,
        1,
    ]
    assert plaingrad.grad(lambda x: pd.Series(x).groupby([None, 5, 5, None]).sum().sum())(X).tolist() == [
        0,
        1,
        1,
        0,
    ]
    assert plaingrad.grad(lambda x: pd.Series(x).groupby([]).sum().sum())(np.zeros(0)).shape == (0,)
    tied = np.array([2.0, 2.0, 1.0, 2.0])
    assert plaingrad.grad(lambda x: pd.Series(x).groupby([0, 0, 0, 0]).last().iloc[0])(tied).tolist() == [
        0,
        0,
        0,
        1,
    ]
