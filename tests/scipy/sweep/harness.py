"""A sweep: public functions called with realistic arguments in many forms, their derivatives sorted by what they are.

A case is a function of one array of real numbers. It is differentiated backwards, forwards and once nested, and
compared with differences at two steps. What differs in the two says how good they are.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np

import plaingrad
from plaingrad.errors import PlaingradError

RIGHT, REFUSED, CRASHED, WRONG, UNCLEAR, RAISES, NAN = "right", "refused", "crashed", "wrong", "unclear", "raises", "nan"
BAD = (NAN, CRASHED, WRONG)
ORDER = (RIGHT, RAISES, REFUSED, UNCLEAR, NAN, CRASHED, WRONG)  # the worst last


@dataclass
class Case:
    """`call(x)` for an array x; `forms` are those in which x is given; `loose` is the relative error allowed."""

    name: str
    label: str
    call: object
    x: np.ndarray
    forms: tuple = ()
    loose: float = 1e-5
    step: float = 1e-4
    nested: bool = True
    late: bool = False  # its derivative takes minutes: it is named on the page, and not computed
    free: bool = False  # what nobody determines is in it, so that forwards it is nan, as the documentation says
    constant: bool = False  # the function's result does not vary with x, and only stands in a program that does

    @property
    def id(self):
        return f"{self.name}[{self.label}]" if self.label else self.name


@dataclass
class Found:
    """What became of a case: the verdict in each form and mode."""

    case: Case
    verdicts: dict = field(default_factory=dict)
    words: dict = field(default_factory=dict)

    @property
    def worst(self):
        return max(self.verdicts.values(), key=ORDER.index)


class Table:
    """The cases of one module of SciPy's; a name that it does not have is passed by."""

    def __init__(self, module, name):
        self.module, self.name, self.cases = module, name, []
        self.taken = {}

    def add(self, name, call, x, label="", forms=("strided", "reversed", "float32"), **options):
        """Enter `call(f, x)`, f the function of this name; with a dotted name, its first part must be there."""
        f = self.module
        for part in name.split("."):
            f = getattr(f, part, None)
        if f is not None:
            x = np.array(x, float)
            count = self.taken[name, label] = self.taken.get((name, label), 0) + 1
            label = f"{label} #{count}".strip() if count > 1 else label
            self.cases.append(Case(f"{self.name}.{name}", label, lambda x: call(f, x), x, tuple(forms), **options))

    def each(self, names, call, x, **options):
        """The same for several functions."""
        for name in names.split():
            self.add(name, call, x, **options)


def number_of(y):
    """A number from whatever is returned, in which every real number counts differently."""
    total, count = 0.0, 0
    for part in parts(y):
        part = np.ravel(part)
        weights = np.cos(1.0 + count + 1.7 * np.arange(part.size)) + 0.3
        count += part.size
        if np.iscomplexobj(part):
            total = total + (part.real * weights).sum() + (part.imag * weights[::-1]).sum()
        else:
            total = total + (part * weights).sum()
    return total


def parts(y):
    """The arrays of real and complex numbers in a result."""
    if hasattr(y, "tocoo") and hasattr(y, "data"):
        return [y.tocoo().data]
    if isinstance(y, (list, tuple)):
        return [part for one in y for part in parts(one)]
    if isinstance(y, dict):
        return [part for one in y.values() for part in parts(one)]
    if y is None or isinstance(y, (str, bool)):
        return []
    return [y] if np.asarray(y).dtype.kind in "fc" else []


def given(form, x):
    """The point in this form, and how to get what is called with: f(get(point)) is the same function."""
    if form == "strided":
        return np.repeat(x, 2, -1), lambda z: z[..., ::2]
    if form == "reversed":
        return x[..., ::-1].copy(), lambda z: z[..., ::-1]
    if form == "fortran":
        return np.asfortranarray(x), lambda z: z
    if form == "complex":
        return x, lambda z: z * (1.0 + 0.2j)
    return x, lambda z: z


def run(case):
    """Every form of one case."""
    found = Found(case)
    for form in ("", *case.forms):
        if form == "float32":
            single(case, found)
        elif form in ("empty", "0-d"):
            corner(case, form, found)
        else:
            measure(case, form, found)
    return found


def measure(case, form, found):
    """Both modes and their nesting, in one form of the argument."""
    z, get = given(form, case.x)

    def total(z):
        return number_of(case.call(get(z)))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        v = np.sin(2.0 + 1.3 * np.arange(z.size)).reshape(z.shape)
        try:
            value = total(z)
            expected, error = differences(total, z, v, case.step)
        except Exception as problem:
            found.verdicts[form, "plain"], found.words[form, "plain"] = RAISES, said(problem)
            return
        scale = 1.0 + abs(value) + abs(expected)
        gradient = judged(found, (form, "grad"), lambda: plaingrad.grad(total)(z), expected, error, scale, v, case)
        judged(found, (form, "jvp"), lambda: plaingrad.jvp(total, (z,), (v,))[1], expected, error, scale, None, case)
        if case.nested and not form and gradient is not None:
            nested(case, total, z, v, found)


