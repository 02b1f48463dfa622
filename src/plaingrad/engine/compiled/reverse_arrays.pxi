# -- arrays in reverse mode ----------------------------------------------------------------------------------------------------------

cdef int64_t ELSEWHERE = -2, INACTIVE = -1


cdef class ArrayRecorder(Recorder):
    """Those of a reverse level for arrays of float64 that have their memory themselves, or from one that has."""

    cdef dict captured
    cdef list owners
    cdef int64_t last_layout
    cdef dict forms  # (shape, whether in Fortran's order) -> an array of that layout, whose elements mean nothing

    def __init__(self, level):
        super().__init__(level)
        self.captured = level.captured
        self.owners = level.arrays
        self.last_layout = -1
        self.forms = {}

    cdef object _form(self, object x):
        """What stands for an operand that the way back only looks for the place of: `x`, if it takes little memory.

        Else the same place in another array of the same layout, so that the memory of `x` may be given back.
        """
        cdef cnp.ndarray a, owner, form
        cdef PyObject* found
        cdef bint in_order
        if self.outer is not None or not is_float64(x):
            return x
        a = x
        found = memory_of(a)
        if found == NULL or cnp.PyArray_NBYTES(<cnp.ndarray> found) < LARGE_FORM:
            return x
        owner = <cnp.ndarray> found
        in_order = cnp.PyArray_IS_C_CONTIGUOUS(owner)
        if not in_order and not cnp.PyArray_IS_F_CONTIGUOUS(owner):
            return x
        key = (<object> owner).shape, in_order
        found = PyDict_GetItemWithError(self.forms, key)
        if found == NULL:
            form = cnp.PyArray_EMPTY(
                cnp.PyArray_NDIM(owner), cnp.PyArray_DIMS(owner), cnp.NPY_DOUBLE, 0 if in_order else 1
            )
            self.forms[key] = form
        else:
            form = <cnp.ndarray> found
        if a is owner:
            return form
        view = cnp.PyArray_New(
            NDARRAY, cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.NPY_DOUBLE, cnp.PyArray_STRIDES(a),
            <char*> cnp.PyArray_DATA(form) + (<char*> cnp.PyArray_DATA(a) - <char*> cnp.PyArray_DATA(owner)),
            0, cnp.NPY_ARRAY_ALIGNED | cnp.NPY_ARRAY_WRITEABLE, None,
        )
        cnp.set_array_base(view, form)
        return view

    def form(self, x):
        """As `_form`, of anything."""
        return self._form(x)

    cpdef renew(self):
        """Begin again, of a level that is used again."""
        Recorder.renew(self)
        self.tape.clear()
        self.forms.clear()
        self.last_layout = -1

    cdef int64_t _place(self, cnp.ndarray a) except? -9:
        """The region of array `a`, `INACTIVE`, or `ELSEWHERE` if that is not to be said here."""
        cdef PyObject* owner = memory_of(a)
        cdef PyObject* found
        cdef int64_t i
        if owner == NULL:
            return ELSEWHERE
        found = PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> owner))
        if found == NULL:
            return INACTIVE
        i = <object> found
        return i if i >= 0 else ELSEWHERE

    cdef int64_t _operand(self, object x, double* value, bint* is_array) except? -9:
        """As `_place`, of an operand, whose value is told if it is a number."""
        cdef Place* at
        cdef int overflow = 0
        is_array[0] = cnp.PyArray_CheckExact(x)
        if is_array[0]:
            return self._place(x) if is_float64(x) else ELSEWHERE
        if PyFloat_CheckExact(x) or type(x) is NUMBER64:
            value[0] = PyFloat_AS_DOUBLE(x)
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                return at.index
            return ELSEWHERE if self._moves_outside(x) else INACTIVE  # a step would hold its value only
        if not PyLong_CheckExact(x):
            return ELSEWHERE
        value[0] = <double> PyLong_AsLongLongAndOverflow(x, &overflow)
        return ELSEWHERE if overflow else INACTIVE

    cdef int _capture(self, object x) except -1:
        """The way back will read array `x`."""
        cdef PyObject* owner = memory_of(x)
        self.captured[PyLong_FromVoidPtr(<void*> owner)] = <object> owner
        return 0

    cdef int64_t _add_region(self, object owner, int64_t size) except -1:
        """File the memory that `owner` holds, so many bytes, as active; its index."""
        self.n += 1
        self.owners.append(owner)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> owner)] = self.n
        self.array_bytes += size + 100
        return self.n

    cdef int _settle(self) except -1:
        """Let arrays go that nothing else refers to, if it is time; other threads may run meanwhile."""
        if self.array_bytes > self.array_limit:
            sweep_owners(self, self.owners)
        return 0

    def add_region(self, owner):
        """File the memory that `owner` holds as active; its index."""
        cdef int64_t n = self._add_region(owner, getattr(owner, "nbytes", 64))
        self._settle()
        return n

    cdef int _push(self, ArrayStep step) except -1:
        self.tape.objects.append(step)
        return self.tape.push(-1, ARRAY, <double> (len(self.tape.objects) - 1))

    # What the operation itself is, which a forward level around this one sees

    cdef inline object _primal(self, object a, object b, int op):
        return whole(a, b, op) if self.outer is None else self.outer._binary(a, b, op, False)

    cdef inline object _called(self, object f, object x, object y):
        """f(x), or f(x, y) if `y` is not MISSING."""
        if self.outer is not None:
            f = self.level.parent.prep(f)
        return f(x) if y is MISSING else f(x, y)

    cdef inline object _item(self, object a, object k):
        if self.outer is None:
            return PyObject_GetItem(a, k)
        z = self.outer._read(a, k)
        return self.level.parent.getitem(a, k) if z is None else z

    cdef inline int _set_item(self, object v, object a, object k) except -1:
        if self.outer is None:
            return PyObject_SetItem(a, k, v)
        if not self.outer._write(v, a, k):
            self.level.parent.setitem(v, a, k)
        return 0

    # Operators

    cdef object _arrays(self, object a, object b, int op, bint in_place):
        cdef double x = 0.0, y = 0.0
        cdef bint is_a = False, is_b = False, all_whole
        cdef int64_t i, j
        cdef ArrayStep step
        if not self.own_arrays:
            return None
        i = self._operand(a, &x, &is_a)
        if i == ELSEWHERE:
            return None
        j = self._operand(b, &y, &is_b)
        if j == ELSEWHERE:
            return None
        if in_place and is_a:
            return self._in_place(a, b, i, j, is_b, y, op)
        if not ((is_a and cnp.PyArray_NDIM(<cnp.ndarray> a) > 0) or (is_b and cnp.PyArray_NDIM(<cnp.ndarray> b) > 0)):
            return None
        z = self._primal(a, b, op)
        if i < 0 and j < 0:
            return z
        if not is_new_array(z):
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j = op, i, j
        step.c = y if is_a and not is_b else x
        if op == ADD or op == SUB:
            all_whole = (i < 0 or self._is_whole(a, is_a, z)) and (j < 0 or self._is_whole(b, is_b, z))
            if not all_whole:
                step.a = self._form(a) if i >= 0 else None
                step.b = self._form(b) if j >= 0 else None
        else:
            if i >= 0 and not self._is_whole(a, is_a, z):
                step.a = self._form(a)
            if j >= 0 and not self._is_whole(b, is_b, z):
                step.b = self._form(b)
            if is_b and (i >= 0 or op == DIV):
                step.b = b
                self._capture(b)
            if is_a and j >= 0 and op == MUL:
                step.a = a
                self._capture(a)
            if op == DIV and j >= 0:
                step.z = z
        step.n = self._add_region(z, cnp.PyArray_NBYTES(<cnp.ndarray> z))
        if step.z is not None:
            self._capture(z)
        self._push(step)
        self._settle()
        return z

    cdef inline bint _is_whole(self, object x, bint is_array, object z):
        """Whether an operand is an array, all of its memory, of the shape of `z`: the way back needs no more of it."""
        return is_array and not is_view(x) and has_shape(x, z)

    cdef object _in_place(self, cnp.ndarray a, object b, int64_t i, int64_t j, bint is_b, double y, int op):
        """a op= b; None where more is to be done."""
        if i == INACTIVE:
            i = activated(self, a, j, b)
            if i < 0:
                return None
        if op >= MUL and (is_b or j >= 0):
            return multiplied(self, a, b, i, j, is_b, y, op)
        if is_b and memory_of(b) == memory_of(a):
            return None
        if not self._may_write(i):
            return None
        save = self._save(a, Ellipsis)
        try:
            z = changed_in_place(a, b, op) if self.outer is None else self.outer._binary(a, b, op, True)
        except FloatingPointError:  # of `np.errstate`: the memory has been written
            self._note_change(a, b, i, j, y, op, save)
            raise
        self._note_change(a, b, i, j, y, op, save)
        return z

    cdef int _note_change(self, cnp.ndarray a, object b, int64_t i, int64_t j, double y, int op, object save) except -1:
        """Put a op= b on the tape, and behind it what it has overwritten."""
        cdef ArrayStep step
        if op >= MUL or j >= 0:
            step = ArrayStep.__new__(ArrayStep)
            step.op = SCALED_BY if op >= MUL else ADDED_TO
            step.slope = SCALED if op >= MUL else MINUS if op == SUB else PLUS
            step.i, step.j, step.a, step.b, step.c = i, j, a, self._form(b), 1.0 / y if op == DIV else y
            self._push(step)
        if save is not None:
            self.level._saved(save)
        return 0

    cdef bint _may_write(self, int64_t i) except -1:
        """Whether a write to region `i` is seen by no other name."""
        cdef dict fresh = self.level.fresh
        twin = fresh.get(i) if fresh else None
        return twin is None or twin.written

    cdef object _save(self, cnp.ndarray a, object k):
        """What a write to a[k] will overwrite, if the way back reads it."""
        cdef PyObject* owner = memory_of(a)
        if PyDict_GetItemWithError(self.captured, PyLong_FromVoidPtr(<void*> owner)) == NULL:
            return None
        return self.level._save(a, k)

    cdef object _elementwise(self, object f, object x, int slope, object partial, int reads=READS_BOTH):
        """f(x) of an active array; None where more is to be done."""
        cdef int64_t i
        if not is_float64(x) or cnp.PyArray_NDIM(<cnp.ndarray> x) == 0:
            return None
        i = self._place(x)
        if i < 0:
            return None
        z = None if self.outer is None else self.outer._elementwise(f, x, slope, partial)
        if z is None:
            z = self._called(f, x, MISSING)
        return self._noted_of(z, x, i, slope, partial, reads)

    cdef object _noted_of(self, object z, object x, int64_t i, int slope, object partial, int reads=READS_BOTH):
        """`z`, elementwise a function of array `x` of region `i`; None where more is to be done.

        `reads`: what `partial` does, if the slope is computed by it.
        """
        cdef ArrayStep step
        if self.outer is not None:
            reads = READS_BOTH
        if not is_new_array(z) or not has_shape(z, x):
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.slope, step.i, step.j, step.more = UNARY, slope, i, -1, partial
        if slope == BY_RESULT:
            step.slope, step.c = TIMES, 1.0
        if slope == BY_RESULT or slope == SIGMOIDAL or slope == ROOT or (slope == TIMES and reads & READS_RESULT):
            step.z = z
        if (slope == TIMES and reads & READS_ARGUMENT) or slope == LOGARITHM or slope == SQUARED:
            step.a = x
            self._capture(x)
        elif is_view(x):
            step.a = self._form(x)
        step.n = self._add_region(z, cnp.PyArray_NBYTES(<cnp.ndarray> z))
        if step.z is not None:
            self._capture(z)
        self._push(step)
        self._settle()
        return z

    cdef object _powered(self, object a, object b):
        cdef int64_t i
        if PyLong_CheckExact(b) and b == 2:
            return self._square(a)
        if not self.own_arrays or self.table.find(<PyObject*> b) != NULL or self._moves_outside(b):
            return None
        if not is_float64(a) or cnp.PyArray_NDIM(<cnp.ndarray> a) == 0:
            return None
        i = self._place(a)
        if i < 0:
            return None
        z = PyNumber_Power(a, b, None) if self.outer is None else self.outer._power(a, b, False)
        return self._noted_of(z, a, i, TIMES, steps.PowerSlope(b))

    cdef object _copied(self, object f, cnp.ndarray x):
        cdef int64_t i = self._place(x)
        cdef ArrayStep step
        if i == ELSEWHERE:
            return None
        z = None if self.outer is None else self.outer._copied(f, x)
        if z is None:
            z = self._called(f, x, MISSING)
        if i < 0:
            return z
        if not is_new_array(z) or not has_shape(z, x):
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j = ADD, i, -1
        if is_view(x):
            step.a = self._form(x)
        return self._noted(step, z)

    cdef object _crossed(self, object f, cnp.ndarray a, cnp.ndarray b):
        cdef int64_t i = self._place(a), j = self._place(b)
        cdef ArrayStep step
        if i == ELSEWHERE or j == ELSEWHERE or (i < 0 and j < 0):
            return None
        z = None if self.outer is None else self.outer._crossed(f, a, b)
        if z is None:
            z = self._called(f, a, b)
        owner = all_of(z)  # NumPy gives a view
        if owner is None or PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> owner)) != NULL:
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j, step.a, step.b = CROSS, i, j, a, b
        if j >= 0:
            self._capture(a)
        if i >= 0:
            self._capture(b)
        step.n = self._add_region(owner, 24)
        self._push(step)
        self._settle()
        return z

    # Items

    cdef object _read(self, object a, object k):
        """a[k]; None where more is to be done."""
        cdef int64_t i
        cdef char* p
        cdef Place* at
        cdef PyObject* owner
        if not is_float64(a):
            return None
        i = self._place(a)
        if i == ELSEWHERE:
            return None
        if not is_basic(k):
            return None if i == INACTIVE else chosen_in_reverse(self, a, i, k)
        p = address_of(a, k) if i >= 0 else NULL
        if p == NULL:
            z = self._item(a, k)
            return z if i == INACTIVE or cnp.PyArray_CheckExact(z) else None
        owner = memory_of(a)
        if not self._has_layout(i, <cnp.ndarray> owner):
            return None
        self._make_room()  # first: what is read is noted before another thread may write there
        z = cnp.PyArray_ToScalar(p, a) if self.outer is None else self._item(a, k)
        at = self._filed(z)
        at.index = self.n
        self.tape.push_element(at.index, READ, i, (p - <char*> cnp.PyArray_DATA(<cnp.ndarray> owner)) >> 3)
        return z

    cdef bint _has_layout(self, int64_t i, cnp.ndarray owner) except -1:
        """See to it that the tape knows the layout of region `i`; False where it is too big, or has gaps."""
        cdef bint in_order = cnp.PyArray_IS_C_CONTIGUOUS(owner)
        if self.last_layout == i:
            return True
        if cnp.PyArray_SIZE(owner) > 0x7FFFFFFF or not (in_order or cnp.PyArray_IS_F_CONTIGUOUS(owner)):
            return False
        index = i
        if PyDict_GetItemWithError(self.tape.layouts, index) == NULL:
            self.tape.layouts[index] = cnp.PyArray_EMPTY(
                cnp.PyArray_NDIM(owner), cnp.PyArray_DIMS(owner), cnp.NPY_DOUBLE, 0 if in_order else 1
            )
        self.last_layout = i
        return True

    cdef bint _write(self, object v, object a, object k) except -1:
        """a[k] = v; False where more is to be done."""
        cdef int64_t i
        cdef char* p
        cdef Place* j
        cdef int64_t at
        cdef double j_value
        cdef bint is_array
        cdef PyObject* owner
        if not is_float64(a) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a):
            return False
        i = self._place(a)
        if i == ELSEWHERE:
            return False
        if i == INACTIVE:
            j_value = 0.0
            at = self._operand(v, &j_value, &is_array)
            if at == ELSEWHERE:
                return False
            i = activated(self, a, at, v)
            if i == INACTIVE:
                return write_of_still(self, v, a, k)
        if not self._may_write(i):
            return False
        if not is_basic(k):
            return written_by_choice(self, v, a, i, k)
        p = address_of(a, k) if PyFloat_CheckExact(v) or type(v) is NUMBER64 else NULL
        if p == NULL:
            return self._write_slice(v, a, k, i)
        owner = memory_of(a)
        if PyDict_GetItemWithError(self.captured, PyLong_FromVoidPtr(<void*> owner)) != NULL:
            return False
        if not self._has_layout(i, <cnp.ndarray> owner):
            return False
        if self.outer is None:
            (<double*> p)[0] = PyFloat_AS_DOUBLE(v)
        else:
            self._set_item(v, a, k)
        j = self.table.find(<PyObject*> v)
        at = -1 if j == NULL else j.index
        self.tape.push_element(at, WRITE, i, (p - <char*> cnp.PyArray_DATA(<cnp.ndarray> owner)) >> 3)
        return True

    cdef bint _write_slice(self, object v, cnp.ndarray a, object k, int64_t i) except -1:
        cdef double x = 0.0
        cdef bint is_array = False
        cdef int64_t j = self._operand(v, &x, &is_array)
        cdef cnp.ndarray target
        cdef ArrayStep step
        if j == ELSEWHERE:
            return False
        found = PyObject_GetItem(a, k)
        if not is_float64(found):
            return False
        target = found
        if is_array and memory_of(v) == memory_of(a):
            if cnp.PyArray_DATA(<cnp.ndarray> v) != cnp.PyArray_DATA(target) or not has_shape(v, target):
                return False
            if not has_strides(v, target):
                return False
            self._set_item(v, a, k)  # a[k] op= x puts back what is there
            return True
        save = self._save(a, k)
        self._set_item(v, a, k)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.slope, step.i, step.j, step.a = WRITTEN, PLUS, i, j, target
        if j >= 0:
            step.b = self._form(v)
        self._push(step)
        if save is not None:
            self.level._saved(save)
        return True

    # Functions

    cdef object _noted(self, ArrayStep step, object z):
        """`z`, a new array or number, as the result of `step`; None if it is neither."""
        cdef Place* at
        if type(z) is NUMBER64:
            self._make_room()
            at = self._filed(z)
            at.index = step.n = self.n
        elif is_new_array(z):
            step.n = self._add_region(z, cnp.PyArray_NBYTES(<cnp.ndarray> z))
        else:
            return None
        self._push(step)
        self._settle()
        return z

    cdef object _product(self, object f, object a, object b):
        """The matrix product of two arrays; None where more is to be done."""
        cdef int64_t i, j
        cdef int na, nb
        cdef ArrayStep step
        if not is_float64(a) or not is_float64(b):
            return None
        na, nb = cnp.PyArray_NDIM(<cnp.ndarray> a), cnp.PyArray_NDIM(<cnp.ndarray> b)
        if not 1 <= na <= 2 or not 1 <= nb <= 2:
            return None
        i = self._place(a)
        j = self._place(b)
        if i == ELSEWHERE or j == ELSEWHERE or (i < 0 and j < 0):
            return None
        z = None if self.outer is None else self.outer._product(f, a, b)
        if z is None:
            z = self._called(f, a, b)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j, step.slope = PRODUCT, i, j, na << 8 | nb
        if j >= 0:
            step.a = a
            self._capture(a)
        elif is_view(a):
            step.a = self._form(a)
        if i >= 0:
            step.b = b
            self._capture(b)
        elif is_view(b):
            step.b = self._form(b)
        return self._noted(step, z)

    cdef object _sum(self, object f, cnp.ndarray x, object axis, bint is_mean, bint keeps):
        cdef ArrayStep step
        cdef int64_t i = self._place(x)
        if i < 0:
            return None
        z = None if self.outer is None else self.outer._sum(f, x, axis, is_mean, keeps)
        if z is None:
            z = sum_of(f if self.outer is None else self.level.parent.prep(f), x, axis, is_mean or self.outer is not None, keeps)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j = SUM, i, -1
        step.more = (<object> x).shape
        step.slope = -1 if axis is None else axis % cnp.PyArray_NDIM(x)
        step.a = self._form(x) if is_view(x) else None
        if is_mean:
            step.c = cnp.PyArray_SIZE(x) if axis is None else cnp.PyArray_DIM(x, step.slope)
        return self._noted(step, z)

    cdef object _gathered(self, object z, list numbers):
        cdef Place* at
        cdef ArrayStep step
        cdef list indices = []
        cdef bint active = False
        for x in numbers:
            at = self.table.find(<PyObject*> x)
            if at == NULL:
                indices.append(-1)
            else:
                active = True
                indices.append(at.index)
        if not active:
            return z
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j, step.more = GATHERED, -1, -1, tuple(indices)
        return self._noted(step, z)
