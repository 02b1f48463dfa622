# -- reverse mode inside forward mode -----------------------------------------------------------------------------------
#
# Of a reverse level whose parent is a compiled forward level: an operation on numbers computes its tangent and files it
# there, and where its partial derivative moves, that goes on the tape with its tangent behind it (`DOT`). The way back
# carries cotangents with their tangents. All else goes through the hooks of the forward level, as in the Python forms.


cdef class PairRecorder(ArrayRecorder):
    """The hooks of such a level."""

    def __init__(self, level, ArrayPusher outer):
        super().__init__(level)
        self.outer = outer
        self.tape.outer = outer

    def fresh(self, values):
        """As without a level around; the new floats have the tangents of the old ones there."""
        cdef Place* at
        cdef list found = ArrayRecorder.fresh(self, values)
        for x, new in zip(values, found):
            at = self.outer.table.find(<PyObject*> x)
            if at != NULL:
                self.outer._file(new, at.dot)
        return found

    cdef int _note_both(self, object z, object a, object b, double x, double y, int op) except -1:
        cdef Place* at = self.table.find(<PyObject*> a)
        cdef int64_t i = -1 if at == NULL else at.index
        cdef int64_t j
        cdef Place* p
        cdef Place* q
        cdef bint moves
        cdef double a_dot = 0.0, b_dot = 0.0, z_dot = 0.0, value = PyFloat_AS_DOUBLE(z)
        cdef double dx = 1.0, dy = 1.0, dx_dot = 0.0, dy_dot = 0.0
        at = self.table.find(<PyObject*> b)
        j = -1 if at == NULL else at.index
        p = self.outer.table.find(<PyObject*> a)
        q = self.outer.table.find(<PyObject*> b)
        moves = p != NULL or q != NULL
        if i < 0 and j < 0 and not moves:
            return 0
        if moves:
            if p != NULL:
                a_dot = p.dot
            if q != NULL:
                b_dot = q.dot
            self.outer._note(z, x, y, value, p, q, op)
            p = self.outer.table.find(<PyObject*> z)
            z_dot = 0.0 if p == NULL else p.dot
            if i < 0 and j < 0:
                return 0
        if op == SUB:
            dy = -1.0
        elif op == MUL:
            dx, dx_dot = y, b_dot
            dy, dy_dot = x, a_dot
        elif op == DIV:
            dx = 1.0 / y
            dy = -value / y
            dy_dot = -z_dot / y
            if b_dot != 0.0:  # else 0 times a slope that is infinite
                dx_dot = -dx * b_dot / y
                dy_dot = -(z_dot + dy * b_dot) / y
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        if i >= 0:
            self.tape.push_pair(at.index, i, dx, dx_dot)
        if j >= 0:
            self.tape.push_pair(at.index, j, dy, dy_dot)
        return 0

    cdef int _along_both(self, object z, object a, double slope, double curvature) except -1:
        cdef Place* at = self.table.find(<PyObject*> a)
        cdef int64_t i = -1 if at == NULL else at.index
        cdef Place* p = self.outer.table.find(<PyObject*> a)
        cdef double slope_dot = 0.0
        if p != NULL:
            if p.dot != 0.0:  # else 0 times what may be infinite
                slope_dot = curvature * p.dot
            self.outer._along(z, slope, p)
        if i >= 0:
            self._make_room()
            at = self._filed(z)
            at.index = self.n
            self.tape.push_pair(at.index, i, slope, slope_dot)
        return 0

    cdef int _note_pair_both(
        self, object z, object a, object b, double da, double db, double daa, double dab, double dbb
    ) except -1:
        cdef Place* at = self.table.find(<PyObject*> a)
        cdef int64_t i = -1 if at == NULL else at.index
        cdef int64_t j
        cdef Place* p = self.outer.table.find(<PyObject*> a)
        cdef Place* q = self.outer.table.find(<PyObject*> b)
        cdef double da_dot = 0.0, db_dot = 0.0
        at = self.table.find(<PyObject*> b)
        j = -1 if at == NULL else at.index
        if p != NULL and p.dot != 0.0:  # else 0 times what may be infinite
            da_dot = daa * p.dot
            db_dot = dab * p.dot
        if q != NULL and q.dot != 0.0:
            da_dot += dab * q.dot
            db_dot += dbb * q.dot
        self.outer._note_pair(z, a, b, da, db)
        if i < 0 and j < 0:
            return 0
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        if i >= 0:
            self.tape.push_pair(at.index, i, da, da_dot)
        if j >= 0:
            self.tape.push_pair(at.index, j, db, db_dot)
        return 0

    cdef object _complex(self, object a, object b, int op):
        cdef int64_t i, j
        z = self.outer._complex(a, b, op)
        if z is None:
            return None
        i, j = self._index_of(a), self._index_of(b)
        if i < 0 and j < 0:
            return z
        a_dot = b_dot = z_dot = None
        if op == MUL or op == DIV:
            b_dot = self.outer._complex_dot(b)
            a_dot = self.outer._complex_dot(a) if op == MUL else None
            z_dot = self.outer._complex_dot(z) if op == DIV else None
        self._file_complex(z)
        if i >= 0:
            partial = 1.0 if op == ADD or op == SUB else b if op == MUL else 1.0 / b
            if op == DIV and b_dot is not None:
                b_dot_over = -partial * b_dot / b
                self._push_moving(i, a, partial, b_dot_over)
            else:
                self._push_moving(i, a, partial, b_dot)
        if j >= 0:
            partial = 1.0 if op == ADD else -1.0 if op == SUB else a if op == MUL else -z / b
            if op == DIV:
                a_dot = None if z_dot is None else -z_dot / b
                if b_dot is not None:
                    more = -partial * b_dot / b
                    a_dot = more if a_dot is None else a_dot + more
            self._push_moving(j, b, partial, a_dot)
        return z

    cdef object _complex_power(self, object a, object b):
        cdef int64_t i
        z = self.outer._complex_power(a, b)
        if z is None:
            return None
        i = self._index_of(a)
        if i < 0:
            return z
        partial, moves = b * PyNumber_Power(a, b - 1, None), None
        a_dot = self.outer._complex_dot(a)
        if a_dot is not None and b > 1:
            moves = b * (b - 1) * PyNumber_Power(a, b - 2, None) * a_dot
        self._file_complex(z)
        self._push_moving(i, a, partial, moves)
        return z

    cdef object _composed(self, object re, object im):
        cdef int64_t i, j
        z = self.outer._composed(re, im)
        if z is None:
            return None
        i, j = self._index_of(re), self._index_of(im)
        if i >= 0 or j >= 0:
            self._file_complex(z)
            if i >= 0:
                self._push_complex(i, re, 1.0)
            if j >= 0:
                self._push_complex(j, im, PyComplex_FromDoubles(0.0, 1.0))
        return z

    cdef object _part(self, object x, object name):
        cdef int64_t i
        cdef bint is_real_part = name == "real"
        if not self.own_numbers or not (is_real_part or name == "imag"):
            return None
        i = self._index_of(x)
        if i < 0:
            return self.outer._part(x, name)
        z = self.outer._part(x, name)
        if z is None:
            z = PyFloat_FromDouble(PyComplex_RealAsDouble(x) if is_real_part else PyComplex_ImagAsDouble(x))
        return self._of_complex(z, i, 1.0 if is_real_part else PyComplex_FromDoubles(0.0, 1.0))

    cdef object _absolute(self, object x):
        cdef int64_t i
        cdef double w, w_dot, re, im
        if not self.own_numbers:
            return None
        i = self._index_of(x)
        z = self.outer._absolute(x)
        if i < 0:
            return z
        if z is None:
            z = abs(x)
            w = PyFloat_AS_DOUBLE(z)
            if not isfinite(w) or w < 1e-300:
                return None
        w = PyFloat_AS_DOUBLE(z)
        re, im = PyComplex_RealAsDouble(x) / w, PyComplex_ImagAsDouble(x) / w
        partial = PyComplex_FromDoubles(re, im)
        x_dot = self.outer._complex_dot(x)
        if x_dot is not None:  # of x / |x|
            w_dot = re * real_part(x_dot) + im * imaginary_part(x_dot)
            self.outer._file_complex(
                partial, PyComplex_FromDoubles((real_part(x_dot) - re * w_dot) / w, (imaginary_part(x_dot) - im * w_dot) / w)
            )
        return self._of_complex(z, i, partial)

    cdef object _of_complex(self, object z, int64_t i, object partial):
        """File z, a real function of complex number `i`; z_bar times `partial` is the cotangent of that."""
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        self.tape._push_object(at.index, i, partial)
        return z

    cdef int _push_moving(self, int64_t i, object x, object partial, object moves) except -1:
        """As `_push_complex`, of a partial derivative with a tangent at the level around; None for zero."""
        if moves is None:
            return self._push_complex(i, x, partial)
        moves = complex(moves)
        partial = PyComplex_FromDoubles(real_part(partial), -imaginary_part(partial))  # an object of its own
        self.outer._file_complex(partial, PyComplex_FromDoubles(moves.real, -moves.imag))
        if PyComplex_CheckExact(x):
            return self.tape._push_object(self.n - 2, i, partial)
        return self.tape._push_object((self.n - 2, i, partial), CALLED, steps.real_part_back)

    cdef int _note_sum(self, object z, object values) except -1:
        self.outer._note_sum(z, values)
        return Recorder._note_sum(self, z, values)

    def sweep(self):
        """Let go of the numbers that only the two tables refer to; how many stay."""
        cdef Py_ssize_t k
        cdef PyObject* key
        cdef Table table = self.table, around = self.outer.table
        for k in range(table.room):
            key = table.slots[k].key
            if key != NULL and Py_REFCNT(key) == 2 and around.find(key) != NULL:
                around._remove(around._place(key))
        return table.sweep()


