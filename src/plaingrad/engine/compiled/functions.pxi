# -- functions of numbers -----------------------------------------------------------------------------------------------

cdef double power_slope(double x, double e) noexcept:
    """e x ** (e - 1); 1 / x of a denormal number is infinite, and that slope need not be."""
    cdef double slope
    if e == 0.0:
        return 0.0
    if e == 2.0:
        return 2.0 * x
    slope = e * c_pow(x, e - 1.0)
    return e * c_pow(x, e) / x if isinf(slope) and x != 0.0 and -1.0 < x < 1.0 else slope


cdef object MISSING = object()
# Functions whose slopes are computed here, as the rows of `rules.elementwise` say, while those are the rules in force.
cdef enum:
    SQUARE_ROOT = 6

cdef dict SLOPES = {
    math.sin: 1, math.cos: 2, math.exp: 3, math.tanh: 4, math.tan: 5, math.sqrt: SQUARE_ROOT, math.log: 7, math.atan: 8,
    math.radians: 9, math.degrees: 10, math.fabs: 11, abs: 11
}
cdef double RADIANS = math.pi / 180.0, DEGREES = 180.0 / math.pi


cdef inline bint slope_of(int known, double v, double w, double* slope) noexcept:
    """The slope at v of a function in `SLOPES` with value w there; False where the rule has to say it."""
    if known == 1:
        slope[0] = cos(v)
    elif known == 2:
        slope[0] = -sin(v)
    elif known == 3:
        slope[0] = w
    elif known == 4:
        slope[0] = 1.0 - w * w
    elif known == 5:
        slope[0] = 1.0 + w * w
    elif known == 6 and w > 0.0:
        slope[0] = 0.5 / w
    elif known == 7 and v != 0.0:
        slope[0] = 1.0 / v
    elif known == 8:
        slope[0] = 1.0 / (1.0 + v * v)
    elif known == 9:
        slope[0] = RADIANS
    elif known == 10:
        slope[0] = DEGREES
    elif known == 11 and (v > 0.0 or v < 0.0):
        slope[0] = 1.0 if v > 0.0 else -1.0
    else:
        return False
    return True


cdef inline double curvature_of(int known, double v, double w) noexcept:
    """The derivative of that slope."""
    if known == 1:
        return -sin(v)
    if known == 2:
        return -cos(v)
    if known == 3:
        return w
    if known == 4:
        return -2.0 * w * (1.0 - w * w)
    if known == 5:
        return 2.0 * w * (1.0 + w * w)
    if known == 6:
        return -0.25 / (w * w * w)
    if known == 7:
        return -1.0 / (v * v)
    if known == 8:
        return -2.0 * v / ((1.0 + v * v) * (1.0 + v * v))
    return 0.0


# Functions whose slopes and curvatures are computed here under a forward level, by the same rows.
cdef enum:
    LOG1P = 1, EXPM1, LOG2, LOG10, SINH, COSH, ASIN, ACOS, ASINH, ACOSH, ATANH, ERF, ERFC, EXP2, CBRT

cdef dict FURTHER = {
    math.log1p: LOG1P, math.expm1: EXPM1, math.log2: LOG2, math.log10: LOG10, math.sinh: SINH, math.cosh: COSH,
    math.asin: ASIN, math.acos: ACOS, math.asinh: ASINH, math.acosh: ACOSH, math.atanh: ATANH, math.erf: ERF,
    math.erfc: ERFC, math.exp2: EXP2, math.cbrt: CBRT
}
cdef double LN2 = math.log(2), LN10 = math.log(10), TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)


