# -- numbers ------------------------------------------------------------------------------------------------------------

cdef enum:
    ADD, SUB, MUL, DIV

    FLOOR_DIVIDE, REMAINDER, POWER, MATRIX_PRODUCT, SHIFT_LEFT, SHIFT_RIGHT, BIT_AND, BIT_OR, BIT_XOR
    GET_ITEM, SET_ITEM

cdef tuple OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_", "or_", "xor"
)
cdef tuple ASKED = (*OPERATORS, "getitem", "setitem")
cdef tuple NATIVE = tuple([getattr(operator, name) for name in OPERATORS])
cdef tuple IN_PLACE = tuple(["i" + name.rstrip("_") for name in OPERATORS])
cdef tuple NATIVE_IN_PLACE = tuple([getattr(operator, name) for name in IN_PLACE])
cdef tuple GENERAL = tuple([f"general_{name}" for name in OPERATORS])
cdef tuple GENERAL_IN_PLACE = tuple([f"general_{name}" for name in IN_PLACE])


cdef inline bint is_real(object x):
    return PyFloat_CheckExact(x) or type(x) is NUMBER64 or PyLong_CheckExact(x)


cdef inline double real(object x) except? -1.0:
    return PyLong_AsDouble(x) if PyLong_CheckExact(x) else PyFloat_AS_DOUBLE(x)


cdef struct Item:  # a value in an expression
    PyObject* object  # or NULL, of a number that has none yet
    double x
    Place at
    int kind

cdef enum:
    ANY_OBJECT = 0, STILL_NUMBER = 1, MOVING_NUMBER = 2  # of items: the numbers are not active, or are; bits
    NOT_LOOKED_AT = 4  # of an operand that nothing has taken yet


