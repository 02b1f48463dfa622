# -- numbers in reverse and in forward mode ------------------------------------------------------------------------------

cdef inline void slopes(double x, double y, double value, int op, double* dx, double* dy) noexcept:
    """The partial derivatives of `value`, which is x op y."""
    dx[0] = dy[0] = 1.0
    if op == SUB:
        dy[0] = -1.0
    elif op == MUL:
        dx[0] = y
        dy[0] = x
    elif op == DIV:
        dx[0] = 1.0 / y
        dy[0] = -value / y


cdef inline double dot_of(double x, double y, double value, Place* a, Place* b, int op) noexcept:
    """The tangent of `value`, which is x op y; NULL for one that does not move."""
    cdef double a_dot = 0.0, b_dot = 0.0
    if a != NULL:
        a_dot = a.dot
    if b != NULL:
        b_dot = b.dot
    if b == NULL:
        return a_dot * y if op == MUL else a_dot / y if op == DIV else a_dot
    if a == NULL:
        return b_dot if op == ADD else -b_dot if op == SUB else x * b_dot if op == MUL else -(value * b_dot / y)
    if op == ADD:
        return a_dot + b_dot
    if op == SUB:
        return a_dot - b_dot
    if op == MUL:
        return a_dot * y + x * b_dot
    return (a_dot - value * b_dot) / y