cdef bint further_slope_of(int which, double v, double w, double* slope, double* curvature) noexcept:
    """The slope of a function in `FURTHER`, whose value at v is w, and its derivative; False where they are not finite."""
    cdef double s, c
    if which == LOG1P:
        s = 1.0 / (1.0 + v)
        c = -s * s
    elif which == EXPM1:
        s = c = exp(v)
    elif which == EXP2:
        s = w * LN2
        c = s * LN2
    elif which == LOG2 or which == LOG10:
        s = 1.0 / (LN2 if which == LOG2 else LN10) / v
        c = -s / v
    elif which == SINH:
        s, c = cosh(v), w
    elif which == COSH:
        s, c = sinh(v), w
    elif which == ASIN or which == ACOS:
        s = 1.0 / sqrt((1.0 - v) * (1.0 + v))
        c = v * s * s * s
        if which == ACOS:
            s, c = -s, -c
    elif which == ASINH:
        s = 1.0 / cosh(w)
        c = -(v * s) * s * s
    elif which == ACOSH:
        s = 1.0 / (sqrt(v - 1.0) * sqrt(v + 1.0))
        c = -(v * s) * s * s
    elif which == ATANH:
        s = 1.0 / ((1.0 - v) * (1.0 + v))
        c = 2.0 * v * s * s
    elif which == CBRT:
        s = 1.0 / (3.0 * w * w)
        c = -2.0 * s / (3.0 * v)
    else:
        s = (TWO_OVER_ROOT_PI if which == ERF else -TWO_OVER_ROOT_PI) * exp(-v * v)
        c = -2.0 * v * s
    slope[0], curvature[0] = s, c
    return isfinite(s) and isfinite(c)


cdef class Later:
    """What is called instead of a function that has a rule, made when it is called for the first time."""

    cdef Arithmetic recorder
    cdef object rule, f, make, made

    def __init__(self, recorder, rule, f, make):
        self.recorder, self.rule, self.f, self.make = recorder, rule, f, make

    def call(self, *args, **kwargs):
        """f(*args, **kwargs)."""
        made = self.made  # which is let go of when the level is closed
        if made is None:
            made = self.made = self.make(self.recorder.level, self.rule, self.f)
        return made(*args, **kwargs)


