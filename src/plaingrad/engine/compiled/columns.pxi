# -- columns: several doubles for each number ---------------------------------------------------------------------------

cdef class Columns:
    """Room for columns of doubles of one length, which are taken and given back one at a time.

    A column stays where it is, and its memory is let go with the object: who still reads one that was given back finds
    numbers that mean nothing, but no memory of others.
    """

    cdef readonly Py_ssize_t length
    cdef Py_ssize_t width  # in memory, at least one for what `give` puts there
    cdef list blocks  # of memory, as integers
    cdef double* free  # a column; in its first place is the address of the next

    def __init__(self, Py_ssize_t length):
        self.length, self.width = length, max(1, length)
        self.blocks = []

    def __dealloc__(self):
        if self.blocks is not None:
            for block in self.blocks:
                PyMem_RawFree(PyLong_AsVoidPtr(block))

    cdef int _add_block(self) except -1:
        cdef Py_ssize_t count = 32 << min(len(self.blocks), 5), k
        cdef double* block
        while count > 1 and count * self.width > 16384:
            count >>= 1
        block = <double*> PyMem_RawMalloc(count * self.width * sizeof(double))
        if block == NULL:
            raise MemoryError
        self.blocks.append(PyLong_FromVoidPtr(block))
        for k in range(count):
            self.give(block + k * self.width)
        return 0

    cdef inline double* take(self) except NULL:
        """A column, whose contents mean nothing."""
        cdef double* column
        if self.free == NULL:
            self._add_block()
        column = self.free
        self.free = (<double**> column)[0]
        return column

    cdef inline void give(self, double* column) noexcept:
        (<double**> column)[0] = self.free
        self.free = column

    cdef object said(self, double* column):
        """A column as an array."""
        cdef cnp.npy_intp n = self.length
        found = cnp.PyArray_EMPTY(1, &n, cnp.NPY_DOUBLE, 0)
        memcpy(cnp.PyArray_DATA(<cnp.ndarray> found), column, n * sizeof(double))
        return found

    cdef int heard(self, double* column, object values) except -1:
        """Put `values`, an array or one number for all places, into a column."""
        cdef Py_ssize_t k
        cdef double x
        cdef cnp.ndarray given
        if PyFloat_CheckExact(values):
            x = PyFloat_AS_DOUBLE(values)
            for k in range(self.length):
                column[k] = x
            return 0
        given = np.ascontiguousarray(values, FLOAT64)
        if cnp.PyArray_SIZE(given) != self.length:
            raise ValueError(f"{cnp.PyArray_SIZE(given)} tangents for a chunk of {self.length}")
        memcpy(column, cnp.PyArray_DATA(given), self.length * sizeof(double))
        return 0