cdef class Recorder(Arithmetic):
    """Those of a reverse level: its table gives a number an index, and its tape the partial derivatives."""

    cdef Tape tape

    def __init__(self, level):
        super().__init__(level)
        self.table = Table(False)
        self.tape = Tape()

    @property
    def entries(self):
        """The tape."""
        return self.tape

    cdef object _entered(self, object x):
        return self.file(x)

    def new_index(self):
        """The next index."""
        self.n += 1
        return self.n

    def file(self, x):
        """File the fresh number `x`, a float, complex number or NumPy's float64; its index."""
        cdef Place* at
        if PyComplex_CheckExact(x):
            return self._file_complex(x)
        self._make_room()
        at = self._filed(x)
        at.index = self.n
        return at.index

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        cdef int64_t i = -1 if a == NULL else a.index
        cdef int64_t j = -1 if b == NULL else b.index
        cdef double dx, dy
        slopes(x, y, value, op, &dx, &dy)
        return self._record(z, i, j, dx, dy)

    cdef int _of_two(self, Item* z, Item* a, Item* b, int op) except -1:
        cdef double dx, dy
        slopes(a.x, b.x, z.x, op, &dx, &dy)
        self.n += 1
        z.at.index = self.n
        if a.kind == MOVING_NUMBER:
            self.tape.push(self.n, a.at.index, dx)
        if b.kind == MOVING_NUMBER:
            self.tape.push(self.n, b.at.index, dy)
        return 0

    cdef int _of_one(self, Item* z, Item* a, double slope) except -1:
        self.n += 1
        z.at.index = self.n
        return self.tape.push(self.n, a.at.index, slope)

    cdef inline int _record(self, object z, int64_t i, int64_t j, double dx, double dy) except -1:
        """File z, which depends on the numbers `i` and `j` (below 0: on one of them only) with these slopes."""
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        if i >= 0:
            self.tape.push(at.index, i, dx)
        if j >= 0:
            self.tape.push(at.index, j, dy)
        return 0

    cdef int _along(self, object z, double slope, Place* a) except -1:
        cdef int64_t i = a.index
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        return self.tape.push(at.index, i, slope)

    cdef int _note_pair(self, object z, object a, object b, double da, double db) except -1:
        cdef Place* p = self.table.find(<PyObject*> a)
        cdef Place* q = self.table.find(<PyObject*> b)
        cdef int64_t i = -1 if p == NULL else p.index
        cdef int64_t j = -1 if q == NULL else q.index
        return 0 if i < 0 and j < 0 else self._record(z, i, j, da, db)

    cdef int64_t _index_of(self, object x) except? -9:
        """The index of a number of any kind; -1 if it is not active."""
        cdef Place* at = self.table.find(<PyObject*> x)
        cdef PyObject* found
        if at != NULL:
            return at.index
        if not self.table.others:
            return -1
        found = PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> x))
        return -1 if found == NULL else <object> found

    cdef object _complex(self, object a, object b, int op):
        cdef int64_t i, j, o
        cdef bint has_parts
        cdef double ar, ai, br, bi, pr = 1.0, pi = 0.0, qr = 1.0, qi = 0.0, zr, zi
        if self.outer is not None or not parts_of(a, &ar, &ai) or not parts_of(b, &br, &bi):
            return None
        z = whole(a, b, op)
        if not PyComplex_CheckExact(z):
            return None
        i, j = self._index_of(a), self._index_of(b)
        if i < 0 and j < 0:
            return z
        has_parts = self._has_parts(a, i) and self._has_parts(b, j)
        o = self._file_complex(z)
        if not has_parts:
            if i >= 0:
                self._push_complex(i, a, 1.0 if op == ADD or op == SUB else b if op == MUL else 1.0 / b)
            if j >= 0:
                self._push_complex(j, b, 1.0 if op == ADD else -1.0 if op == SUB else a if op == MUL else -z / b)
            return z
        if op == SUB:
            qr = -1.0
        elif op == MUL:
            pr, pi, qr, qi = br, bi, ar, ai
        elif op == DIV:
            zr, zi = PyComplex_RealAsDouble(z), PyComplex_ImagAsDouble(z)
            divide(1.0, 0.0, br, bi, &pr, &pi)
            divide(-zr, -zi, br, bi, &qr, &qi)
        if i >= 0:
            self.tape.push_complex(o, i, OF_COMPLEX if PyComplex_CheckExact(a) else OF_REAL, pr, pi)
        if j >= 0:
            self.tape.push_complex(o, j, OF_COMPLEX if PyComplex_CheckExact(b) else OF_REAL, qr, qi)
        return z

    cdef inline bint _has_parts(self, object x, int64_t i) noexcept:
        """Whether a number is not active, or real, or complex with indices for its parts."""
        return i < 0 or not PyComplex_CheckExact(x) or self.table.find(<PyObject*> x) != NULL

    cdef int64_t _file_complex(self, object z) except -1:
        """File a complex number; its index, which those of its parts follow."""
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        self.n += 2
        return at.index

    cdef object _complex_power(self, object a, object b):
        cdef int64_t i, o
        cdef double re, im
        if self.outer is not None or not 1 <= b <= 100:
            return None
        z = PyNumber_Power(a, b, None)
        i = self._index_of(a)
        if i < 0:
            return z
        slope = b * PyNumber_Power(a, b - 1, None)
        o = self._file_complex(z)
        if self._has_parts(a, i) and parts_of(slope, &re, &im):
            self.tape.push_complex(o, i, OF_COMPLEX, re, im)
        else:
            self._push_complex(i, a, slope)
        return z

    cdef object _composed(self, object re, object im):
        cdef int64_t i, j, o
        if self.outer is not None or not self.own_numbers:
            return None
        z = PyComplex_FromDoubles(real(re), real(im))
        i, j = self._index_of(re), self._index_of(im)
        if i >= 0 or j >= 0:
            o = self._file_complex(z)
            if i >= 0:
                self.tape.push_complex(o, i, OF_REAL, 1.0, 0.0)
            if j >= 0:
                self.tape.push_complex(o, j, OF_REAL, 0.0, 1.0)
        return z

    cdef object _part(self, object x, object name):
        cdef Place* at
        cdef bint is_real_part
        if self.outer is not None or not self.own_numbers:
            return None
        at = self.table.find(<PyObject*> x)
        is_real_part = name == "real"
        if at == NULL or not (is_real_part or name == "imag"):
            return None
        if is_real_part:
            return self._of_parts(PyFloat_FromDouble(PyComplex_RealAsDouble(x)), at.index, 1.0, 0.0)
        return self._of_parts(PyFloat_FromDouble(PyComplex_ImagAsDouble(x)), at.index, 0.0, 1.0)

    cdef object _absolute(self, object x):
        cdef Place* at
        cdef double w
        if self.outer is not None or not self.own_numbers:
            return None
        at = self.table.find(<PyObject*> x)
        if at == NULL:
            return None
        z = abs(x)
        w = PyFloat_AS_DOUBLE(z)
        if not isfinite(w) or w < 1e-300:
            return None
        at = self.table.find(<PyObject*> x)
        return self._of_parts(z, at.index, PyComplex_RealAsDouble(x) / w, PyComplex_ImagAsDouble(x) / w)

    cdef object _of_parts(self, object z, int64_t i, double re, double im):
        """File z, a real function of complex number `i`, with its slopes in the parts of that."""
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        self.tape.push_complex(at.index, i, TO_REAL, re, im)
        return z

    cdef int _push_complex(self, int64_t i, object x, object partial) except -1:
        """The last number filed depends on `x`; a cotangent goes back by the conjugate of the partial derivative."""
        cdef int64_t o = self.n - 2
        if PyComplex_CheckExact(partial):
            partial = PyComplex_FromDoubles(PyComplex_RealAsDouble(partial), -PyComplex_ImagAsDouble(partial))
        if not PyComplex_CheckExact(x):
            self.tape._push_object((o, i, partial), CALLED, steps.real_part_back)
        elif PyComplex_CheckExact(partial):
            self.tape._push_object(o, i, partial)
        else:
            self.tape.was_extended = True
            self.tape.push(o, i, real(partial))
        return 0

    cdef bint _note_many(self, object z, list values, list slopes) except -1:
        cdef Place* at
        cdef int64_t o = -1
        cdef Py_ssize_t k
        if self.outer is not None:
            return False
        for k in range(len(values)):
            at = self.table.find(<PyObject*> values[k])
            if at != NULL:
                if o < 0:
                    self.n += 1
                    o = self.n
                self.tape.push(o, at.index, PyFloat_AS_DOUBLE(slopes[k]))
        if o >= 0:
            at = self.table.put(<PyObject*> z)
            at.index = o
            self._make_room()
        return True

    cdef int _note_sum(self, object z, object values) except -1:
        cdef Place* at
        cdef int64_t o = -1
        for x in values:
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                if o < 0:
                    self.n += 1
                    o = self.n
                self.tape.push(o, at.index, 1.0)
        if o >= 0:
            at = self.table.put(<PyObject*> z)
            at.index = o
            self._make_room()
        return 0