cdef class ScalarRule:
    """A function of one float with a scalar rule; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object f, partial, m, general
    cdef int known, further

    def __init__(self, arithmetic, f, partial, m, general):
        self.arithmetic = arithmetic
        self.f, self.partial, self.m, self.general = f, partial, m, general
        own = not callable(partial) or getattr(partial, "__module__", None) == "plaingrad.rules.elementwise"
        self.known = SLOPES.get(f, 0) if own else 0
        self.further = FURTHER.get(f, 0) if own else 0

    def call(self, x, other=MISSING):
        """f(x)."""
        cdef Place* i
        cdef double v, w, slope
        cdef int known = self.known
        if not (PyFloat_CheckExact(x) or (known and type(x) is NUMBER64)) or other is not MISSING:
            if self.f is abs and PyComplex_CheckExact(x) and other is MISSING:
                z = self.arithmetic._absolute(x)
                if z is not None:
                    return z
            return self.general(x) if other is MISSING else self.general(x, other)
        if self.arithmetic.outer is not None:
            return self.inside(x)
        z = self.f(x)
        i = self.arithmetic.table.find(<PyObject*> x)
        if i == NULL:
            return z
        v = PyFloat_AS_DOUBLE(x)
        w = PyFloat_AS_DOUBLE(z) if PyFloat_CheckExact(z) else 0.0
        if not slope_of(known, v, w, &slope):
            if known >= 8:
                return self.general(x)
            slope = self.partial(self.m, x, z)
            i = self.arithmetic.table.find(<PyObject*> x)
        self.arithmetic._along(z, slope, i)
        return z

    cdef object inside(self, object x):
        """f(x) where a forward level is around this one."""
        cdef double v = PyFloat_AS_DOUBLE(x), w, slope = 0.0, curvature = 0.0
        if self.further:
            z = self.f(x)
            if further_slope_of(self.further, v, PyFloat_AS_DOUBLE(z), &slope, &curvature):
                self.arithmetic._along_both(z, x, slope, curvature)
                return z
        if self.known:
            z = self.f(x)
            w = PyFloat_AS_DOUBLE(z)
            if slope_of(self.known, v, w, &slope):
                self.arithmetic._along_both(z, x, slope, curvature_of(self.known, v, w))
                return z
        return self.general(x)


cdef class FloatMaker:
    """`float` of a number; of anything else the general way."""

    cdef Arithmetic arithmetic
    cdef object general

    def __init__(self, arithmetic, general):
        self.arithmetic, self.general = arithmetic, general

    def call(self, *args, **kwargs):
        """float(x)."""
        cdef Place* i
        if len(args) != 1 or kwargs:
            return self.general(*args, **kwargs)
        x = args[0]
        if PyFloat_CheckExact(x):
            return x
        if type(x) is not NUMBER64:
            return self.general(x)
        z = PyFloat_FromDouble(PyFloat_AS_DOUBLE(x))
        if self.arithmetic.outer is not None:
            self.arithmetic._along_both(z, x, 1.0, 0.0)
            return z
        i = self.arithmetic.table.find(<PyObject*> x)
        if i != NULL:
            self.arithmetic._along(z, 1.0, i)
        return z


cdef class NumberMaker(FloatMaker):
    """`np.float64` of a float; of anything else the general way."""

    def call(self, *args, **kwargs):
        """np.float64(x)."""
        cdef Place* i
        if len(args) != 1 or kwargs or not PyFloat_CheckExact(args[0]):
            return self.general(*args, **kwargs)
        x = args[0]
        z = NUMBER64(x)
        if self.arithmetic.outer is not None:
            self.arithmetic._along_both(z, x, 1.0, 0.0)
            return z
        i = self.arithmetic.table.find(<PyObject*> x)
        if i != NULL:
            self.arithmetic._along(z, 1.0, i)
        return z


cdef inline bint is_moderate(double x) noexcept:
    """Whether the square of `x` is as exact as `x`."""
    return x == 0.0 or 1e-150 < x < 1e150 or -1e150 < x < -1e-150


cdef class PairRule:
    """`math.atan2`, `math.hypot` or `math.dist` of floats; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object f, general

    def __init__(self, arithmetic, f, general):
        self.arithmetic, self.f, self.general = arithmetic, f, general

    def call(self, *args):
        """f(a, b)."""
        cdef double x, y, w
        if len(args) == 2 and is_real(args[0]) and is_real(args[1]) and self.f is not math.dist:
            x, y = real(args[0]), real(args[1])
            if is_moderate(x) and is_moderate(y) and (x != 0.0 or y != 0.0):
                z = self.f(args[0], args[1])
                w = PyFloat_AS_DOUBLE(z)
                if self.f is math.hypot:
                    x, y = x / w, y / w
                    if self.arithmetic.outer is None:
                        self.arithmetic._note_pair(z, args[0], args[1], x, y)
                    else:
                        self.arithmetic._note_pair_both(z, args[0], args[1], x, y, y * y / w, -x * y / w, x * x / w)
                else:
                    w = x * x + y * y
                    x, y = x / w, y / w
                    if self.arithmetic.outer is None:
                        self.arithmetic._note_pair(z, args[0], args[1], y, -x)
                    else:
                        self.arithmetic._note_pair_both(
                            z, args[0], args[1], y, -x, -2.0 * x * y, (x - y) * (x + y), 2.0 * x * y
                        )
                return z
        elif self.arithmetic.outer is None:
            z = self._length(args)
            if z is not None:
                return z
        return self.general(*args)

    cdef object _length(self, tuple args):
        """math.hypot(*args), or math.dist of two points; None where that is not for here."""
        cdef list values = [], slopes = []
        cdef Py_ssize_t k, n
        cdef double d, w
        if self.f is math.hypot:
            values.extend(args)
        elif self.f is math.dist and len(args) == 2 and is_point(args[0]) and is_point(args[1]) and len(args[0]) == len(args[1]):
            values.extend(args[0])
            values.extend(args[1])
        else:
            return None
        for x in values:
            if not PyFloat_CheckExact(x) and not PyLong_CheckExact(x):
                return None
        n = len(values) if self.f is math.hypot else len(args[0])
        for k in range(n):
            d = real(values[k]) if self.f is math.hypot else real(values[k]) - real(values[n + k])
            if not is_moderate(d):
                return None
            slopes.append(d)
        z = self.f(*args)
        w = PyFloat_AS_DOUBLE(z)
        if w == 0.0:
            return None
        slopes = [PyFloat_AS_DOUBLE(x) / w for x in slopes]
        if self.f is math.dist:
            slopes += [-PyFloat_AS_DOUBLE(x) for x in slopes]
        return z if self.arithmetic._note_many(z, values, slopes) else None


