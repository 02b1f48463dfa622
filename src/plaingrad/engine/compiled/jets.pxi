# -- Taylor coefficients of numbers -------------------------------------------------------------------------------------
#
# The recurrences of `taylor.series`, for a number x with the coefficients a[0], a[1], ... of t, t**2, ...

cdef void jet_product(double x, double* a, double y, double* b, double* z, Py_ssize_t n) noexcept:
    """The coefficients of x y."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = a[k] * y + x * b[k]
        for j in range(k):
            s += a[j] * b[k - 1 - j]
        z[k] = s


cdef void jet_quotient(double value, double* a, double y, double* b, double* z, Py_ssize_t n) noexcept:
    """Those of x / y, which is `value`; `a` is NULL where x does not move."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = value * b[k]
        for j in range(k):
            s += b[j] * z[k - 1 - j]
        z[k] = ((0.0 if a == NULL else a[k]) - s) / y


cdef void jet_exp(double value, double* a, double* z, Py_ssize_t n) noexcept:
    """From z' = a' z."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = (k + 1) * a[k] * value
        for j in range(k):
            s += (j + 1) * a[j] * z[k - 1 - j]
        z[k] = s / (k + 1)


cdef void jet_integral(double* t, double q, double* b, double* z, Py_ssize_t n) noexcept:
    """Those of z with (q + b) z' = t, where t[k] is the coefficient of t**k."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = t[k]
        for j in range(k):
            s -= (j + 1) * z[j] * b[k - 1 - j]
        z[k] = s / ((k + 1) * q)


