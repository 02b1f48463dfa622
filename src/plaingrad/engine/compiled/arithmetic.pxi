# -- numbers ------------------------------------------------------------------------------------------------------------

cdef enum:
    ADD, SUB, MUL, DIV

cdef tuple GENERAL = ("general_add", "general_sub", "general_mul", "general_truediv")
cdef tuple GENERAL_IN_PLACE = ("general_iadd", "general_isub", "general_imul", "general_itruediv")


cdef inline bint is_real(object x):
    return PyFloat_CheckExact(x) or type(x) is NUMBER64 or PyLong_CheckExact(x)


cdef inline double real(object x) except? -1.0:
    return PyLong_AsDouble(x) if PyLong_CheckExact(x) else PyFloat_AS_DOUBLE(x)


cdef class Arithmetic:
    """The hooks of arithmetic on floats. What is noted of a result is left to the modes."""

    cdef Table table
    cdef object level
    cdef int64_t n, limit
    cdef ArrayPusher outer  # of a forward level around this one, whose tangents are carried along here; else None
    cdef public bint own_arrays  # the rules of arithmetic of arrays are plaingrad's own
    cdef public int64_t array_bytes, array_limit  # of arrays filed since the last sweep, and when it is time for the next

    def __init__(self, level):
        self.level = level
        self.array_limit = level._array_limit
        self.n = -1
        self.limit = SWEEP_NUMBERS

    @property
    def index(self):
        """The table."""
        return self.table

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        """File z = x op y, of which one or both operands are active."""
        raise NotImplementedError

    cdef int _along(self, object z, double slope, Place* a) except -1:
        """File z, a function of one active number, with its slope there."""
        raise NotImplementedError

    cdef int _note_both(self, object z, object a, object b, double x, double y, int op) except -1:
        """As `_note`, at this level and the one around it."""
        raise NotImplementedError

    cdef int _along_both(self, object z, object a, double slope, double curvature) except -1:
        """As `_along`, at this level and the one around it; `curvature` is the derivative of the slope."""
        raise NotImplementedError

    cdef object _complex(self, object a, object b, int op):
        """a op b where one is a complex number; None where that is not done here."""
        return None

    cdef object _complex_power(self, object a, object b):
        """a ** b of a complex number and a whole one; None where that is not done here."""
        return None

    cdef object _arrays(self, object a, object b, int op, bint in_place):
        """a op b where one is an array; None where that is not done here."""
        return None

    cdef object _elementwise(self, object f, object x, int slope, object partial):
        """f(x), elementwise in an array; None where that is not done here."""
        return None

    cdef object _product(self, object f, object a, object b):
        """The matrix product of two arrays; None where that is not done here."""
        return None

    cdef object _sum(self, object f, cnp.ndarray x, object axis, bint is_mean):
        """The sum or mean of an array over one axis, or all (None); None where that is not done here."""
        return None

    cdef object _made(self, object f, tuple args, dict kwargs):
        """f(*args, **kwargs), as a level around this one sees it."""
        return f(*args, **kwargs) if self.outer is None else self.level.parent.prep(f)(*args, **kwargs)

    cdef object _gathered(self, object z, list numbers):
        """`z`, an array that was made of `numbers`; None where that is not done here."""
        return None

    cdef object _read(self, object a, object k):
        """a[k], of an array; None where that is not done here."""
        return None

    cdef bint _write(self, object v, object a, object k) except -1:
        """a[k] = v, of an array; False where that is not done here."""
        return False

    cdef object _negative(self, object a):
        """-a, of an array; None where that is not done here."""
        return self._elementwise(np.negative, a, MINUS, steps.NEGATIVE)

    cdef object _square(self, object a):
        """a ** 2, of an array; None where that is not done here."""
        return self._elementwise(np.square, a, SQUARED, steps.square_slope) if self.own_arrays else None

    cdef object _powered(self, object a, object b):
        """a ** b, of an array and a number; None where that is not done here."""
        return self._square(a) if PyLong_CheckExact(b) and b == 2 else None

    cdef object _copied(self, object f, cnp.ndarray x):
        """f(x), a copy of an array; None where that is not done here."""
        return None

    def matmul(self, a, b):
        """a @ b."""
        general = self.level.general_matmul
        z = self._product(operator.matmul, a, b)
        return general(a, b) if z is None else z

    def compiled(self, f, rule, general):
        """What to call instead of `f`, which has a rule; `general` where that is a user's, or nothing of ours."""
        if rule.users:
            return general
        if f is sum:
            return SumRule(self, general).call
        if not rule.own:
            return general
        if f is math.atan2 or f is math.hypot:
            return PairRule(self, f, general).call
        if (f is math.radians or f is math.degrees or f is abs) and rule.kind == "scalar":
            return ScalarRule(self, f, rule.partials[0], math, general).call
        if f is np.array:
            return ArrayMaker(self, f, general).call
        if f is np.ndarray.copy or f is np.copy:
            return ArrayCopier(self, f, general).call
        if f is np.ndarray.reshape or f is np.ndarray.ravel or f is np.reshape or f is np.ravel:
            return ViewMaker(self, f, general).call
        if f is np.dot or f is np.ndarray.dot or f is np.matmul or f is operator.matmul:
            return ProductRule(self, f, general).call
        if f is np.sum or f is np.ndarray.sum or f is np.mean or f is np.ndarray.mean:
            return SumOfArray(self, f, general).call
        if type(f) is np.ufunc and f.nin == 1 and f.nout == 1 and rule.kind == "scalar" and callable(rule.partials[0]):
            return UfuncRule(self, f, rule.partials[0], general).call
        return general

    cdef inline bint _moves_outside(self, object x) noexcept:
        """Whether a number has a tangent at the level around this one."""
        return self.outer is not None and self.outer.table.find(<PyObject*> x) != NULL

    cdef inline int _make_room(self) except -1:
        """Sweep, if it is time; other threads may run meanwhile."""
        if self.n >= self.limit:
            self.limit = self.n + max(SWEEP_NUMBERS, self.level._sweep_numbers())
        return 0

    cdef inline Place* _filed(self, object z) except NULL:
        cdef Place* at = self.table.put(<PyObject*> z)
        self.n += 1
        return at

    cdef object _entered(self, object x):
        """File the fresh number `x`; what the table says of it."""
        raise NotImplementedError

    def fresh(self, values, list nodes, dict originals, dict patches, node_class):
        """New floats for those in `values`, filed, with their nodes; `originals` and `patches` lead back to the old."""
        cdef list found = []
        for x in values:
            new = PyFloat_FromDouble(PyFloat_AS_DOUBLE(x))
            index = self._entered(new)
            pair = (new, x)
            key = PyLong_FromVoidPtr(<void*> <PyObject*> new)
            originals[key] = pair
            patches[key] = pair
            nodes.append(node_class(index, new))
            found.append(new)
        return found

    def sweep(self):
        """Let go of the numbers that only the table refers to; how many stay."""
        return self.table.sweep()

    cdef inline object _binary(self, object a, object b, int op, bint in_place):
        cdef double x, y
        cdef Place* i
        cdef Place* j
        cdef object z
        if PyFloat_CheckExact(a):
            x = PyFloat_AS_DOUBLE(a)
            if PyFloat_CheckExact(b):
                y = PyFloat_AS_DOUBLE(b)
            elif PyLong_CheckExact(b):
                y = PyLong_AsDouble(b)
            else:
                return self._other(a, b, op, in_place)
        elif PyLong_CheckExact(a):
            if PyFloat_CheckExact(b):
                x = PyLong_AsDouble(a)
                y = PyFloat_AS_DOUBLE(b)
            elif PyLong_CheckExact(b):
                return whole(a, b, op)
            else:
                return self._other(a, b, op, in_place)
        else:
            return self._other(a, b, op, in_place)
        if op == ADD:
            z = PyFloat_FromDouble(x + y)
        elif op == SUB:
            z = PyFloat_FromDouble(x - y)
        elif op == MUL:
            z = PyFloat_FromDouble(x * y)
        elif y == 0.0:
            return PyNumber_TrueDivide(a, b)  # which raises
        else:
            z = PyFloat_FromDouble(x / y)
        if self.outer is not None:
            self._note_both(z, a, b, x, y, op)
            return z
        i = self.table.find(<PyObject*> a)
        j = self.table.find(<PyObject*> b)
        if i != NULL or j != NULL:
            self._note(z, x, y, PyFloat_AS_DOUBLE(z), i, j, op)
        return z

    cdef object _other(self, object a, object b, int op, bint in_place):
        """NumPy's float64 among the operands; all else goes the general way."""
        cdef Place* i
        cdef Place* j
        cdef double y
        if cnp.PyArray_CheckExact(a) or cnp.PyArray_CheckExact(b):
            z = self._arrays(a, b, op, in_place)
            if z is not None:
                return z
        elif is_real(a) and is_real(b):
            y = real(b)
            z = whole(a, b, op) if op != DIV or y != 0.0 else None
            if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                if self.outer is not None:
                    self._note_both(z, a, b, real(a), y, op)
                    return z
                i = self.table.find(<PyObject*> a)
                j = self.table.find(<PyObject*> b)
                if i != NULL or j != NULL:
                    self._note(z, real(a), y, PyFloat_AS_DOUBLE(z), i, j, op)
                return z
        elif PyComplex_CheckExact(a) or PyComplex_CheckExact(b):
            z = self._complex(a, b, op)
            if z is not None:
                return z
        return getattr(self.level, (GENERAL_IN_PLACE if in_place else GENERAL)[op])(a, b)

    def add(self, a, b):
        """a + b."""
        return self._binary(a, b, ADD, False)

    def iadd(self, a, b):
        """a += b."""
        return self._binary(a, b, ADD, True)

    def sub(self, a, b):
        """a - b."""
        return self._binary(a, b, SUB, False)

    def isub(self, a, b):
        """a -= b."""
        return self._binary(a, b, SUB, True)

    def mul(self, a, b):
        """a * b."""
        return self._binary(a, b, MUL, False)

    def imul(self, a, b):
        """a *= b."""
        return self._binary(a, b, MUL, True)

    def truediv(self, a, b):
        """a / b."""
        return self._binary(a, b, DIV, False)

    def itruediv(self, a, b):
        """a /= b."""
        return self._binary(a, b, DIV, True)

    cdef object _power(self, object a, object b, str general):
        cdef double x, e, slope
        cdef bint moves
        if is_real(a) and is_real(b) and not (PyLong_CheckExact(a) and PyLong_CheckExact(b)):
            x, e = real(a), real(b)
            moves = self.table.find(<PyObject*> b) != NULL or self._moves_outside(b)
            if x > 0.0 or (not moves and e == floor(e) and (e >= 1.0 or x < 0.0)):
                if moves and self.outer is not None:
                    return getattr(self.level, general)(a, b)
                z = PyNumber_Power(a, b, None)
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    slope = power_slope(x, e)
                    if self.outer is not None:
                        self._along_both(z, a, slope, 0.0 if e == 0.0 else e * power_slope(x, e - 1.0))
                    else:
                        self._note_pair(z, a, b, slope, PyFloat_AS_DOUBLE(z) * log(x) if moves else 0.0)
                    return z
        elif PyComplex_CheckExact(a) and PyLong_CheckExact(b):
            z = self._complex_power(a, b)
            if z is not None:
                return z
        elif cnp.PyArray_CheckExact(a) and is_real(b):
            z = self._powered(a, b)
            if z is not None:
                return z
        return getattr(self.level, general)(a, b)

    def pow(self, a, b):
        """a ** b."""
        return self._power(a, b, "general_pow")

    def ipow(self, a, b):
        """a **= b."""
        return getattr(self.level, "general_ipow")(a, b) if cnp.PyArray_CheckExact(a) else self._power(a, b, "general_ipow")

    cdef inline bint _is_still(self, object x) noexcept:
        """Whether `x` is a real number that nothing is filed of, here or at the level around."""
        return is_real(x) and self.table.find(<PyObject*> x) == NULL and not self._moves_outside(x)

    cdef object _whole(self, object a, object b, object f, str general):
        """f(a, b) of whole numbers, or of numbers that do not matter; all else goes the general way."""
        if (PyLong_CheckExact(a) and PyLong_CheckExact(b)) or (self._is_still(a) and self._is_still(b)):
            return f(a, b)
        return getattr(self.level, general)(a, b)

    def floordiv(self, a, b):
        """a // b."""
        return self._whole(a, b, operator.floordiv, "general_floordiv")

    def ifloordiv(self, a, b):
        """a //= b."""
        return self._whole(a, b, operator.floordiv, "general_ifloordiv")

    def mod(self, a, b):
        """a % b."""
        return self._whole(a, b, operator.mod, "general_mod")

    def imod(self, a, b):
        """a %= b."""
        return self._whole(a, b, operator.mod, "general_imod")

    def lshift(self, a, b):
        """a << b."""
        return self._whole(a, b, operator.lshift, "general_lshift")

    def rshift(self, a, b):
        """a >> b."""
        return self._whole(a, b, operator.rshift, "general_rshift")

    def and_(self, a, b):
        """a & b."""
        return self._whole(a, b, operator.and_, "general_and_")

    def or_(self, a, b):
        """a | b."""
        return self._whole(a, b, operator.or_, "general_or_")

    def xor(self, a, b):
        """a ^ b."""
        return self._whole(a, b, operator.xor, "general_xor")

    def neg(self, a):
        """-a."""
        cdef Place* i
        if not PyFloat_CheckExact(a):
            z = None
            if cnp.PyArray_CheckExact(a):
                z = self._negative(a)
            elif PyComplex_CheckExact(a):
                z = self._complex(0.0, a, SUB) if a.real != 0.0 and a.imag != 0.0 else None
            return self.level.general_neg(a) if z is None else z
        z = PyFloat_FromDouble(-PyFloat_AS_DOUBLE(a))
        if self.outer is not None:
            self._along_both(z, a, -1.0, 0.0)
            return z
        i = self.table.find(<PyObject*> a)
        if i != NULL:
            self._along(z, -1.0, i)
        return z

    cdef int _note_pair(self, object z, object a, object b, double da, double db) except -1:
        """File z, a function of two numbers with these slopes, if one of them is active."""
        raise NotImplementedError

    cdef int _note_sum(self, object z, object values) except -1:
        """File z, the sum of `values`, a list or tuple of floats and ints, if one of them is active."""
        raise NotImplementedError

    def unary(self, f, partial, m, general):
        """What to call instead of `f`, a function of one float with slope partial(m, x, z)."""
        return ScalarRule(self, f, partial, m, general).call

    def hooks(self):
        """All hooks, by name."""
        names = ("add", "iadd", "sub", "isub", "mul", "imul", "truediv", "itruediv", "pow", "ipow", "neg")
        names += ("floordiv", "ifloordiv", "mod", "imod", "lshift", "rshift", "and_", "or_", "xor")
        return {name: getattr(self, name) for name in (*names, "unary", "matmul")}


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
        self._make_room()
        at = self._filed(x)
        at.index = self.n
        return at.index

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        cdef int64_t i = -1 if a == NULL else a.index
        cdef int64_t j = -1 if b == NULL else b.index
        cdef double dx = 1.0, dy = 1.0
        if op == SUB:
            dy = -1.0
        elif op == MUL:
            dx = y
            dy = x
        elif op == DIV:
            dx = 1.0 / y
            dy = -value / y
        return self._record(z, i, j, dx, dy)

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
        found = PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> x))
        return -1 if found == NULL else <object> found

    cdef object _complex(self, object a, object b, int op):
        cdef Place* at
        cdef int64_t i, j
        if self.outer is not None or not (is_real(a) or PyComplex_CheckExact(a)):
            return None
        if not (is_real(b) or PyComplex_CheckExact(b)):
            return None
        z = whole(a, b, op)
        if not PyComplex_CheckExact(z):
            return None
        i, j = self._index_of(a), self._index_of(b)
        if i < 0 and j < 0:
            return z
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        if i >= 0:
            self._push_complex(i, a, 1.0 if op == ADD or op == SUB else b if op == MUL else 1.0 / b)
        if j >= 0:
            self._push_complex(j, b, 1.0 if op == ADD else -1.0 if op == SUB else a if op == MUL else -z / b)
        return z

    cdef object _complex_power(self, object a, object b):
        cdef Place* at
        cdef int64_t i
        if self.outer is not None or not 1 <= b <= 100:
            return None
        z = PyNumber_Power(a, b, None)
        i = self._index_of(a)
        if i < 0:
            return z
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        self._push_complex(i, a, b * PyNumber_Power(a, b - 1, None))
        return z

    cdef int _push_complex(self, int64_t i, object x, object partial) except -1:
        """The last number filed depends on `x`; a cotangent goes back by the conjugate of the partial derivative."""
        if PyComplex_CheckExact(partial):
            partial = PyComplex_FromDoubles(PyComplex_RealAsDouble(partial), -PyComplex_ImagAsDouble(partial))
        if not PyComplex_CheckExact(x):
            self.tape._push_object((self.n, i, partial), CALLED, steps.real_part_back)
        elif PyComplex_CheckExact(partial):
            self.tape._push_object(self.n, i, partial)
        else:
            self.tape.push(self.n, i, real(partial))
        return 0

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
        cdef double z_dot, a_dot = 0.0, b_dot = 0.0
        if a != NULL:
            a_dot = a.dot
        if b != NULL:
            b_dot = b.dot
        if b == NULL:
            z_dot = a_dot * y if op == MUL else a_dot / y if op == DIV else a_dot
        elif a == NULL:
            z_dot = b_dot if op == ADD else -b_dot if op == SUB else x * b_dot if op == MUL else -(value * b_dot / y)
        elif op == ADD:
            z_dot = a_dot + b_dot
        elif op == SUB:
            z_dot = a_dot - b_dot
        elif op == MUL:
            z_dot = a_dot * y + x * b_dot
        else:
            z_dot = (a_dot - value * b_dot) / y
        return self._file(z, z_dot)

    cdef int _along(self, object z, double slope, Place* a) except -1:
        return self._file(z, slope * a.dot)

    cdef int _note_pair(self, object z, object a, object b, double da, double db) except -1:
        cdef Place* p = self.table.find(<PyObject*> a)
        cdef Place* q = self.table.find(<PyObject*> b)
        if p == NULL and q == NULL:
            return 0
        return self._file(z, (0.0 if p == NULL else da * p.dot) + (0.0 if q == NULL else db * q.dot))

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


cdef object whole(object a, object b, int op):
    if op == ADD:
        return PyNumber_Add(a, b)
    if op == SUB:
        return PyNumber_Subtract(a, b)
    if op == MUL:
        return PyNumber_Multiply(a, b)
    return PyNumber_TrueDivide(a, b)


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
        if not PyFloat_CheckExact(x) or other is not MISSING:
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
        if len(args) == 2 and self.arithmetic.outer is None and is_real(args[0]) and is_real(args[1]):
            x, y = real(args[0]), real(args[1])
            if is_moderate(x) and is_moderate(y) and (x != 0.0 or y != 0.0):
                z = self.f(args[0], args[1])
                w = PyFloat_AS_DOUBLE(z)
                if self.f is math.hypot:
                    self.arithmetic._note_pair(z, args[0], args[1], x / w, y / w)
                else:
                    w = x * x + y * y
                    self.arithmetic._note_pair(z, args[0], args[1], y / w, -x / w)
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