cdef inline bint is_point(object x):
    return PyTuple_CheckExact(x) or PyList_CheckExact(x)


cdef bint has_two_slopes(object f, object rule) except -1:
    """Whether `f` is a function of `math` of two numbers, with a row of plaingrad's own."""
    return (
        rule.kind == "scalar" and PyCFunction_CheckExact(f) and f.__module__ == "math" and len(rule.partials) == 2
        and f is not math.log
    )


cdef class SlopesRule(PairRule):
    """A function of `math` of two floats with slopes partial(m, x, y, z), or constant ones."""

    cdef object first, second

    def __init__(self, arithmetic, f, partials, general):
        super().__init__(arithmetic, f, general)
        self.first, self.second = partials

    def call(self, *args):
        """f(a, b)."""
        cdef Arithmetic m = self.arithmetic
        if m.outer is not None or len(args) != 2:
            return self.general(*args)
        a, b = args[0], args[1]
        if not (PyFloat_CheckExact(a) or PyLong_CheckExact(a)) or not (PyFloat_CheckExact(b) or PyLong_CheckExact(b)):
            return self.general(*args)
        if m.table.find(<PyObject*> a) == NULL and m.table.find(<PyObject*> b) == NULL:
            return self.general(*args) if m.truncated or m.level.texts else self.f(a, b)
        z = self.f(a, b)
        if not PyFloat_CheckExact(z):
            return self.general(*args)
        da = self._slope(self.first, a, b, z)
        db = self._slope(self.second, a, b, z)
        if not is_real(da) or not is_real(db):
            return self.general(*args)
        m._note_pair(z, a, b, real(da), real(db))
        return z

    cdef object _slope(self, object partial, object a, object b, object z):
        """The slope in an argument: 0 where it does not move."""
        if self.arithmetic.table.find(<PyObject*> (a if partial is self.first else b)) == NULL:
            return 0.0
        return partial(math, a, b, z) if callable(partial) else partial


# What is summed as a list of the same references: of an iterator nothing is left then, a container stays.
cdef frozenset SUMMED_ITERATORS = frozenset((GeneratorType, map, filter, itertools.chain, itertools.islice))
cdef frozenset SUMMED_CONTAINERS = frozenset((collections.deque, type({}.values()), type({}.keys()), set, frozenset))


cdef class SumRule:
    """`sum` or `math.fsum` of numbers in a container or from an iterator; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object f, general

    def __init__(self, arithmetic, f, general):
        self.arithmetic = arithmetic
        self.f, self.general = f, general

    def call(self, values, start=MISSING):
        """sum(values)."""
        cdef bint plain = start is MISSING or (is_real(start) and self.f is sum)
        if self.f is not sum and self.arithmetic.truncated:
            plain = False
        given = values
        if plain and is_in(SUMMED_ITERATORS, type(values)):
            given = values = list(self.arithmetic.level.iterable(values))
        elif plain and is_in(SUMMED_CONTAINERS, type(values)):
            values = list(values)
        if plain and (PyList_CheckExact(values) or PyTuple_CheckExact(values)):
            for x in values:
                if not is_real(x):
                    break
            else:
                if start is MISSING:
                    z = self.f(values)
                else:
                    z = sum(values, start)
                    values = [start, *values]
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    self.arithmetic._note_sum(z, values)
                return z
        return self.general(given) if start is MISSING else self.general(given, start)
