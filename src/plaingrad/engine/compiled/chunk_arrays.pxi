# -- small arrays with chunks of tangents or Taylor coefficients -----------------------------------------------------------
#
# The tangents of the elements are gathered into columns, one element after another, and go the way of numbers.

cdef enum:
    MOST_DOTS = 4096  # tangents of an array; NumPy does more of them quicker

cdef struct Operand:
    double value  # of a number
    double* values  # of an array, or NULL
    double* dots  # of the first element, or the column of a number; NULL for what does not move
    Py_ssize_t step  # from one tangent of an element to the next

# Functions of arrays whose slopes and series are those of numbers.
cdef dict KNOWN_UFUNCS = {
    np.sin: 1, np.cos: 2, np.exp: 3, np.tanh: 4, np.tan: 5, np.sqrt: SQUARE_ROOT, np.log: 7, np.arctan: 8
}


cdef class ChunkPusher(ColumnPusher):
    """Those of small arrays, and functions of them, at a level whose numbers have columns."""

    cdef bint _is_small(self, object x) except -1:
        """Whether operations on `x` may be done here."""
        if not is_float64(x) or cnp.PyArray_NDIM(<cnp.ndarray> x) == 0 or not self.own_arrays:
            return False
        return cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> x) and cnp.PyArray_SIZE(<cnp.ndarray> x) * self.length <= MOST_DOTS

    cdef bint _look(self, Operand* o, object x) except -1:
        """Find the value and tangents of an operand; False if it is not for here."""
        cdef Place* at
        cdef int overflow = 0
        o.values = o.dots = NULL
        o.step = 1
        if PyLong_CheckExact(x):
            o.value = <double> PyLong_AsLongLongAndOverflow(x, &overflow)
            return not overflow
        if PyFloat_CheckExact(x) or type(x) is NUMBER64:
            o.value = PyFloat_AS_DOUBLE(x)
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                o.dots = at.column
            return True
        if not self._is_small(x):
            return False
        region = region_of(self.table, x)
        if region is MISSING:
            return False
        o.values = <double*> cnp.PyArray_DATA(<cnp.ndarray> x)
        if region is not None and region.dot is not None:
            o.dots = self._dots_at(region, x, <char*> o.values)
            o.step = cnp.PyArray_SIZE(<cnp.ndarray> memory_of(x))
            return o.dots != NULL
        return True

    cdef inline double* _gathered_dots(self, Operand* o, Py_ssize_t k, double* room) noexcept:
        """The tangents of element `k`, next to one another."""
        cdef Py_ssize_t j
        if o.dots == NULL or o.values == NULL:
            return o.dots
        for j in range(self.length):
            room[j] = o.dots[j * o.step + k]
        return room

    cdef object _room_for(self, cnp.ndarray z):
        """An array for the tangents of `z`."""
        cdef cnp.npy_intp shape[MOST_AXES + 1]
        cdef int k
        shape[0] = self.length
        for k in range(cnp.PyArray_NDIM(z)):
            shape[k + 1] = cnp.PyArray_DIM(z, k)
        return cnp.PyArray_EMPTY(cnp.PyArray_NDIM(z) + 1, shape, cnp.NPY_DOUBLE, 0)

    cdef object _noted(self, object z, object z_dot):
        region = self.level.add_region(z)
        region.dot = z_dot
        return z

    cdef object _arrays(self, object a, object b, int op, bint in_place):
        cdef Operand p, q
        cdef Py_ssize_t k, j, size
        cdef double* dots
        cdef double* values
        cdef double* room
        cdef double* made
        if in_place and cnp.PyArray_CheckExact(a):
            return self._in_place(a, b, op)
        if not self._look(&p, a) or not self._look(&q, b) or (p.dots == NULL and q.dots == NULL):
            return None
        if p.values != NULL and q.values != NULL and not has_shape(a, b):
            return None
        z = NATIVE[op](a, b)
        z_dot = self._room_for(z)
        if not self._look(&p, a) or not self._look(&q, b) or (p.dots == NULL and q.dots == NULL):
            raise RuntimeError("a thread has changed an operand meanwhile")
        size = cnp.PyArray_SIZE(<cnp.ndarray> z)
        values, dots = <double*> cnp.PyArray_DATA(<cnp.ndarray> z), <double*> cnp.PyArray_DATA(<cnp.ndarray> z_dot)
        room = self.scratch + 3 * self.length
        made = room + 2 * self.length
        for k in range(size):
            self._put_two(
                p.value if p.values == NULL else p.values[k], q.value if q.values == NULL else q.values[k], values[k],
                self._gathered_dots(&p, k, room), self._gathered_dots(&q, k, room + self.length), op, made
            )
            for j in range(self.length):
                dots[j * size + k] = made[j]
        return self._noted(z, z_dot)

    cdef object _elementwise(self, object f, object x, int slope, object partial, int reads=READS_BOTH):
        cdef int known = KNOWN_UFUNCS.get(f, 0)
        cdef Operand p
        cdef Py_ssize_t k, j, size
        cdef double* dots
        cdef double* values
        cdef double* a
        cdef double* room
        cdef double* made
        cdef double along = -1.0
        if not known and f is not np.square and f is not np.negative:
            return None
        if not self._is_small(x) or not self._look(&p, x) or p.dots == NULL:
            return None
        size = cnp.PyArray_SIZE(<cnp.ndarray> x)
        if known == SQUARE_ROOT or known == 7:
            for k in range(size):
                if not p.values[k] > 0.0:
                    return None
        z = f(x)
        z_dot = self._room_for(z)
        if not self._look(&p, x) or p.dots == NULL:
            raise RuntimeError("a thread has changed the argument meanwhile")
        values, dots = <double*> cnp.PyArray_DATA(<cnp.ndarray> z), <double*> cnp.PyArray_DATA(<cnp.ndarray> z_dot)
        room = self.scratch + 3 * self.length
        made = room + self.length
        for k in range(size):
            a = self._gathered_dots(&p, k, room)
            if known:
                slope_of(known, p.values[k], values[k], &along)
                self._put_function(known, p.values[k], values[k], along, a, made)
            elif f is np.square:
                self._put_two(p.values[k], p.values[k], values[k], a, a, MUL, made)
            else:
                for j in range(self.length):
                    made[j] = -a[j]
            for j in range(self.length):
                dots[j * size + k] = made[j]
        return self._noted(z, z_dot)

    cdef object _sum(self, object f, cnp.ndarray x, object axis, bint is_mean, bint keeps):
        cdef Operand p
        cdef Py_ssize_t k, j, size = cnp.PyArray_SIZE(x)
        cdef double* column
        if axis is not None or not self._look(&p, x) or p.dots == NULL:
            return None
        z = f(x) if is_mean else np.add.reduce(x, None)
        if type(z) is not NUMBER64 or not self._look(&p, x) or p.dots == NULL:
            return None
        column = self.columns.take()
        for j in range(self.length):
            column[j] = 0.0
            for k in range(size):
                column[j] += p.dots[j * p.step + k]
            if is_mean:
                column[j] /= size
        self._file(z, column)
        return z

    cdef object _product(self, object f, object a, object b):
        cdef Operand p, q
        cdef Py_ssize_t rows = 1, inner, columns = 1, i, j, k, d, size
        cdef double* dots
        cdef double* room = self.scratch + 3 * self.length
        cdef double* made = room + 2 * self.length
        if not self._is_small(a) or not self._is_small(b):
            return None
        if cnp.PyArray_NDIM(<cnp.ndarray> a) > 2 or cnp.PyArray_NDIM(<cnp.ndarray> b) > 2:
            return None
        if cnp.PyArray_NDIM(<cnp.ndarray> a) == 2:
            rows = cnp.PyArray_DIM(<cnp.ndarray> a, 0)
        if cnp.PyArray_NDIM(<cnp.ndarray> b) == 2:
            columns = cnp.PyArray_DIM(<cnp.ndarray> b, 1)
        inner = cnp.PyArray_DIM(<cnp.ndarray> b, 0)
        if inner != cnp.PyArray_DIM(<cnp.ndarray> a, cnp.PyArray_NDIM(<cnp.ndarray> a) - 1):
            return None  # which raises
        if rows * inner * columns * self.length > MOST_DOTS or not self._look(&p, a) or not self._look(&q, b):
            return None
        if p.dots == NULL and q.dots == NULL:
            return None
        z = f(a, b)
        size = rows * columns
        is_array = is_new_array(z)
        if not is_array and type(z) is not NUMBER64:
            return None
        z_dot = np.zeros((self.length, *z.shape))
        if not self._look(&p, a) or not self._look(&q, b) or (p.dots == NULL and q.dots == NULL):
            raise RuntimeError("a thread has changed an operand meanwhile")
        dots = <double*> cnp.PyArray_DATA(<cnp.ndarray> z_dot)
        for i in range(rows):
            for j in range(columns):
                for k in range(inner):
                    self._put_two(
                        p.values[i * inner + k], q.values[k * columns + j], 0.0,
                        self._gathered_dots(&p, i * inner + k, room), self._gathered_dots(&q, k * columns + j, room + self.length),
                        MUL, made
                    )
                    for d in range(self.length):
                        dots[d * size + i * columns + j] += made[d]
        if is_array:
            return self._noted(z, z_dot)
        self.file(z, z_dot)
        return z

    cdef object _in_place(self, object a, object b, int op):
        """a op= b, where `a` has tangents; None where that is not done here."""
        cdef Operand p, q
        cdef Py_ssize_t k, j, size
        cdef double x, y, value
        cdef double* made
        cdef double* changed
        cdef double* room = self.scratch + 3 * self.length
        if not self._is_small(a) or not self._look(&p, a) or p.dots == NULL or not self._look(&q, b):
            return None
        if not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a) or not may_write(self.level, region_of(self.table, a)):
            return None
        if q.values != NULL and (not has_shape(a, b) or memory_of(a) == memory_of(b)):
            return None
        size = cnp.PyArray_SIZE(<cnp.ndarray> a)
        kept = cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)
        error = None
        try:
            changed_in_place(a, b, op)
        except FloatingPointError as raised:  # of `np.errstate`: the memory has been written
            error = raised
        if not self._look(&p, a) or p.dots == NULL or not self._look(&q, b):
            raise RuntimeError("a thread has changed an operand meanwhile")
        made = room + 2 * self.length
        changed = <double*> cnp.PyArray_DATA(<cnp.ndarray> kept)
        for k in range(size):
            x = changed[k]
            y = q.value if q.values == NULL else q.values[k]
            self._put_two(
                x, y, p.values[k], self._gathered_dots(&p, k, room), self._gathered_dots(&q, k, room + self.length), op, made
            )
            for j in range(self.length):
                p.dots[j * p.step + k] = made[j]
        if error is not None:
            raise error
        return a

    cdef object _copied(self, object f, cnp.ndarray x):
        cdef Operand p
        cdef Py_ssize_t k, j, size = cnp.PyArray_SIZE(x)
        cdef double* dots
        if not self._look(&p, x) or p.dots == NULL:
            return None
        z = f(x)
        if not is_new_array(z) or not has_shape(z, x) or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> z):
            return None
        z_dot = self._room_for(z)
        if not self._look(&p, x) or p.dots == NULL:
            raise RuntimeError("a thread has changed the argument meanwhile")
        dots = <double*> cnp.PyArray_DATA(<cnp.ndarray> z_dot)
        for j in range(self.length):
            for k in range(size):
                dots[j * size + k] = p.dots[j * p.step + k]
        return self._noted(z, z_dot)