cdef class Pusher(Arithmetic):
    """Those of a forward level that carries one tangent: its table holds the tangents of numbers."""

    def __init__(self, level):
        super().__init__(level)
        self.table = Table(True)

    def file(self, x, double x_dot):
        """File the fresh number `x`, a float or NumPy's float64, with its tangent."""
        self._file(x, x_dot)

    cdef object _entered(self, object x):
        self._file(x, 0.0)
        return x

    def seed(self, values, dots):
        """Give the floats in `values`, which are filed, their tangents."""
        cdef Place* at
        for x, x_dot in zip(values, dots):
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                at.dot = PyFloat_AS_DOUBLE(x_dot)

    cdef int _file(self, object x, double x_dot) except -1:
        cdef Place* at
        self._make_room()
        at = self._filed(x)
        at.dot = x_dot
        return 0

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        return self._file(z, dot_of(x, y, value, a, b, op))

    cdef int _of_two(self, Item* z, Item* a, Item* b, int op) except -1:
        z.at.dot = dot_of(a.x, b.x, z.x, &a.at if a.kind == MOVING_NUMBER else NULL, &b.at if b.kind == MOVING_NUMBER else NULL, op)
        return 0

    cdef int _of_one(self, Item* z, Item* a, double slope) except -1:
        z.at.dot = slope * a.at.dot
        return 0

    cdef int _along(self, object z, double slope, Place* a) except -1:
        return self._file(z, slope * a.dot)

    cdef int _note_pair(self, object z, object a, object b, double da, double db) except -1:
        cdef Place* p = self.table.find(<PyObject*> a)
        cdef Place* q = self.table.find(<PyObject*> b)
        if p == NULL and q == NULL:
            return 0
        return self._file(z, (0.0 if p == NULL else da * p.dot) + (0.0 if q == NULL else db * q.dot))

    cdef bint _note_many(self, object z, list values, list slopes) except -1:
        cdef Place* at
        cdef double z_dot = 0.0
        cdef bint active = False
        cdef Py_ssize_t k
        for k in range(len(values)):
            at = self.table.find(<PyObject*> values[k])
            if at != NULL:
                z_dot += at.dot * PyFloat_AS_DOUBLE(slopes[k])
                active = True
        if active:
            self._file(z, z_dot)
        return True

    cdef int _note_sum(self, object z, object values) except -1:
        cdef Place* at
        cdef double z_dot = 0.0
        cdef bint active = False
        for x in values:
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                z_dot += at.dot
                active = True
        return self._file(z, z_dot) if active else 0