cdef inline double real_part(object x) except? -1.0:
    return PyComplex_RealAsDouble(x) if PyComplex_CheckExact(x) else real(x)


cdef inline double imaginary_part(object x) except? -1.0:
    return PyComplex_ImagAsDouble(x) if PyComplex_CheckExact(x) else 0.0


cdef class PairBars(Bars):
    """Cotangents with their tangents at the forward level, where numbers that are taken out are filed."""

    cdef double* dots
    cdef dict array_dots  # index -> the tangent of what is in `others`, unknown to the level; None for zero
    cdef ArrayPusher outer

    def __cinit__(self, Py_ssize_t room, outer):
        self.outer = outer
        self.array_dots = {}
        self.dots = <double*> PyMem_RawCalloc(room + 1, sizeof(double))
        if self.dots == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_RawFree(self.dots)

    def __getitem__(self, Py_ssize_t k):
        if k < 0 or k >= self.room:
            raise IndexError(k)
        if self.cells[k].bits == NOTHING:
            return None
        if self.cells[k].bits == OBJECT:
            self._tell(k)
            return self.others[k]
        x = PyFloat_FromDouble(self.cells[k].number)
        if self.dots[k] != 0.0:
            self.outer._file(x, self.dots[k])
        return x

    cdef int _tell(self, object k) except -1:
        """Let the level know the tangent of the array or complex number at `k`."""
        cdef PyObject* known
        x_dot = self.array_dots.pop(k, None)
        if x_dot is None:
            return 0
        x = self.others[k]
        if PyComplex_CheckExact(x):
            return self.outer._file_complex(x, x_dot)
        known = PyDict_GetItemWithError(self.outer.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> x))
        if known == NULL:
            return self.outer._file_array(x, x_dot)
        region = <object> known
        if region.dot is not x_dot:
            region.dot, region.flat = x_dot, None
        return 0

    cdef int forget(self, Py_ssize_t k) except -1:
        """Nothing is to be known of the cotangent at `k`, which has been let go."""
        self.dots[k] = 0.0
        index = k
        self.array_dots.pop(index, None)
        return 0

    def __setitem__(self, Py_ssize_t k, x):
        cdef Place* at
        Bars.__setitem__(self, k, x)
        self.forget(k)
        if self.cells[k].bits != OBJECT and self.cells[k].bits != NOTHING:
            at = self.outer.table.find(<PyObject*> x)
            if at != NULL:
                self.dots[k] = at.dot

    def owns(self, Py_ssize_t k):
        """Whether nobody else has the cotangent at `k`, an array of the compiled way back, or there is none."""
        if self.cells[k].bits != OBJECT:
            return self.cells[k].bits == NOTHING
        return k in self.array_dots and is_new_array(self.others[k])

    def handed_over(self, Py_ssize_t k):
        """The cotangent at `k`, which the level knows from now on and which is forgotten here; None if there is none."""
        if self.cells[k].bits == NOTHING:
            return None
        self._tell(k)
        self.cells[k].bits = NOTHING
        return self.others.pop(k)

    def put_number(self, Py_ssize_t k, x):
        """The cotangent of a number becomes `x`, a float or NumPy's float64."""
        cdef Place* at = self.outer.table.find(<PyObject*> x)
        self[k] = PyFloat_FromDouble(PyFloat_AS_DOUBLE(x))
        self.dots[k] = 0.0 if at == NULL else at.dot


