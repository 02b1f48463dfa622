# -- arrays in forward mode ---------------------------------------------------------------------------------------------

cdef enum:
    STILL, ARRAY_DOT, NUMBER_DOT, UNKNOWN  # an operand has no tangent, that of an array or number, or is not for here


cdef struct Dot:
    int kind
    char* data  # where the tangent of an array begins
    PyObject* like  # the array that it is gone through like
    double number


@cython.final
cdef class ArrayPusher(Pusher):
    """Those of a forward level for arrays of float64 that have their memory themselves, or from one that has."""

    cdef list owners
    cdef public double one_by_one, together  # microseconds; see `price_of`

    def __init__(self, level):
        super().__init__(level)
        self.owners = level.arrays

    cpdef renew(self):
        """Begin again, of a level that is used again."""
        Pusher.renew(self)
        self.one_by_one = self.together = 0.0

    cdef object _region(self, cnp.ndarray a):
        """The `Region` of array `a`; None if it has no tangent, `MISSING` if that is not to be said here."""
        return region_of(self.table, a)

    cdef object _look(self, Dot* dot, object x, double* value, bint* is_array):
        """The tangent of an operand, and the value of one that is a number; what must be kept while `dot` is in use."""
        cdef Place* at
        cdef int overflow = 0
        dot.kind = UNKNOWN
        dot.number = 0.0
        is_array[0] = cnp.PyArray_CheckExact(x)
        if is_array[0]:
            if is_float64(x):
                region = self._region(x)
                if region is not MISSING:
                    return self._find(dot, region, x)
        elif PyFloat_CheckExact(x) or type(x) is NUMBER64:
            value[0] = PyFloat_AS_DOUBLE(x)
            at = self.table.find(<PyObject*> x)
            dot.kind = STILL if at == NULL else NUMBER_DOT
            if at != NULL:
                dot.number = at.dot
        elif PyLong_CheckExact(x):
            value[0] = <double> PyLong_AsLongLongAndOverflow(x, &overflow)
            if not overflow:
                dot.kind = STILL
        return None

    cdef object _find(self, Dot* dot, object region, cnp.ndarray x):
        """The tangent of array or view `x` in a region, and the array in which it is."""
        cdef cnp.ndarray whole, owner
        dot.kind = STILL
        if region is None:
            return None
        found = region.dot
        if found is None:
            return None
        dot.kind = UNKNOWN
        if not is_float64(found):
            return None
        whole = found
        if not is_view(x):
            if has_shape(whole, x):
                dot.kind, dot.data, dot.like = ARRAY_DOT, <char*> cnp.PyArray_DATA(whole), <PyObject*> whole
            return whole
        owner = <cnp.ndarray> memory_of(x)
        if not has_shape(whole, owner):
            return whole
        if cnp.PyArray_IS_C_CONTIGUOUS(owner):
            if not cnp.PyArray_IS_C_CONTIGUOUS(whole):
                return whole
        elif not cnp.PyArray_IS_F_CONTIGUOUS(owner) or not cnp.PyArray_IS_F_CONTIGUOUS(whole):
            return whole
        dot.kind, dot.like = ARRAY_DOT, <PyObject*> x
        dot.data = <char*> cnp.PyArray_DATA(whole) + (<char*> cnp.PyArray_DATA(x) - <char*> cnp.PyArray_DATA(owner))
        return whole

    cdef inline void _walk(self, Walk* w, Dot* dot, int nd, cnp.npy_intp* shape) noexcept:
        if dot.kind == NUMBER_DOT:
            stay_at(w, &dot.number, nd)
        else:
            walk_along(w, <cnp.ndarray> dot.like, dot.data, nd, shape)

    cdef int _file_array(self, cnp.ndarray z, cnp.ndarray z_dot) except -1:
        """File a new array with its tangent, which is nobody else's."""
        region = steps.Region((), z_dot)
        self.owners.append(z)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> z)] = region
        self.array_bytes += cnp.PyArray_NBYTES(z) + 1000
        if self.array_bytes > self.array_limit:
            sweep_owners(self, self.owners)
        return 0

    cdef object seeded(self, cnp.ndarray x, cnp.ndarray x_dot):
        """The region of `x`, an argument that was made fresh, with a copy of `x_dot` as its tangent."""
        cdef cnp.ndarray dot = cnp.PyArray_NewCopy(x, cnp.NPY_KEEPORDER)
        cnp.PyArray_CopyInto(dot, x_dot)
        region = steps.Region((), dot)
        self.owners.append(x)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> x)] = region
        self.array_bytes += 2 * cnp.PyArray_NBYTES(x) + 1000
        return region

    cdef object _noted(self, object z, object z_dot):
        """`z`, a new array or number with tangent `z_dot`; None if it is neither."""
        if type(z) is NUMBER64:
            self._file(z, real(z_dot))
        elif is_new_array(z) and is_new_array(z_dot):
            self._file_array(z, z_dot)
        else:
            return None
        return z

    def copied(self, x):
        """A copy of array `x` with its tangent; None where that is not done here."""
        if not is_float64(x):
            return None
        region = self._region(x)
        if region is MISSING:
            return None
        x_dot = self._dot_of(region, x)
        if x_dot is not None and not is_float64(x_dot):
            return None
        z = cnp.PyArray_NewCopy(x, cnp.NPY_KEEPORDER)
        if x_dot is not None:
            self._file_array(z, cnp.PyArray_NewCopy(x_dot, cnp.NPY_KEEPORDER))
        return z

    # Complex numbers, whose tangents are objects

    cdef object _complex_dot(self, object x):
        """The tangent of a number; None if it has none."""
        cdef Place* at = self.table.find(<PyObject*> x)
        cdef PyObject* found
        if at != NULL:
            return PyFloat_FromDouble(at.dot)
        found = PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> x))
        return None if found == NULL else <object> found

    cdef int _file_complex(self, object z, object z_dot) except -1:
        cdef list alive = self.level.alive
        alive.append(z)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> z)] = z_dot
        if len(alive) & 4095 == 0:
            self.level._sweep_numbers()
        return 0

    cdef object _complex(self, object a, object b, int op):
        """a op b where one is a complex number; None where that is not done here."""
        if not (is_real(a) or PyComplex_CheckExact(a)) or not (is_real(b) or PyComplex_CheckExact(b)):
            return None
        z = whole(a, b, op)
        if not PyComplex_CheckExact(z):
            return None
        a_dot = self._complex_dot(a)
        b_dot = self._complex_dot(b)
        if a_dot is None and b_dot is None:
            return z
        if b_dot is None:
            z_dot = a_dot * b if op == MUL else a_dot / b if op == DIV else a_dot
        elif a_dot is None:
            z_dot = b_dot if op == ADD else -b_dot if op == SUB else a * b_dot if op == MUL else -(z * b_dot / b)
        elif op == ADD:
            z_dot = a_dot + b_dot
        elif op == SUB:
            z_dot = a_dot - b_dot
        elif op == MUL:
            z_dot = a_dot * b + a * b_dot
        else:
            z_dot = (a_dot - z * b_dot) / b
        self._file_complex(z, complex(z_dot))
        return z

    cdef object _complex_power(self, object a, object b):
        """a ** b of a complex number and a whole one; None where that is not done here."""
        if not 1 <= b <= 100:
            return None
        z = PyNumber_Power(a, b, None)
        a_dot = self._complex_dot(a)
        if a_dot is not None:
            self._file_complex(z, complex(b * PyNumber_Power(a, b - 1, None) * a_dot))
        return z

    cdef object _composed(self, object re, object im):
        if not self.own_numbers:
            return None
        z = PyComplex_FromDoubles(real(re), real(im))
        re_dot, im_dot = self._complex_dot(re), self._complex_dot(im)
        if re_dot is not None or im_dot is not None:
            self._file_complex(
                z, PyComplex_FromDoubles(0.0 if re_dot is None else re_dot, 0.0 if im_dot is None else im_dot)
            )
        return z

    cdef object _part(self, object x, object name):
        cdef bint is_real_part = name == "real"
        if not self.own_numbers or not (is_real_part or name == "imag"):
            return None
        x_dot = self._complex_dot(x)
        if x_dot is None:
            return None
        z = PyFloat_FromDouble(PyComplex_RealAsDouble(x) if is_real_part else PyComplex_ImagAsDouble(x))
        self._file(z, real_part(x_dot) if is_real_part else imaginary_part(x_dot))
        return z

    cdef object _absolute(self, object x):
        cdef double w, re, im
        if not self.own_numbers:
            return None
        x_dot = self._complex_dot(x)
        if x_dot is None:
            return None
        z = abs(x)
        w = PyFloat_AS_DOUBLE(z)
        if not isfinite(w) or w < 1e-300:
            return None
        re, im = PyComplex_RealAsDouble(x) / w, PyComplex_ImagAsDouble(x) / w
        self._file(z, re * real_part(x_dot) + im * imaginary_part(x_dot))
        return z

    # Operators

    cdef object _arrays(self, object a, object b, int op, bint in_place):
        cdef double x = 0.0, y = 0.0
        cdef bint is_a = False, is_b = False, fresh = True
        cdef Dot da, db
        cdef cnp.ndarray z_dot
        cdef int nd
        cdef cnp.npy_intp* shape
        cdef Walk d, wa, wb, by
        if not self.own_arrays:
            return None
        keep_a = self._look(&da, a, &x, &is_a)
        if da.kind == UNKNOWN:
            return None
        keep_b = self._look(&db, b, &y, &is_b)
        if db.kind == UNKNOWN:
            return None
        if in_place and is_a:
            return self._in_place(a, b, &da, &db, is_b, y, op)
        if not ((is_a and cnp.PyArray_NDIM(<cnp.ndarray> a) > 0) or (is_b and cnp.PyArray_NDIM(<cnp.ndarray> b) > 0)):
            return None
        if da.kind == STILL and db.kind == STILL:
            return whole(a, b, op)
        if (is_a and cnp.PyArray_SIZE(<cnp.ndarray> a) > SMALL) or (is_b and cnp.PyArray_SIZE(<cnp.ndarray> b) > SMALL):
            return None
        z = whole(a, b, op)
        if not is_new_array(z):
            return None
        nd, shape = cnp.PyArray_NDIM(<cnp.ndarray> z), cnp.PyArray_DIMS(<cnp.ndarray> z)
        z_dot = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)
        walk_along(&d, z_dot, <char*> cnp.PyArray_DATA(z_dot), nd, shape)
        if da.kind != STILL:
            self._walk(&wa, &da, nd, shape)
            if op == MUL or (op == DIV and db.kind == STILL):
                if is_b:
                    walk_along(&by, b, <char*> cnp.PyArray_DATA(<cnp.ndarray> b), nd, shape)
                else:
                    stay_at(&by, &y, nd)
                accumulate(TIMES if op == MUL else OVER, True, nd, shape, &d, &wa, &by, NULL, 0.0)
            else:
                accumulate(PLUS, True, nd, shape, &d, &wa, NULL, NULL, 0.0)
            fresh = False
        if db.kind != STILL:
            self._walk(&wb, &db, nd, shape)
            if op == MUL:
                if is_a:
                    walk_along(&by, a, <char*> cnp.PyArray_DATA(<cnp.ndarray> a), nd, shape)
                else:
                    stay_at(&by, &x, nd)
                accumulate(TIMES, fresh, nd, shape, &d, &wb, &by, NULL, 0.0)
            elif op == DIV:
                walk_along(&by, z, <char*> cnp.PyArray_DATA(<cnp.ndarray> z), nd, shape)
                accumulate(NEGATIVE_TIMES, fresh, nd, shape, &d, &wb, &by, NULL, 0.0)
                if is_b:
                    walk_along(&by, b, <char*> cnp.PyArray_DATA(<cnp.ndarray> b), nd, shape)
                else:
                    stay_at(&by, &y, nd)
                accumulate(OVER, True, nd, shape, &d, &d, &by, NULL, 0.0)
            else:
                accumulate(PLUS if op == ADD else MINUS, fresh, nd, shape, &d, &wb, NULL, NULL, 0.0)
        self._file_array(z, z_dot)
        return z

    cdef object _in_place(self, cnp.ndarray a, object b, Dot* da, Dot* db, bint is_b, double y, int op):
        """a op= b; None where more is to be done."""
        cdef int nd = cnp.PyArray_NDIM(a)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(a)
        cdef Walk d, w
        if da.kind == STILL and db.kind != STILL and moving_memory(self, a) is not None:
            return self._arrays(a, b, op, True)
        if da.kind != ARRAY_DOT or cnp.PyArray_SIZE(a) > SMALL:
            return None
        if op >= MUL and (is_b or db.kind != STILL):
            return multiplied_in_forward(self, a, b, da, db, is_b, y, op)
        if is_b and memory_of(b) == memory_of(a):
            return None
        if not self._may_write(self._region(a)):
            return None
        z = error = None
        try:
            z = changed_in_place(a, b, op)
        except FloatingPointError as raised:  # of `np.errstate`: the memory has been written
            error = raised
        walk_along(&d, <cnp.ndarray> da.like, da.data, nd, shape)
        if op >= MUL:
            accumulate(SCALED, True, nd, shape, &d, &d, NULL, NULL, 1.0 / y if op == DIV else y)
        elif db.kind != STILL:
            self._walk(&w, db, nd, shape)
            accumulate(PLUS if op == ADD else MINUS, False, nd, shape, &d, &w, NULL, NULL, 0.0)
        if error is not None:
            raise error
        return z

    cdef bint _may_write(self, object region) except -1:
        """Whether a write to memory with a tangent is seen by no other name."""
        return may_write(self.level, region)

    cdef object _elementwise(self, object f, object x, int slope, object partial, int reads=READS_BOTH):
        """f(x), elementwise in an array; None where that is not done here."""
        cdef Dot dx
        keep = self._dot_before(&dx, x)
        return None if dx.kind != ARRAY_DOT else self._noted_of(f(x), x, &dx, slope, partial)

    cdef object _dot_before(self, Dot* dx, object x):
        """The tangent of array `x`, if a function of it is for here; what must be kept while `dx` is in use."""
        cdef double number
        cdef bint is_array
        dx.kind = UNKNOWN
        if not is_float64(x) or not 0 < cnp.PyArray_SIZE(<cnp.ndarray> x) <= SMALL:
            return None
        if cnp.PyArray_NDIM(<cnp.ndarray> x) == 0:
            return None
        return self._look(dx, x, &number, &is_array)

    cdef object _noted_of(self, object z, object x, Dot* dx, int slope, object partial):
        """`z`, elementwise a function of array `x`, with its tangent; None where that is not done here."""
        cdef int nd, kind = slope
        cdef cnp.npy_intp* shape
        cdef cnp.ndarray z_dot
        cdef Walk d, w, by
        if not is_new_array(z) or not has_shape(z, x):
            return None
        nd, shape = cnp.PyArray_NDIM(<cnp.ndarray> z), cnp.PyArray_DIMS(<cnp.ndarray> z)
        factor = x
        if slope == BY_RESULT or slope == SIGMOIDAL or slope == ROOT:
            factor = z
            kind = TIMES if slope == BY_RESULT else slope
        elif slope == TIMES:
            factor = steps.quiet_slope(partial, x, z)
            if not is_float64(factor) or not has_shape(factor, z):
                return None
        z_dot = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)
        walk_along(&d, z_dot, <char*> cnp.PyArray_DATA(z_dot), nd, shape)
        self._walk(&w, dx, nd, shape)
        walk_along(&by, factor, <char*> cnp.PyArray_DATA(<cnp.ndarray> factor), nd, shape)
        accumulate(kind, True, nd, shape, &d, &w, &by, NULL, 0.0)
        self._file_array(z, z_dot)
        return z

    cdef object _powered(self, object a, object b):
        cdef Dot dx
        if PyLong_CheckExact(b) and b == 2:
            return self._square(a)
        if not self.own_arrays or self.table.find(<PyObject*> b) != NULL:
            return None
        keep = self._dot_before(&dx, a)
        if dx.kind != ARRAY_DOT:
            return None
        return self._noted_of(PyNumber_Power(a, b, None), a, &dx, TIMES, steps.PowerSlope(b))

    cdef object _copied(self, object f, cnp.ndarray x):
        region = self._region(x)
        if region is MISSING:
            return None
        x_dot = self._dot_of(region, x)
        if x_dot is None:
            return f(x)
        return self._noted(f(x), f(x_dot))

    cdef object _crossed(self, object f, cnp.ndarray a, cnp.ndarray b):
        cdef cnp.ndarray z_dot = None
        region_a = self._region(a)
        region_b = self._region(b)
        if region_a is MISSING or region_b is MISSING:
            return None
        a_dot = self._dot_of(region_a, a)
        b_dot = self._dot_of(region_b, b)
        if (a_dot is None and b_dot is None) or not (is_float64_or_none(a_dot) and is_float64_or_none(b_dot)):
            return None
        z = f(a, b)
        owner = all_of(z)
        if owner is None or PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> owner)) != NULL:
            return None
        if a_dot is not None:
            z_dot = cross_of(a_dot, b, None)
        if b_dot is not None:
            z_dot = cross_of(a, b_dot, z_dot)
        self._file_array(owner, z_dot)
        return z

    # Items

    cdef object _read(self, object a, object k):
        """a[k], of an array; None where that is not done here."""
        cdef Dot da
        cdef char* p
        cdef cnp.ndarray owner
        cdef double z_dot
        if not is_float64(a):
            return None
        region = self._region(a)
        if region is MISSING:
            return None
        if not is_basic(k):
            return None if region is None else chosen_in_forward(self, a, region, k)
        p = address_of(a, k)
        if p == NULL or region is None:
            z = PyObject_GetItem(a, k)
            return z if region is None or cnp.PyArray_CheckExact(z) else None
        keep = self._find(&da, region, a)
        if da.kind != ARRAY_DOT or not same_steps(<cnp.ndarray> da.like, a):
            return None
        z_dot = element(da.data + (p - <char*> cnp.PyArray_DATA(<cnp.ndarray> a)))
        z = cnp.PyArray_ToScalar(p, a)
        self._file(z, z_dot)
        return z

    cdef bint _write(self, object v, object a, object k) except -1:
        """a[k] = v, of an array; False where that is not done here."""
        cdef Dot da, dv
        cdef double value
        cdef bint is_array
        cdef char* p
        cdef cnp.ndarray target
        cdef int nd
        cdef cnp.npy_intp* shape
        cdef Walk d, w
        if not is_float64(a) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a):
            return False
        region = self._region(a)
        if region is None:
            keep_v = self._look(&dv, v, &value, &is_array)
            if dv.kind == UNKNOWN or self.truncated:
                return False
            if dv.kind == STILL:
                PyObject_SetItem(a, k, v)
                return True
            region = moving_memory(self, a)
        if region is MISSING or region is None or not self._may_write(region):
            return False
        keep = self._find(&da, region, a)
        if da.kind != ARRAY_DOT or not same_steps(<cnp.ndarray> da.like, a):
            return False
        if not is_basic(k):
            return written_in_forward(self, v, a, &da, keep, k)
        keep_v = self._look(&dv, v, &value, &is_array)
        if dv.kind == UNKNOWN:
            return False
        p = NULL if is_array else address_of(a, k)
        if p != NULL:
            (<double*> p)[0] = value
            (<double*> (da.data + (p - <char*> cnp.PyArray_DATA(<cnp.ndarray> a))))[0] = dv.number
            return True
        found = PyObject_GetItem(a, k)
        if not is_float64(found) or cnp.PyArray_SIZE(<cnp.ndarray> found) > SMALL:
            return False
        target = found
        if is_array and memory_of(v) == memory_of(a):
            if cnp.PyArray_DATA(<cnp.ndarray> v) != cnp.PyArray_DATA(target) or not has_shape(v, target):
                return False
            if not has_strides(v, target):
                return False
            PyObject_SetItem(a, k, v)  # a[k] op= x puts back what is there
            return True
        PyObject_SetItem(a, k, v)
        nd, shape = cnp.PyArray_NDIM(target), cnp.PyArray_DIMS(target)
        walk_along(
            &d, target, da.data + (<char*> cnp.PyArray_DATA(target) - <char*> cnp.PyArray_DATA(<cnp.ndarray> a)), nd, shape
        )
        if dv.kind == STILL:
            accumulate(ZERO, True, nd, shape, &d, &d, NULL, NULL, 0.0)
        else:
            self._walk(&w, &dv, nd, shape)
            accumulate(PLUS, True, nd, shape, &d, &w, NULL, NULL, 0.0)
        return True

    # Functions

    cdef object _dot_of(self, object region, cnp.ndarray x):
        """The tangent of `x` as an array; None for zero."""
        cdef Dot dot
        if region is None:
            return None
        if not is_view(x):
            return region.dot
        keep = self._find(&dot, region, x)
        return None if dot.kind == STILL else part_of(keep, x, dot.data) if dot.kind == ARRAY_DOT else region.read(x)

    cdef object _product(self, object f, object a, object b):
        """The matrix product of two arrays; None where that is not done here."""
        if not is_float64(a) or not is_float64(b):
            return None
        if not 1 <= cnp.PyArray_NDIM(<cnp.ndarray> a) <= 2 or not 1 <= cnp.PyArray_NDIM(<cnp.ndarray> b) <= 2:
            return None
        region_a = self._region(a)
        region_b = self._region(b)
        if region_a is MISSING or region_b is MISSING:
            return None
        a_dot = self._dot_of(region_a, a)
        b_dot = self._dot_of(region_b, b)
        if a_dot is None and b_dot is None:
            return None
        z = f(a, b)
        with steps.quiet():
            if b_dot is None:
                z_dot = f(a_dot, b)
            elif a_dot is None:
                z_dot = f(a, b_dot)
            else:
                z_dot = f(a_dot, b) + f(a, b_dot)
        return self._noted(z, z_dot)

    cdef object _sum(self, object f, cnp.ndarray x, object axis, bint is_mean, bint keeps):
        """The sum or mean of an array over one axis, or all (None); None where that is not done here."""
        region = self._region(x)
        if region is MISSING or region is None:
            return None
        x_dot = self._dot_of(region, x)
        if x_dot is None:
            return None
        z = sum_of(f, x, axis, is_mean, keeps)
        with steps.quiet():
            z_dot = sum_of(f, x_dot, axis, is_mean, keeps)
        return self._noted(z, z_dot)

    cdef object _gathered(self, object z, list numbers):
        """`z`, an array that was made of `numbers`."""
        cdef cnp.ndarray z_dot
        cdef double* p
        cdef Place* at
        z_dot = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(<cnp.ndarray> z), cnp.PyArray_DIMS(<cnp.ndarray> z), cnp.NPY_DOUBLE, 0)
        p = <double*> cnp.PyArray_DATA(z_dot)
        for x in numbers:
            at = self.table.find(<PyObject*> x)
            p[0] = 0.0 if at == NULL else at.dot
            p += 1
        self._file_array(z, z_dot)
        return z


cdef inline bint same_steps(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether an element is at the same distance from the first in both: tangents may have another layout."""
    return a is b or (has_shape(a, b) and has_strides(a, b))