cdef void jet_root(double value, double* a, double* z, Py_ssize_t n) noexcept:
    """From z z = x; the root is `value`."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = a[k]
        for j in range(k):
            s -= z[j] * z[k - 1 - j]
        z[k] = s / (2.0 * value)


cdef void jet_power(double x, double e, double value, double* a, double* z, Py_ssize_t n) noexcept:
    """From x z' = e x' z, where x is not 0."""
    cdef Py_ssize_t k, j
    cdef double s
    for k in range(n):
        s = e * (k + 1) * a[k] * value
        for j in range(k):
            s += ((e + 1.0) * (j + 1) - (k + 1)) * a[j] * z[k - 1 - j]
        z[k] = s / ((k + 1) * x)


cdef void jet_circle(double s, double c, double* a, double* z, double* w, Py_ssize_t n) noexcept:
    """Those of the sine and of the cosine, whose values are s and c: from s' = c x' and c' = -s x'."""
    cdef Py_ssize_t k, j
    cdef double p, q
    for k in range(n):
        p = (k + 1) * a[k] * c
        q = (k + 1) * a[k] * s
        for j in range(k):
            p += (j + 1) * a[j] * w[k - 1 - j]
            q += (j + 1) * a[j] * z[k - 1 - j]
        z[k] = p / (k + 1)
        w[k] = -q / (k + 1)


cdef void jet_tangent(double value, double slope, int sign, double* a, double* z, double* w, Py_ssize_t n) noexcept:
    """From z' = w x' with w = 1 + sign z z, whose value is `slope`."""
    cdef Py_ssize_t k, j
    cdef double p, q
    for k in range(n):
        p = (k + 1) * a[k] * slope
        for j in range(k):
            p += (j + 1) * a[j] * w[k - 1 - j]
        z[k] = p / (k + 1)
        q = 2.0 * value * z[k]
        for j in range(k):
            q += z[j] * z[k - 1 - j]
        w[k] = sign * q


cdef class JetPusher(ChunkPusher):
    """Those of a Taylor level: the column of a number has its coefficients."""

    cdef void _put_two(self, double x, double y, double value, double* a, double* b, int op, double* z) noexcept:
        if op == MUL and a != NULL and b != NULL:
            jet_product(x, a, y, b, z, self.length)
        elif op == DIV and b != NULL:
            jet_quotient(value, a, y, b, z, self.length)
        else:
            dots_of_two(x, y, value, a, b, op, z, self.length)

    cdef double* _series(self, int known, double x, double value, double slope, double* a) except NULL:
        cdef double* z = self.columns.take()
        self._put_function(known, x, value, slope, a, z)
        return z

    cdef void _put_function(self, int known, double x, double value, double slope, double* a, double* z) noexcept:
        cdef Py_ssize_t n = self.length, k
        cdef double* w = self.scratch
        if known >= 9:  # which is linear here
            for k in range(n):
                z[k] = slope * a[k]
        elif known == 1:
            jet_circle(value, cos(x), a, z, w, n)
        elif known == 2:
            jet_circle(sin(x), value, a, w, z, n)
        elif known == 3:
            jet_exp(value, a, z, n)
        elif known == 4:
            slope = cosh(x)
            jet_tangent(value, 1.0 / slope / slope, -1, a, z, w, n)
        elif known == 5:
            jet_tangent(value, slope, 1, a, z, w, n)
        elif known == SQUARE_ROOT:
            jet_root(value, a, z, n)
        else:
            for k in range(n):
                w[k] = (k + 1) * a[k]
            if known == 7:
                jet_integral(w, x, a, z, n)
            else:
                jet_product(x, a, x, a, w + n, n)
                jet_integral(w, 1.0 + x * x, w + n, z, n)

    cdef int _function(self, object z, double x, int known, double slope, Place* a) except -1:
        return self._file(z, self._series(known, x, PyFloat_AS_DOUBLE(z), slope, a.column))

    cdef int _of_function(self, Item* z, Item* a, int known, double slope) except -1:
        z.at.column = self._series(known, a.x, z.x, slope, a.at.column)
        return 0

    cdef double* _to_power(self, double x, double e, double value, double* a) except NULL:
        """The coefficients of x ** e, which is `value`; where x is 0, for whole powers from 0 on."""
        cdef double* z = self.columns.take()
        if e == floor(e) and 0.0 <= e and (x == 0.0 or e < max(self.length + 1, 4)):
            self._whole_power(x, e, a, z)
        else:
            jet_power(x, e, value, a, z, self.length)
        return z

    cdef void _whole_power(self, double x, double e, double* a, double* z) noexcept:
        """By repeated squaring (Knuth, The Art of Computer Programming 2, section 4.6.3)."""
        cdef Py_ssize_t n = self.length, size = n * sizeof(double)
        cdef double* b = self.scratch
        cdef double* made = self.scratch + n
        cdef double value = 1.0
        cdef bint begun = False
        memset(z, 0, size)
        memcpy(b, a, size)
        while e >= 1.0:
            if e != 2.0 * floor(0.5 * e):
                if begun:
                    jet_product(value, z, x, b, made, n)
                    memcpy(z, made, size)
                    value *= x
                else:
                    memcpy(z, b, size)
                    value, begun = x, True
            e = floor(0.5 * e)
            if e >= 1.0:
                jet_product(x, b, x, b, made, n)
                memcpy(b, made, size)
                x *= x

    cdef int _of_power(self, Item* z, Item* a, double e) except -1:
        z.at.column = self._to_power(a.x, e, z.x, a.at.column)
        return 0

    cdef object _power(self, object a, object b, bint in_place):
        cdef double x, e
        cdef Place* p
        cdef Place* q
        if is_real(a) and is_real(b) and not (PyLong_CheckExact(a) and PyLong_CheckExact(b)):
            x, e = real(a), real(b)
            p, q = self.table.find(<PyObject*> a), self.table.find(<PyObject*> b)
            if isfinite(x) and isfinite(e) and (x > 0.0 or (q == NULL and e == floor(e) and (e >= 1.0 or x != 0.0))):
                z = PyNumber_Power(a, b, None)
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    if q != NULL:
                        self._file(z, self._power_of_both(x, e, PyFloat_AS_DOUBLE(z), p, q))
                    elif p != NULL:
                        self._file(z, self._to_power(x, e, PyFloat_AS_DOUBLE(z), p.column))
                    return z
        return self._generally(a, b, POWER, in_place)

    cdef double* _power_of_both(self, double x, double e, double value, Place* p, Place* q) except NULL:
        """The coefficients of x ** e = exp(e log x), where e moves."""
        cdef Py_ssize_t n = self.length, k
        cdef double* z = self.columns.take()
        cdef double* u = self.scratch
        cdef double* w = self.scratch + n
        cdef double size = log(x)
        if p == NULL:
            for k in range(n):
                w[k] = size * q.column[k]
        else:
            for k in range(n):
                w[k] = (k + 1) * p.column[k]
            jet_integral(w, x, p.column, u, n)
            jet_product(e, q.column, size, u, w, n)
        jet_exp(value, w, z, n)
        return z

    cdef int _of_pair(self, object z, double x, double y, Place* p, Place* q, bint is_hypot) except -1:
        """File z, the length or, with x before y, the angle of the vector (x, y)."""
        cdef Py_ssize_t n = self.length, k, j, size = n * sizeof(double)
        cdef double* a = self.scratch
        cdef double* squares = self.scratch + n
        cdef double* t = self.scratch + 2 * n
        cdef double* still
        cdef double* b
        cdef double* made = self.columns.take()
        cdef double s
        memset(a, 0, size)
        still = a
        if p != NULL:
            a = p.column
        b = still if q == NULL else q.column
        jet_product(x, a, x, a, squares, n)
        jet_product(y, b, y, b, t, n)
        for k in range(n):
            squares[k] += t[k]
        if is_hypot:
            jet_root(PyFloat_AS_DOUBLE(z), squares, made, n)
        else:
            for k in range(n):
                s = (k + 1) * (x * b[k] - y * a[k])
                for j in range(k):
                    s += (j + 1) * (a[k - 1 - j] * b[j] - b[k - 1 - j] * a[j])
                t[k] = s
            jet_integral(t, x * x + y * y, squares, made, n)
        return self._file(z, made)

    def unary(self, f, partial, m, general):
        """What to call instead of `f`, a function of one float with slope partial(m, x, z)."""
        return JetRule(self, f, partial, m, general).call

    cdef object _compiled(self, object f, object rule, object general):
        if not rule.users and rule.own:
            if f is math.atan2 or f is math.hypot:
                return JetPairRule(self, f, general).call
            if (f is math.radians or f is math.degrees or f is abs) and rule.kind == "scalar":
                return JetRule(self, f, rule.partials[0], math, general).call
        return ChunkPusher._compiled(self, f, rule, general)


cdef class JetRule(ScalarRule):
    """A function of one float at a Taylor level."""

    def call(self, x, other=MISSING):
        """f(x)."""
        cdef Place* a
        cdef double v, slope = 0.0
        if not self.known or other is not MISSING or not (PyFloat_CheckExact(x) or type(x) is NUMBER64):
            return self.general(x) if other is MISSING else self.general(x, other)
        z = self.f(x)
        a = self.arithmetic.table.find(<PyObject*> x)
        if a == NULL:
            return z
        v = PyFloat_AS_DOUBLE(x)
        if not slope_of(self.known, v, PyFloat_AS_DOUBLE(z), &slope):
            return self.general(x)
        self.arithmetic._function(z, v, self.known, slope, a)
        return z


cdef class JetPairRule(PairRule):
    """`math.atan2` or `math.hypot` of two floats at a Taylor level."""

    def call(self, *args):
        """f(a, b)."""
        cdef Place* p
        cdef Place* q
        cdef double x, y
        if len(args) == 2 and is_real(args[0]) and is_real(args[1]):
            x, y = real(args[0]), real(args[1])
            if is_moderate(x) and is_moderate(y) and (x != 0.0 or y != 0.0):
                z = self.f(args[0], args[1])
                p = self.arithmetic.table.find(<PyObject*> args[0])
                q = self.arithmetic.table.find(<PyObject*> args[1])
                if self.f is math.hypot and (p != NULL or q != NULL):
                    (<JetPusher> self.arithmetic)._of_pair(z, x, y, p, q, True)
                elif p != NULL or q != NULL:
                    (<JetPusher> self.arithmetic)._of_pair(z, y, x, q, p, False)
                return z
        return self.general(*args)