# What an entry of the tape costs, forward and back, in microseconds: under a forward level with one direction, and under
# one with a chunk of them, where the reverse level is of Python's form. Of single operations, measured 2026-11.
cdef double[4] ONE_BY_ONE = [0.12, 0.2, 2.5, 40.0]  # numbers, elements, arrays, steps in Python
cdef double[4] TOGETHER = [2.0, 6.0, 20.0, 45.0]


cdef int price(Tape tape, ArrayPusher outer) except -1:
    """Note in `outer` what the derivatives that were taken inside cost, for whoever wants more directions."""
    cdef Py_ssize_t k
    cdef int32_t i
    cdef int kind
    for k in range(tape.count):
        i = tape.entries[k].input
        if i != DOT:
            kind = 0 if i >= 0 else 1 if i == READ or i == WRITE else 2 if i == ARRAY else 3
            outer.one_by_one += ONE_BY_ONE[kind]
            outer.together += TOGETHER[kind]
    return 0


def reverse_pairs(Tape tape, Py_ssize_t end, outer, shadow, undone, called_back, step_back, add_array):
    """Carry the cotangents in `shadow`, which has `PairBars`, back at level `outer`, from before entry `end`."""
    cdef PairsBack way = PairsBack(shadow, outer, undone, called_back, step_back, add_array)
    cdef PairBars bars = shadow.bars
    cdef Cell* cells = bars.cells
    cdef double* dots = bars.dots
    cdef Entry here  # by value: another thread may make the tape grow while a step runs
    cdef Entry* e
    cdef Py_ssize_t k = end
    cdef int32_t i, o
    cdef double z_bar, partial, partial_dot = 0.0, x_dot
    price(tape, bars.outer)
    while k > 0:
        k -= 1
        if k & 0xFFFF == 0:
            PyErr_CheckSignals()
        e = &tape.entries[k]
        i = e.input
        if i == DOT:
            partial_dot = e.partial
            continue
        if i >= 0:
            o = e.output
            if cells[o].bits == NOTHING:
                partial_dot = 0.0
                continue
            if cells[o].bits != OBJECT and cells[i].bits != OBJECT:
                z_bar = cells[o].number
                x_dot = z_bar * partial_dot if partial_dot != 0.0 else 0.0
                if dots[o] != 0.0:  # else 0 times an infinite slope
                    x_dot += dots[o] * e.partial
                z_bar = z_bar * e.partial
                if cells[i].bits == NOTHING:
                    bars._put(i, z_bar)
                    dots[i] = x_dot
                else:
                    bars._put(i, cells[i].number + z_bar)
                    dots[i] += x_dot
            else:
                partial = e.partial
                if way.complex_back(o, i, PyFloat_FromDouble(partial), partial_dot):
                    partial_dot = 0.0
                    continue
                slope = PyFloat_FromDouble(partial)
                if partial_dot != 0.0:
                    bars.outer._file(slope, partial_dot)
                add_term(outer, bars, i, outer.mul(bars[o], slope))
            partial_dot = 0.0
            continue
        here = e[0]
        e = &here
        if i == READ or i == WRITE:
            if not way.element_back(tape, e):
                way.element_region = -1
                args, _, what = tape._element_triple(e)
                called_back(outer, what, shadow, args)
            continue
        way.element_region = -1
        if i == ARRAY:
            way.back(<ArrayStep> tape.objects[<Py_ssize_t> e.partial])
            continue
        first, what = tape.objects[<Py_ssize_t> e.partial]
        if i == ODD:
            if way.complex_back(e.output, first, what, 0.0):
                continue
            found = bars[e.output]
            if found is not None:
                add_term(outer, bars, first, outer.mul(found, what))
        elif i == CALLED and what is steps.real_part_back:
            z, x, what = first
            if not way.real_part_back(z, x, what):
                called_back(outer, steps.real_part_back, shadow, first)
        elif i == CALLED:
            called_back(outer, what, shadow, first)
        else:
            step_back(outer, what, shadow, undone)


cdef int add_term(object outer, PairBars bars, int64_t i, object term) except -1:
    before = bars[i]
    bars[i] = term if before is None else outer.add(before, term)
    return 0
