# -- functions of arrays -----------------------------------------------------------------------------------------------

cdef class ArrayRule:
    """A function of arrays with a rule of plaingrad's own; what is not done here goes the general way."""

    cdef Arithmetic recorder
    cdef object f, general

    def __init__(self, recorder, f, general):
        self.recorder, self.f, self.general = recorder, f, general


# How the slope of a function is computed here, as the rows of `rules.elementwise` say.
cdef dict SLOPES_OF_ARRAYS = {
    np.exp: BY_RESULT, np.tanh: SIGMOIDAL, np.sqrt: ROOT, np.log: LOGARITHM, np.square: SQUARED, np.negative: MINUS
}


cdef class UfuncRule(ArrayRule):
    """A ufunc of one argument, with a scalar row."""

    cdef object partial
    cdef int slope, known, reads

    def __init__(self, recorder, f, partial, general):
        super().__init__(recorder, f, general)
        self.partial = partial
        own = getattr(partial, "__module__", None) == "plaingrad.rules.elementwise"
        self.slope = SLOPES_OF_ARRAYS.get(f, TIMES) if own else TIMES
        self.known = SLOPES.get(getattr(math, f.__name__, None), 0) if own else 0
        self.reads = steps.what_is_read(partial)

    def call(self, *args, **kwargs):
        """f(x)."""
        cdef Place* i
        cdef double slope = 0.0
        if len(args) != 1 or kwargs:
            return self.general(*args, **kwargs)
        x = args[0]
        if cnp.PyArray_CheckExact(x):
            z = self.recorder._elementwise(self.f, x, self.slope, self.partial, self.reads)
            return self.general(x) if z is None else z
        if self.recorder.outer is not None:
            return self.inside(x)
        if self.known and (PyFloat_CheckExact(x) or type(x) is NUMBER64):
            i = self.recorder.table.find(<PyObject*> x)
            if i == NULL:
                return self.f(x)
            if not slope_of(self.known, PyFloat_AS_DOUBLE(x), 1.0, &slope) or (
                self.known == SQUARE_ROOT and not PyFloat_AS_DOUBLE(x) > 0.0
            ):
                return self.general(x)  # which calls it, and so warns, once
            z = self.f(x)
            if type(z) is NUMBER64 and slope_of(self.known, PyFloat_AS_DOUBLE(x), PyFloat_AS_DOUBLE(z), &slope):
                self.recorder._function(z, PyFloat_AS_DOUBLE(x), self.known, slope, i)
                return z
        return self.general(x)


    cdef object inside(self, object x):
        """f(x) of a number where a forward level is around this one."""
        cdef double v, slope = 0.0
        if self.known and (PyFloat_CheckExact(x) or type(x) is NUMBER64):
            v = PyFloat_AS_DOUBLE(x)
            if slope_of(self.known, v, 1.0, &slope) and (self.known != SQUARE_ROOT or v > 0.0):
                z = self.f(x)
                if type(z) is NUMBER64 and slope_of(self.known, v, PyFloat_AS_DOUBLE(z), &slope):
                    self.recorder._along_both(z, x, slope, curvature_of(self.known, v, PyFloat_AS_DOUBLE(z)))
                    return z
        return self.general(x)


cdef class ProductRule(ArrayRule):
    """The matrix product of vectors and matrices."""

    def call(self, *args, **kwargs):
        """f(a, b)."""
        if len(args) == 2 and not kwargs:
            z = self.recorder._product(self.f, args[0], args[1])
            if z is not None:
                return z
        return self.general(*args, **kwargs)


cdef dict OPERATIONS_OF_UFUNCS = {np.add: ADD, np.subtract: SUB, np.multiply: MUL, np.true_divide: DIV}


cdef class ArithmeticUfunc(ArrayRule):
    """A ufunc that is an operator, too."""

    cdef int op

    def __init__(self, recorder, f, general):
        super().__init__(recorder, f, general)
        self.op = OPERATIONS_OF_UFUNCS[f]

    def call(self, *args, **kwargs):
        """f(a, b)."""
        if len(args) == 2 and not kwargs and (cnp.PyArray_CheckExact(args[0]) or cnp.PyArray_CheckExact(args[1])):
            z = self.recorder._arrays(args[0], args[1], self.op, False)
            if z is not None:
                return z
        return self.general(*args, **kwargs)


cdef inline bint is_vector_of_three(object x):
    return is_float64(x) and cnp.PyArray_NDIM(<cnp.ndarray> x) == 1 and cnp.PyArray_DIM(<cnp.ndarray> x, 0) == 3


cdef class CrossRule(ArrayRule):
    """The cross product of two vectors of three."""

    def call(self, *args, **kwargs):
        """f(a, b)."""
        if len(args) == 2 and not kwargs and is_vector_of_three(args[0]) and is_vector_of_three(args[1]):
            z = self.recorder._crossed(self.f, args[0], args[1])
            if z is not None:
                return z
        return self.general(*args, **kwargs)