cdef class Arithmetic:
    """The hooks of arithmetic on floats. What is noted of a result is left to the modes."""

    cdef Table table
    cdef dict mapped  # `MappedRule` of functions that operators are
    cdef object level
    cdef int64_t n, limit
    cdef ArrayPusher outer  # of a forward level around this one, whose tangents are carried along here; else None
    cdef public bint own_numbers  # the rules of arithmetic of numbers are plaingrad's own
    cdef public bint own_arrays  # the rules of arithmetic of arrays are plaingrad's own
    cdef set truncated  # see `Texts`
    cdef public int64_t array_bytes, array_limit  # of arrays filed since the last sweep, and when it is time for the next
    cdef int64_t first_limit
    cdef tuple held  # what the level has of a derivative, beside the table

    def __init__(self, level):
        self.level = level
        self.first_limit = level._array_limit
        self.truncated = level.texts.truncated
        self.array_limit = level._array_limit
        self.n = -1
        self.limit = SWEEP_NUMBERS

    cdef bint leaves_something(self) except -1:
        """Whether something is left in the level of a derivative, but for numbers in the table and the tape."""
        cdef object level = self.level, texts
        if self.held is None:
            texts = level.texts
            self.held = level.alive, level.arrays, level.captured, level.twins, level.fresh, level.heirs
            if self.outer is None:  # else they are those of the level around
                self.held += texts, texts.files, texts.truncated, texts.raw.patterns
        for part in self.held:
            if part:
                return True
        if level.patched or self.array_bytes or self.array_limit != self.first_limit or self.table.others:
            return True
        borrowed = level.borrowed
        return borrowed.copies is not None or borrowed.extents is not None

    cpdef renew(self):
        """Begin again, of a level that is used again."""
        self.table.clear()
        self.truncated = self.level.texts.truncated
        self.array_bytes, self.array_limit = 0, self.level._array_limit
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

    cdef int _of_two(self, Item* z, Item* a, Item* b, int op) except -1:
        """z.x = a.x op b.x is computed; what there is to be noted of it, in `z` and on a tape. One of them moves."""
        raise NotImplementedError

    cdef int _of_one(self, Item* z, Item* a, double slope) except -1:
        """The same of a function of one number."""
        raise NotImplementedError

    cdef int _function(self, object z, double x, int known, double slope, Place* a) except -1:
        """As `_along`, of a function in `SLOPES` at x."""
        return self._along(z, slope, a)

    cdef int _of_function(self, Item* z, Item* a, int known, double slope) except -1:
        """As `_of_one`, of a function in `SLOPES`."""
        return self._of_one(z, a, slope)

    cdef int _of_power(self, Item* z, Item* a, double e) except -1:
        """As `_of_one`, of a power."""
        return self._of_one(z, a, power_slope(a.x, e))

    cdef object _complex(self, object a, object b, int op):
        """a op b where one is a complex number; None where that is not done here."""
        return None

    cdef object _composed(self, object re, object im):
        """The complex number of two real ones; None where that is not done here."""
        return None

    cdef object _part(self, object x, object name):
        """The attribute of a complex number that is one of its parts; None where that is not done here."""
        return None

    cdef object _absolute(self, object x):
        """abs(x) of a complex number; None where that is not done here."""
        return None

    cdef object _complex_power(self, object a, object b):
        """a ** b of a complex number and a whole one; None where that is not done here."""
        return None

    cdef object _arrays(self, object a, object b, int op, bint in_place):
        """a op b where one is an array; None where that is not done here."""
        return None

    cdef object _elementwise(self, object f, object x, int slope, object partial, int reads=READS_BOTH):
        """f(x), elementwise in an array; None where that is not done here."""
        return None

    cdef object _product(self, object f, object a, object b):
        """The matrix product of two arrays; None where that is not done here."""
        return None

    cdef object _sum(self, object f, cnp.ndarray x, object axis, bint is_mean, bint keeps):
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

    cdef object _crossed(self, object f, cnp.ndarray a, cnp.ndarray b):
        """The cross product of two vectors of three; None where that is not done here."""
        return None

    def matmul(self, a, b):
        """a @ b."""
        z = self._product(operator.matmul, a, b)
        if z is None and is_float64(a) and is_float64(b):
            z = by_rule_of(self, np.matmul, a, b)
        return self._generally(a, b, MATRIX_PRODUCT, False) if z is None else z

    def compiled(self, f, rule, general):
        """What to call instead of `f`, which has a rule; `general` where that is a user's, or nothing of ours."""
        quiet = rule.kind == "composed" or (rule.own and rule.gives_derivative)
        quiet = quiet and not isinstance(getattr(general, "__self__", None), ScalarRule)  # which looks itself
        if quiet and not rule.users and not rule.variants and not rule.mutates:
            general = QuietCall(self, f, general).call
            if isinstance(self, (ArrayRecorder, ArrayPusher)):
                general = MappedRule(self, f, rule, general).call
        return self._compiled(f, rule, general)

    cdef object _compiled(self, object f, object rule, object general):
        if rule.users:
            return general
        if f is sum or f is math.fsum:
            return SumRule(self, f, general).call
        if f is math.dist:
            return PairRule(self, f, general).call
        if f is complex:
            return ComplexMaker(self, general).call
        if not rule.own:
            return general
        if f is math.atan2 or f is math.hypot:
            return PairRule(self, f, general).call
        if has_two_slopes(f, rule) and not isinstance(self, JetPusher):  # whose coefficients take more than slopes
            return SlopesRule(self, f, rule.partials, general).call
        if (f is math.radians or f is math.degrees or f is abs) and rule.kind == "scalar":
            return ScalarRule(self, f, rule.partials[0], math, general).call
        if f is NUMBER64:
            return NumberMaker(self, general).call
        if is_complex_function(f, rule) and isinstance(self, ArrayRecorder) and self.outer is None:
            return ComplexRule(self, f, rule.partials[0], general).call
        if f is np.array:
            return ArrayMaker(self, f, general).call
        if f is np.ndarray.copy or f is np.copy or f is np.ndarray.astype:
            return ArrayCopier(self, f, general).call
        if f is np.ndarray.reshape or f is np.ndarray.ravel or f is np.reshape or f is np.ravel:
            return ViewMaker(self, f, general).call
        if f is np.dot or f is np.ndarray.dot or f is np.matmul or f is operator.matmul:
            return ProductRule(self, f, general).call
        if f in OPERATIONS_OF_UFUNCS:
            return ArithmeticUfunc(self, f, general).call
        if f is np.cross:
            return CrossRule(self, f, general).call
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
        cdef Py_ssize_t stay
        if self.table.used >= self.limit:
            stay = self.level._sweep_numbers()
            self.limit = self.table.used + max(SWEEP_NUMBERS, stay)
        return 0

    cdef inline Place* _filed(self, object z) except NULL:
        cdef Place* at = self.table.put(<PyObject*> z)
        self.n += 1
        return at

    cdef object _entered(self, object x):
        """File the fresh number `x`; what the table says of it."""
        raise NotImplementedError

    def next_index(self):
        """The index that the next number gets."""
        return self.n + 1

    def fresh(self, values):
        """New floats for those in `values`, filed one after another."""
        cdef list found = []
        for x in values:
            new = PyFloat_FromDouble(PyFloat_AS_DOUBLE(x))
            self._entered(new)
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
        elif PyBool_Check(a) and (PyLong_CheckExact(b) or PyBool_Check(b)) or PyBool_Check(b) and PyLong_CheckExact(a):
            return whole(a, b, op)
        return self._generally(a, b, op, in_place)

    cdef object _generally(self, object a, object b, int op, bint in_place):
        """a op b by their classes alone where these need nothing of the level; else the general way."""
        cdef int native = natively(a, b, op, in_place)
        if native == 1 or (native == 2 and self.outer is None):
            if not self.truncated or op > SUB or type_of(a) == type_of(b):
                return (NATIVE_IN_PLACE if in_place else NATIVE)[op](a, b)
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

    cdef object _power(self, object a, object b, bint in_place):
        cdef double x, e, slope
        cdef bint moves
        if is_real(a) and is_real(b) and not (PyLong_CheckExact(a) and PyLong_CheckExact(b)):
            x, e = real(a), real(b)
            moves = self.table.find(<PyObject*> b) != NULL or self._moves_outside(b)
            if x > 0.0 or (not moves and e == floor(e) and (e >= 1.0 or x < 0.0)):
                z = PyNumber_Power(a, b, None)
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    slope = power_slope(x, e)
                    if moves and self.outer is not None:
                        self._note_power_both(z, a, b, x, e, slope)
                    elif self.outer is not None:
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
        elif cnp.PyArray_CheckExact(b) and self.own_arrays and (is_float64(a) or PyFloat_CheckExact(a) or type(a) is NUMBER64):
            z = by_rule_of(self, np.power, a, b)
            if z is not None:
                return z
        return self._generally(a, b, POWER, in_place)

    def pow(self, a, b):
        """a ** b."""
        return self._power(a, b, False)

    def ipow(self, a, b):
        """a **= b."""
        return self._generally(a, b, POWER, True) if cnp.PyArray_CheckExact(a) else self._power(a, b, True)

    cdef inline bint _is_still(self, object x) noexcept:
        """Whether `x` is a real number that nothing is filed of, here or at the level around."""
        return is_real(x) and self.table.find(<PyObject*> x) == NULL and not self._moves_outside(x)

    cdef object _whole(self, object a, object b, int op, bint in_place):
        """a op b of whole numbers, or of numbers that do not matter; all else goes the general way."""
        if PyLong_CheckExact(a) and PyLong_CheckExact(b):
            if op == FLOOR_DIVIDE:
                return PyNumber_FloorDivide(a, b)
            return PyNumber_Remainder(a, b) if op == REMAINDER else NATIVE[op](a, b)
        if self._is_still(a) and self._is_still(b):
            return NATIVE[op](a, b)
        return self._generally(a, b, op, in_place)

    def floordiv(self, a, b):
        """a // b."""
        return self._whole(a, b, FLOOR_DIVIDE, False)

    def ifloordiv(self, a, b):
        """a //= b."""
        return self._whole(a, b, FLOOR_DIVIDE, True)

    cdef object _remainder(self, object a, object b, bint in_place):
        """a % b, which is a - n b with a whole number n that is constant between its jumps."""
        cdef double x, y, turns = 0.0
        if is_real(a) and is_real(b) and not (PyLong_CheckExact(a) and PyLong_CheckExact(b)):
            x, y = real(a), real(b)
            if isfinite(x) and isfinite(y) and y != 0.0:
                z = PyNumber_Remainder(a, b)
                if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                    if self.table.find(<PyObject*> b) != NULL or self._moves_outside(b):
                        turns = -real(PyNumber_FloorDivide(PyFloat_FromDouble(x), PyFloat_FromDouble(y)))
                    if self.outer is None:
                        self._note_pair(z, a, b, 1.0, turns)
                    else:
                        self._note_pair_both(z, a, b, 1.0, turns, 0.0, 0.0, 0.0)
                    return z
        return self._whole(a, b, REMAINDER, in_place)

    def mod(self, a, b):
        """a % b."""
        return self._remainder(a, b, False)

    def imod(self, a, b):
        """a %= b."""
        return self._remainder(a, b, True)

    def lshift(self, a, b):
        """a << b."""
        return self._whole(a, b, SHIFT_LEFT, False)

    def rshift(self, a, b):
        """a >> b."""
        return self._whole(a, b, SHIFT_RIGHT, False)

    def and_(self, a, b):
        """a & b."""
        return self._whole(a, b, BIT_AND, False)

    def or_(self, a, b):
        """a | b."""
        return self._whole(a, b, BIT_OR, False)

    def xor(self, a, b):
        """a ^ b."""
        return self._whole(a, b, BIT_XOR, False)

    def neg(self, a):
        """-a."""
        if not PyFloat_CheckExact(a):
            z = None
            if cnp.PyArray_CheckExact(a):
                z = self._negative(a)
            elif PyComplex_CheckExact(a):
                z = self._complex(0.0, a, SUB) if a.real != 0.0 and a.imag != 0.0 else None
            elif type(a) is NUMBER64:
                return self._negated(a, PyNumber_Negative(a))
            return self.level.general_neg(a) if z is None else z
        return self._negated(a, PyFloat_FromDouble(-PyFloat_AS_DOUBLE(a)))

    cdef inline object _negated(self, object a, object z):
        """z, which is -a, filed if `a` is active."""
        cdef Place* i
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

    cdef int _note_pair_both(
        self, object z, object a, object b, double da, double db, double daa, double dab, double dbb
    ) except -1:
        """As `_note_pair`, at this level and the one around it, with the second derivatives."""
        raise NotImplementedError

    cdef int _note_power_both(self, object z, object a, object b, double x, double e, double slope) except -1:
        cdef double w = PyFloat_AS_DOUBLE(z), u = log(x)
        return self._note_pair_both(
            z, a, b, slope, w * u, 0.0 if e == 0.0 else e * power_slope(x, e - 1.0), c_pow(x, e - 1.0) * (1.0 + e * u), w * u * u
        )

    cdef bint _note_many(self, object z, list values, list slopes) except -1:
        """File z, a function of `values` with these slopes, if one of them is active; False where that is not done here."""
        return False

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


cdef object whole(object a, object b, int op):
    if op == ADD:
        return PyNumber_Add(a, b)
    if op == SUB:
        return PyNumber_Subtract(a, b)
    if op == MUL:
        return PyNumber_Multiply(a, b)
    return PyNumber_TrueDivide(a, b)
