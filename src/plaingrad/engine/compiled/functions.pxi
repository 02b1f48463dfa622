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
    cdef int known

    def __init__(self, arithmetic, f, partial, m, general):
        self.arithmetic = arithmetic
        self.f, self.partial, self.m, self.general = f, partial, m, general
        own = not callable(partial) or getattr(partial, "__module__", None) == "plaingrad.rules.elementwise"
        self.known = SLOPES.get(f, 0) if own else 0

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
        cdef double v = PyFloat_AS_DOUBLE(x), w, slope = 0.0
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


cdef inline bint is_moderate(double x) noexcept:
    """Whether the square of `x` is as exact as `x`."""
    return x == 0.0 or 1e-150 < x < 1e150 or -1e150 < x < -1e-150


cdef class PairRule:
    """`math.atan2` or `math.hypot` of two floats; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object f, general

    def __init__(self, arithmetic, f, general):
        self.arithmetic, self.f, self.general = arithmetic, f, general

    def call(self, *args):
        """f(a, b)."""
        cdef double x, y, w
        if len(args) == 2 and is_real(args[0]) and is_real(args[1]):
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
        return self.general(*args)


cdef class SumRule:
    """`sum` of a list or tuple of floats and ints; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object general

    def __init__(self, arithmetic, general):
        self.arithmetic = arithmetic
        self.general = general

    def call(self, values, start=MISSING):
        """sum(values)."""
        cdef bint plain = start is MISSING or is_real(start)
        if plain and (type(values) is GeneratorType or type(values) is map):
            values = list(self.arithmetic.level.iterable(values))
        if plain and (PyList_CheckExact(values) or PyTuple_CheckExact(values)):
            for x in values:
                if not PyFloat_CheckExact(x) and not PyLong_CheckExact(x):
                    break
            else:
                if start is MISSING:
                    z = sum(values)
                else:
                    z = sum(values, start)
                    values = [start, *values]
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    self.arithmetic._note_sum(z, values)
                return z
        return self.general(values) if start is MISSING else self.general(values, start)