cdef class SumOfArray(ArrayRule):
    """Sum or mean of an array, over all or over one axis."""

    cdef bint is_mean

    def __init__(self, recorder, f, general):
        super().__init__(recorder, f, general)
        self.is_mean = f is np.mean or f is np.ndarray.mean

    def call(self, *args, **kwargs):
        """f(a), or f(a, axis), with keepdims or without."""
        cdef Py_ssize_t given = len(args), named = 0
        cdef cnp.ndarray x
        cdef int nd
        cdef bint keeps = False
        if given == 0 or given > 2 or not is_float64(args[0]):
            return self.general(*args, **kwargs)
        axis = args[1] if given == 2 else None
        if kwargs:
            if "axis" in kwargs:
                if given == 2:
                    return self.general(*args, **kwargs)
                axis = kwargs["axis"]
                named += 1
            if "keepdims" in kwargs:
                if not PyBool_Check(kwargs["keepdims"]):
                    return self.general(*args, **kwargs)
                keeps = kwargs["keepdims"]
                named += 1
            if named != len(kwargs) or (keeps and axis is None):
                return self.general(*args, **kwargs)
        x = args[0]
        nd = cnp.PyArray_NDIM(x)
        if nd == 0 or cnp.PyArray_SIZE(x) == 0:
            return self.general(*args, **kwargs)
        if axis is not None and (not PyLong_CheckExact(axis) or not -nd <= axis < nd):
            return self.general(*args, **kwargs)
        z = self.recorder._sum(self.f, x, axis, self.is_mean, keeps)
        return self.general(*args, **kwargs) if z is None else z


cdef class ArrayCopier(ArrayRule):
    """A copy of an array; `astype` has the type, too."""

    cdef Py_ssize_t given

    def __init__(self, recorder, f, general):
        super().__init__(recorder, f, general)
        self.given = 2 if f is np.ndarray.astype else 1

    def call(self, *args, **kwargs):
        """f(a)."""
        if len(args) == self.given and not kwargs and is_float64(args[0]) and cnp.PyArray_NDIM(<cnp.ndarray> args[0]) > 0:
            if self.given == 1 or is_float_type(args[1]):
                z = self.recorder._copied(np.copy if self.given == 2 else self.f, args[0])  # in the order of what is copied
                if z is not None:
                    return z
        return self.general(*args, **kwargs)


cdef class ViewMaker(ArrayRule):
    """A function whose result is a view where it can be one: that is memory which has been filed."""

    def call(self, *args, **kwargs):
        """f(a, ...)."""
        cdef PyObject* owner
        if len(args) > 0 and is_float64(args[0]):
            owner = memory_of(args[0])
            if owner != NULL and may_be_view(args[0]):
                z = self.f(*args, **kwargs)
                if is_float64(z) and memory_of(z) == owner:
                    return z
        return self.general(*args, **kwargs)


cdef inline bint may_be_view(cnp.ndarray x) noexcept:
    """Whether another shape of `x` is a view of it, mostly; else it would be computed twice."""
    return cnp.PyArray_IS_C_CONTIGUOUS(x) or cnp.PyArray_IS_F_CONTIGUOUS(x)


cdef class ArrayMaker(ArrayRule):
    """np.array of numbers in a list, or in lists in a list, or of an array."""

    def call(self, *args, **kwargs):
        """np.array(values)."""
        cdef list numbers = []
        cdef bint nested = False
        if len(args) == 1 and not kwargs and is_float64(args[0]) and cnp.PyArray_NDIM(<cnp.ndarray> args[0]) > 0:
            z = self.recorder._copied(self.f, args[0])
            return self.general(*args) if z is None else z
        if len(args) == 1 and (not kwargs or (len(kwargs) == 1 and is_float_type(kwargs.get("dtype")))):
            values = args[0]
        elif len(args) == 2 and not kwargs and is_float_type(args[1]):
            values = args[0]
        else:
            return self.general(*args, **kwargs)
        if not (PyList_CheckExact(values) or PyTuple_CheckExact(values)):
            return self.general(*args, **kwargs)
        for part in values:
            if PyList_CheckExact(part) or PyTuple_CheckExact(part):
                nested = True
                if not add_numbers(part, numbers):
                    return self.general(*args, **kwargs)
            elif nested or not is_real(part):
                return self.general(*args, **kwargs)
        if not nested:
            numbers.extend(values)
        if not self.recorder.table.finds_any(numbers) and (
            self.recorder.outer is None or not self.recorder.outer.table.finds_any(numbers)
        ):
            if self.recorder.truncated or self.recorder.level.texts:
                return self.general(*args, **kwargs)
            return self.f(*args, **kwargs)
        z = self.recorder._made(self.f, args, kwargs)
        if is_new_array(z) and cnp.PyArray_SIZE(<cnp.ndarray> z) == len(numbers):
            z = self.recorder._gathered(z, numbers)
            if z is not None:
                return z
        return self.general(*args, **kwargs)


cdef bint add_numbers(object values, list numbers) except -1:
    """Append the numbers in `values`; False if something else is among them."""
    for x in values:
        if not is_real(x):
            return False
    numbers.extend(values)
    return True


cdef inline bint is_float_type(object t):
    return t is float or t is NUMBER64 or t is FLOAT64
