# -- calls in which nothing is active --------------------------------------------------------------------------------------


cdef class QuietCall:
    """A function with a rule of ours, called as it is with numbers and arrays that are not active; else generally."""

    cdef Arithmetic arithmetic
    cdef object f, general
    cdef Py_ssize_t most  # positional arguments, of a ufunc

    def __init__(self, arithmetic, f, general):
        self.arithmetic, self.f, self.general = arithmetic, f, general
        self.most = f.nin if type(f) is np.ufunc else 1000

    def call(self, *args, **kwargs):
        """f(*args, **kwargs)."""
        cdef Arithmetic m = self.arithmetic
        if m.outer is None and len(args) <= self.most and not m.truncated and not m.level.texts:
            for x in args:
                if not is_quiet(m, x, True):
                    break
            else:
                if not kwargs:
                    return self.f(*args)
                for x in kwargs.values():
                    if not is_quiet(m, x, False):
                        break
                else:
                    return self.f(*args, **kwargs)
        return self.general(*args, **kwargs)


cdef bint is_quiet(Arithmetic m, object x, bint arrays) except -1:
    """Whether `x` is a number, text, a class or an array that is not active, nor read again by the way back."""
    cdef PyObject* owner
    cdef int kind
    if PyFloat_CheckExact(x) or type(x) is NUMBER64:
        return m.table.find(<PyObject*> x) == NULL
    if PyLong_CheckExact(x) or x is None or PyBool_Check(x) or PyUnicode_CheckExact(x) or x is Ellipsis:
        return True
    if PyTuple_CheckExact(x):
        for y in <tuple> x:
            if not PyLong_CheckExact(y):
                return False
        return True
    if type(x) is TYPE:
        return not has_feature(<PyTypeObject*> <PyObject*> x, Py_TPFLAGS_HEAPTYPE)  # others may be called, and see numbers
    if not arrays or not cnp.PyArray_CheckExact(x):
        return False
    kind = cnp.PyArray_TYPE(<cnp.ndarray> x)
    if not cnp.PyTypeNum_ISNUMBER(kind) and not cnp.PyTypeNum_ISBOOL(kind):
        return False
    owner = cnp.PyArray_BASE(<cnp.ndarray> x)
    if owner == NULL:
        owner = <PyObject*> x
    elif not cnp.PyArray_CheckExact(<object> owner) or cnp.PyArray_BASE(<cnp.ndarray> owner) != NULL:
        return False
    if not cnp.PyArray_CHKFLAGS(<cnp.ndarray> owner, cnp.NPY_ARRAY_OWNDATA):
        return False
    key = PyLong_FromVoidPtr(<void*> owner)
    return key not in m.table.others and key not in m.level.captured