def nested(case, total, z, v, found):
    """The second derivative along v, forwards over backwards; differences of gradients say what it is."""

    def slopes(z):
        return plaingrad.grad(lambda z: total(z + 0.01 * z * z))(z)

    def along(z):
        return (slopes(z) * v).sum()

    try:
        expected, error = differences(along, z, v, case.step)
    except Exception as problem:
        found.verdicts["", "nested"] = REFUSED if isinstance(problem, PlaingradError) else CRASHED
        found.words["", "nested"] = said(problem)
        return
    scale = 1.0 + abs(expected) + abs(along(z))
    judged(found, ("", "nested"), lambda: plaingrad.jvp(slopes, (z,), (v,))[1], expected, 10 * error, scale, v, case)


def judged(found, key, compute, expected, error, scale, v, case):
    """Sort one derivative; what was computed, or None."""
    try:
        ours = compute()
    except PlaingradError as problem:
        found.verdicts[key], found.words[key] = REFUSED, said(problem)
        return None
    except Exception as problem:
        found.verdicts[key], found.words[key] = CRASHED, said(problem)
        return None
    along = ours if v is None else (np.asarray(ours) * v).sum()
    off = abs(along - expected)
    if not np.isfinite(expected):
        verdict = UNCLEAR
    elif not np.isfinite(along) and error < 1e-2 * scale:
        verdict = REFUSED if case.free else NAN
    elif off <= case.loose * scale + 30 * error:
        verdict = RIGHT if error < 1e-2 * scale else UNCLEAR
    else:
        verdict = WRONG if error < 0.02 * off + case.loose * scale else UNCLEAR
    found.verdicts[key] = verdict
    if verdict != RIGHT:
        found.words[key] = f"{along} for {expected} (differences are good to {error:.1e})"
    return ours


def differences(f, z, v, step):
    """df/dz along v, of fourth order, and how much two steps differ."""

    def at(h):
        return float((8 * (f(z + h * v) - f(z - h * v)) - (f(z + 2 * h * v) - f(z - 2 * h * v))) / (12 * h))

    wide, narrow = at(2 * step), at(step)
    return narrow, abs(wide - narrow)


def single(case, found):
    """In single precision: the gradient of double precision, roughly, as float32."""
    z = case.x.astype(np.float32)

    def total(z):
        return number_of(case.call(z))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            total(z)
            exact = plaingrad.grad(total)(z.astype(float))
            near = plaingrad.grad(total)(z.astype(float) * (1 + 1e-6))
        except Exception:
            return  # it is said of double precision
        try:
            ours = plaingrad.grad(total)(z)
        except Exception as problem:
            is_named = isinstance(problem, PlaingradError)
            found.verdicts["float32", "grad"] = REFUSED if is_named else CRASHED
            found.words["float32", "grad"] = said(problem)
            return
        size = 1.0 + np.abs(exact).max(initial=0.0)
        room = 0.02 * size + 10 * np.abs(near - exact).max(initial=0.0)
        is_near = np.isnan(exact).any() or np.abs(ours - exact).max(initial=0.0) <= room
        found.verdicts["float32", "grad"] = RIGHT if is_near and ours.dtype == np.float32 else UNCLEAR
        if not is_near:
            found.words["float32", "grad"] = f"{ours} for {exact}"
            found.verdicts["float32", "grad"] = WRONG if np.abs(ours - exact).max() > 0.3 * size else UNCLEAR


def corner(case, form, found):
    """An empty array, or one without axes: what the plain call raises, or a derivative of the right shape."""
    z = np.zeros((0, *case.x.shape[1:])) if form == "empty" else np.array(case.x.flat[0])

    def total(z):
        return number_of(case.call(z))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = raised(lambda: total(z))
        ours = raised(lambda: plaingrad.grad(total)(z))
    fits = ours is plain or (ours is not None and issubclass(ours, PlaingradError))
    fits = fits or (plain is None and ours is TypeError)  # it returns nothing that can be differentiated
    found.verdicts[form, "grad"] = (RAISES if ours else RIGHT) if fits else CRASHED
    if not fits:
        found.words[form, "grad"] = f"{ours} where the plain call has {plain}"


def raised(call):
    """The class of what it raises, or None."""
    try:
        call()
    except Exception as problem:
        return type(problem)
    return None


def said(problem):
    """An exception in a line."""
    return f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}"[:200]
