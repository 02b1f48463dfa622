# -- chunks of tangents -------------------------------------------------------------------------------------------------

cdef Py_ssize_t FEW_BLOCKS = 4  # of columns, which are at most half a megabyte


cdef class ColumnPusher(Arithmetic):
    """Those of a forward level that carries a chunk of tangents: each number has a column of them."""

    cdef Columns columns
    cdef Py_ssize_t length
    cdef double* scratch  # six columns: three for what is needed on the way to a column, three for elements of arrays

    def __init__(self, level):
        super().__init__(level)
        self.length = level.lead[0]
        self.table = Table(True)
        self.columns = self.table.columns = Columns(self.length)
        if self.scratch == NULL:
            self.scratch = <double*> PyMem_RawCalloc(6 * self.length + 1, sizeof(double))
        if self.scratch == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_RawFree(self.scratch)

    @property
    def takes_much(self):
        """Whether there were many numbers: their memory is not to be kept for another derivative."""
        return len(self.columns.blocks) > FEW_BLOCKS

    def file(self, x, x_dot):
        """File the fresh number `x`, a float or NumPy's float64, with its tangents."""
        cdef double* z = self.columns.take()
        try:
            self.columns.heard(z, x_dot)
        except BaseException:
            self.columns.give(z)
            raise
        self._file(x, z)

    cdef object _entered(self, object x):
        self.file(x, 0.0)
        return x

    def seed(self, values, dots):
        """Give the floats in `values`, which are filed, their tangents; False if these are more than arrays and zeros."""
        cdef Place* at
        cdef cnp.npy_intp n = self.length
        for x_dot in dots:
            if x_dot is not None and x_dot is not ZeroTangent:
                if not is_float64(x_dot) or cnp.PyArray_NDIM(<cnp.ndarray> x_dot) != 1 or cnp.PyArray_SIZE(<cnp.ndarray> x_dot) != n:
                    return False
        for x, x_dot in zip(values, dots):
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                self.columns.heard(at.column, x_dot if is_float64(x_dot) else 0.0)
        return True

    cdef int _file(self, object x, double* column) except -1:
        """File the fresh number `x` with a column that was taken for it."""
        cdef Py_ssize_t used
        cdef Place* at
        try:
            self._make_room()
            used = self.table.used
            at = self._filed(x)
        except BaseException:
            self.columns.give(column)
            raise
        if self.table.used == used:
            self.columns.give(at.column)
        at.column = column
        return 0

    cdef double* _two(self, double x, double y, double value, double* a, double* b, int op) except NULL:
        """The tangents of `value`, which is x op y; NULL for one that does not move."""
        cdef double* z = self.columns.take()
        self._put_two(x, y, value, a, b, op, z)
        return z

    cdef void _put_two(self, double x, double y, double value, double* a, double* b, int op, double* z) noexcept:
        """Put them into `z`."""
        dots_of_two(x, y, value, a, b, op, z, self.length)

    cdef void _put_function(self, int known, double x, double value, double slope, double* a, double* z) noexcept:
        """Put those of a function in `SLOPES` of x into `z`."""
        cdef Py_ssize_t k
        for k in range(self.length):
            z[k] = slope * a[k]

    cdef double* _one(self, double* a, double slope) except NULL:
        cdef double* z = self.columns.take()
        cdef Py_ssize_t k
        for k in range(self.length):
            z[k] = slope * a[k]
        return z

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        return self._file(z, self._two(x, y, value, NULL if a == NULL else a.column, NULL if b == NULL else b.column, op))

    cdef int _of_two(self, Item* z, Item* a, Item* b, int op) except -1:
        z.at.column = self._two(
            a.x, b.x, z.x, a.at.column if a.kind == MOVING_NUMBER else NULL, b.at.column if b.kind == MOVING_NUMBER else NULL, op
        )
        return 0

    cdef int _of_one(self, Item* z, Item* a, double slope) except -1:
        z.at.column = self._one(a.at.column, slope)
        return 0

    cdef int _along(self, object z, double slope, Place* a) except -1:
        return self._file(z, self._one(a.column, slope))

    cdef int _note_pair(self, object z, object a, object b, double da, double db) except -1:
        cdef Place* p = self.table.find(<PyObject*> a)
        cdef Place* q = self.table.find(<PyObject*> b)
        cdef double* column
        cdef Py_ssize_t k
        if p == NULL or q == NULL:
            return 0 if p == q else self._along(z, db if p == NULL else da, q if p == NULL else p)
        column = self.columns.take()
        for k in range(self.length):
            column[k] = da * p.column[k] + db * q.column[k]
        return self._file(z, column)

    cdef int _note_sum(self, object z, object values) except -1:
        cdef double* column = NULL
        cdef Place* at
        cdef Py_ssize_t k
        for x in values:
            at = self.table.find(<PyObject*> x)
            if at != NULL and column == NULL:
                column = self.columns.take()
                memcpy(column, at.column, self.length * sizeof(double))
            elif at != NULL:
                for k in range(self.length):
                    column[k] += at.column[k]
        return 0 if column == NULL else self._file(z, column)

    # Elements of arrays

    cdef double* _dots_at(self, object region, cnp.ndarray a, char* p) except? NULL:
        """The tangents of the element of `a` at address `p`, a size of its memory apart; NULL if that is not for here."""
        cdef cnp.ndarray owner, whole
        found = region.dot
        if not is_float64(found):
            return NULL
        owner, whole = <cnp.ndarray> memory_of(a), found
        if not cnp.PyArray_IS_C_CONTIGUOUS(owner) or not cnp.PyArray_IS_C_CONTIGUOUS(whole):
            return NULL
        if cnp.PyArray_SIZE(whole) != self.length * cnp.PyArray_SIZE(owner):
            return NULL
        return <double*> (<char*> cnp.PyArray_DATA(whole) + (p - <char*> cnp.PyArray_DATA(owner)))

    cdef object _read(self, object a, object k):
        cdef char* p
        cdef double* dots
        cdef double* column
        cdef Py_ssize_t j, step
        if not is_basic(k) or not is_float64(a):
            return None
        region = region_of(self.table, a)
        if region is MISSING:
            return None
        p = address_of(a, k)
        if p == NULL or region is None:
            z = PyObject_GetItem(a, k)
            return z if region is None or cnp.PyArray_CheckExact(z) else None
        dots = self._dots_at(region, a, p)
        if dots == NULL:
            return None
        column = self.columns.take()
        step = cnp.PyArray_SIZE(<cnp.ndarray> memory_of(a))
        for j in range(self.length):
            column[j] = dots[j * step]
        try:
            z = cnp.PyArray_ToScalar(p, a)
        except BaseException:
            self.columns.give(column)
            raise
        self._file(z, column)
        return z

    cdef bint _write(self, object v, object a, object k) except -1:
        cdef char* p
        cdef double* dots
        cdef Py_ssize_t j, step
        cdef Place* at
        cdef double value
        if not (PyFloat_CheckExact(v) or type(v) is NUMBER64) or not is_basic(k) or not is_float64(a):
            return False
        region = region_of(self.table, a)
        if region is MISSING or region is None or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a):
            return False
        p = address_of(a, k)
        if p == NULL or not may_write(self.level, region):
            return False
        dots = self._dots_at(region, a, p)
        if dots == NULL:
            return False
        (<double*> p)[0] = PyFloat_AS_DOUBLE(v)
        at = self.table.find(<PyObject*> v)
        step = cnp.PyArray_SIZE(<cnp.ndarray> memory_of(a))
        for j in range(self.length):
            dots[j * step] = 0.0 if at == NULL else at.column[j]
        return True

    cdef object _gathered(self, object z, list numbers):
        """`z`, an array that was made of `numbers`."""
        cdef Py_ssize_t count = len(numbers), j, place = 0
        cdef double* dots
        cdef Place* at
        if not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> z):
            return None
        z_dot = np.empty((self.length, *z.shape))
        dots = <double*> cnp.PyArray_DATA(<cnp.ndarray> z_dot)
        for x in numbers:
            at = self.table.find(<PyObject*> x)
            for j in range(self.length):
                dots[j * count + place] = 0.0 if at == NULL else at.column[j]
            place += 1
        region = self.level.add_region(z)
        region.dot = z_dot
        return z


cdef void dots_of_two(
    double x, double y, double value, double* a, double* b, int op, double* z, Py_ssize_t n
) noexcept:
    """As `dot_of`, of columns."""
    cdef Py_ssize_t k
    if a != NULL and b != NULL:
        if op == ADD:
            for k in range(n):
                z[k] = a[k] + b[k]
        elif op == SUB:
            for k in range(n):
                z[k] = a[k] - b[k]
        elif op == MUL:
            for k in range(n):
                z[k] = a[k] * y + x * b[k]
        else:
            for k in range(n):
                z[k] = (a[k] - value * b[k]) / y
    elif a != NULL:
        if op == MUL:
            for k in range(n):
                z[k] = a[k] * y
        elif op == DIV:
            for k in range(n):
                z[k] = a[k] / y
        else:
            memcpy(z, a, n * sizeof(double))
    elif op == ADD:
        memcpy(z, b, n * sizeof(double))
    elif op == SUB:
        for k in range(n):
            z[k] = -b[k]
    elif op == MUL:
        for k in range(n):
            z[k] = x * b[k]
    else:
        for k in range(n):
            z[k] = -(value * b[k] / y)
