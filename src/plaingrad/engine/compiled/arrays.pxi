# -- arrays of float64 --------------------------------------------------------------------------------------------------
#
# What a step on the tape needs of arrays up to `SMALL` is done here, element by element, with strides: views, broadcast
# operands and sums over axes are loops over the same elements. Larger arrays go back by the functions of NumPy.

cdef enum:
    MOST_AXES = 8

cdef Py_ssize_t SMALL = 4096  # elements; above, NumPy's own loops are worth their calls
cdef Py_ssize_t PAIRED_SUMS = 8  # NumPy adds as many terms in pairs, or fewer one after another

# What a step adds to a cotangent d, from g, which arrived, and arrays o and p or the number c.
cdef enum:
    BY_RESULT = 100  # the slope is the result

cdef enum:
    PLUS, MINUS, TIMES, OVER, QUOTIENT, NEGATIVE_TIMES, SCALED, UNSCALED, SQUARED, ROOT, LOGARITHM, SIGMOIDAL, ZERO
    TIMES_BOTH, SIGMOIDAL_DOT, ROOT_DOT, LOGARITHM_DOT  # of slopes' slopes: p is the tangent of o


# What the formula of a slope reads; as in `memory.compiled_steps`.
cdef int READS_ARGUMENT = 1, READS_RESULT = 2, READS_BOTH = 3
cdef Py_ssize_t LARGE_FORM = 1 << 14  # bytes of an array from which on it is worth giving back early


cdef struct Walk:
    char* data
    cnp.npy_intp strides[MOST_AXES]


cdef inline bint is_float64(object x):
    """Whether `x` is an array of float64 as this machine has them."""
    return (
        cnp.PyArray_CheckExact(x)
        and cnp.PyArray_TYPE(<cnp.ndarray> x) == cnp.NPY_DOUBLE
        and cnp.PyArray_ISALIGNED(<cnp.ndarray> x)
        and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray> x)
        and cnp.PyArray_NDIM(<cnp.ndarray> x) <= MOST_AXES
    )


cdef inline bint is_float64_or_none(object x):
    return x is None or is_float64(x)


cdef inline PyObject* memory_of(cnp.ndarray a) noexcept:
    """The array of float64 that has the memory of `a`, where that is seen at once; else NULL."""
    cdef PyObject* base = cnp.PyArray_BASE(a)
    if base == NULL:
        base = <PyObject*> a
    elif not cnp.PyArray_CheckExact(<object> base) or cnp.PyArray_BASE(<cnp.ndarray> base) != NULL:
        return NULL
    if not cnp.PyArray_CHKFLAGS(<cnp.ndarray> base, cnp.NPY_ARRAY_OWNDATA):
        return NULL
    return base if is_float64(<object> base) else NULL


cdef object changed_in_place(object a, object b, int op):
    """a op= b."""
    if op == ADD:
        return PyNumber_InPlaceAdd(a, b)
    if op == SUB:
        return PyNumber_InPlaceSubtract(a, b)
    if op == MUL:
        return PyNumber_InPlaceMultiply(a, b)
    return PyNumber_InPlaceTrueDivide(a, b)


cdef inline bint is_view(cnp.ndarray a) noexcept:
    return cnp.PyArray_BASE(a) != NULL


cdef inline bint has_shape(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether the two have one shape."""
    cdef int k
    if cnp.PyArray_NDIM(a) != cnp.PyArray_NDIM(b):
        return False
    for k in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, k) != cnp.PyArray_DIM(b, k):
            return False
    return True


cdef inline void walk_along(Walk* w, cnp.ndarray x, char* data, int nd, cnp.npy_intp* shape) noexcept:
    """How to go through `x`, whose elements begin at `data`, as it is broadcast to `shape`."""
    cdef int k, at
    cdef int missing = nd - cnp.PyArray_NDIM(x)
    w.data = data
    for k in range(nd):
        at = k - missing
        w.strides[k] = 0 if at < 0 or (cnp.PyArray_DIM(x, at) == 1 and shape[k] != 1) else cnp.PyArray_STRIDE(x, at)


cdef inline void stay_at(Walk* w, double* number, int nd) noexcept:
    cdef int k
    w.data = <char*> number
    for k in range(nd):
        w.strides[k] = 0


cdef inline double element(char* p) noexcept:
    return (<double*> p)[0]


cdef void accumulate(int kind, bint fresh, int nd, cnp.npy_intp* shape, Walk* d, Walk* g, Walk* o, Walk* p, double c) noexcept:
    """d += a product of g and a slope, element by element; `fresh`: d = that instead."""
    cdef cnp.npy_intp at[MOST_AXES]
    cdef cnp.npy_intp n = 1, k
    cdef cnp.npy_intp sd = 0, sg = 0, so = 0, sp = 0
    cdef char* pd = d.data
    cdef char* pg = g.data
    cdef char* po = o.data if o != NULL else NULL
    cdef char* pp = p.data if p != NULL else NULL
    cdef char* qd
    cdef char* qg
    cdef char* qo
    cdef char* qp
    cdef double v
    cdef int axis, last = nd - 1
    for axis in range(nd):
        if shape[axis] == 0:
            return
        at[axis] = 0
    if nd > 0:
        n = shape[last]
        sd, sg = d.strides[last], g.strides[last]
        if o != NULL:
            so = o.strides[last]
        if p != NULL:
            sp = p.strides[last]
    while True:
        qd, qg, qo, qp = pd, pg, po, pp
        for k in range(n):
            v = element(qg)
            if kind == PLUS:
                pass
            elif kind == MINUS:
                v = -v
            elif kind == TIMES:
                v = v * element(qo)
            elif kind == OVER:
                v = v / element(qo)
            elif kind == SCALED:
                v = v * c
            elif kind == UNSCALED:
                v = v / c
            elif kind == QUOTIENT:
                v = -v * (element(qo) / element(qp))
            elif kind == NEGATIVE_TIMES:
                v = -(v * element(qo))
            elif kind == SQUARED:
                v = v * (2.0 * element(qo))
            elif kind == ROOT:
                v = v * (0.5 / element(qo))
            elif kind == LOGARITHM:
                v = v * (1.0 / element(qo))
            elif kind == SIGMOIDAL:
                v = v * (1.0 - element(qo) * element(qo))
            elif kind == TIMES_BOTH:
                v = v * (element(qo) * element(qp))
            elif kind == SIGMOIDAL_DOT:
                v = v * (-2.0 * element(qo) * element(qp))
            elif kind == ROOT_DOT:
                v = v * (-0.5 / element(qo) * (element(qp) / element(qo)))
            elif kind == LOGARITHM_DOT:
                v = v * (-1.0 / element(qo) * (element(qp) / element(qo)))
            else:
                v = 0.0
            (<double*> qd)[0] = v if fresh else element(qd) + v
            qd += sd
            qg += sg
            qo += so
            qp += sp
        axis = last - 1
        while axis >= 0:
            at[axis] += 1
            pd += d.strides[axis]
            pg += g.strides[axis]
            if o != NULL:
                po += o.strides[axis]
            if p != NULL:
                pp += p.strides[axis]
            if at[axis] < shape[axis]:
                break
            at[axis] = 0
            pd -= shape[axis] * d.strides[axis]
            pg -= shape[axis] * g.strides[axis]
            if o != NULL:
                po -= shape[axis] * o.strides[axis]
            if p != NULL:
                pp -= shape[axis] * p.strides[axis]
            axis -= 1
        if axis < 0:
            return


cdef cnp.ndarray cross_of(cnp.ndarray u, cnp.ndarray v, cnp.ndarray more):
    """u x v + `more`, if that is not None, of vectors of three."""
    cdef cnp.npy_intp n = 3
    cdef cnp.npy_intp su = cnp.PyArray_STRIDE(u, 0), sv = cnp.PyArray_STRIDE(v, 0)
    cdef char* pu = <char*> cnp.PyArray_DATA(u)
    cdef char* pv = <char*> cnp.PyArray_DATA(v)
    cdef cnp.ndarray z = cnp.PyArray_EMPTY(1, &n, cnp.NPY_DOUBLE, 0)
    cdef double* p = <double*> cnp.PyArray_DATA(z)
    p[0] = element(pu + su) * element(pv + 2 * sv) - element(pu + 2 * su) * element(pv + sv)
    p[1] = element(pu + 2 * su) * element(pv) - element(pu) * element(pv + 2 * sv)
    p[2] = element(pu) * element(pv + sv) - element(pu + su) * element(pv)
    if more is not None:
        for n in range(3):
            p[n] += element(<char*> cnp.PyArray_DATA(more) + n * cnp.PyArray_STRIDE(more, 0))
    return z


cdef object all_of(object z):
    """The array with the memory of `z`, a new array or all of one by another name; None if it is neither."""
    cdef PyObject* owner
    if not is_float64(z):
        return None
    owner = memory_of(z)
    if owner == NULL or not has_shape(<cnp.ndarray> owner, z) or not has_strides(<cnp.ndarray> owner, z):
        return None
    return <object> owner if cnp.PyArray_DATA(<cnp.ndarray> owner) == cnp.PyArray_DATA(<cnp.ndarray> z) else None


cdef inline bint is_basic(object k):
    """Whether a[k] is a view, or one number."""
    cdef Py_ssize_t n
    if PyTuple_CheckExact(k):
        for n in range(PyTuple_GET_SIZE(k)):
            if not is_basic_part(<object> PyTuple_GET_ITEM(k, n)):
                return False
        return True
    return is_basic_part(k)


cdef inline bint is_basic_part(object k):
    return PyLong_CheckExact(k) or type(k) is slice or k is None or k is Ellipsis


cdef char* address_of(cnp.ndarray a, object k) noexcept:
    """Where the element a[k] is, for whole numbers `k`; NULL where `k` is not one element, or outside."""
    cdef char* p = <char*> cnp.PyArray_DATA(a)
    cdef int nd = cnp.PyArray_NDIM(a), axis
    cdef int overflow
    cdef cnp.npy_intp at
    cdef PyObject* part
    if PyLong_CheckExact(k):
        if nd != 1:
            return NULL
    elif not PyTuple_CheckExact(k) or PyTuple_GET_SIZE(k) != nd:
        return NULL
    for axis in range(nd):
        part = <PyObject*> k if PyLong_CheckExact(k) else PyTuple_GET_ITEM(k, axis)
        if not PyLong_CheckExact(<object> part):
            return NULL
        at = PyLong_AsLongLongAndOverflow(<object> part, &overflow)
        if overflow:
            return NULL
        if at < 0:
            at += cnp.PyArray_DIM(a, axis)
        if at < 0 or at >= cnp.PyArray_DIM(a, axis):
            return NULL
        p += at * cnp.PyArray_STRIDE(a, axis)
    return p


cdef inline bint has_strides(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays of one shape have one layout."""
    cdef int k
    for k in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, k) > 1 and cnp.PyArray_STRIDE(a, k) != cnp.PyArray_STRIDE(b, k):
            return False
    return True


cdef inline bint is_new_array(object z):
    """Whether `z` is an array of float64 with memory of its own, as operations make them."""
    return is_float64(z) and not is_view(z) and cnp.PyArray_CHKFLAGS(<cnp.ndarray> z, cnp.NPY_ARRAY_OWNDATA)


cdef object region_of(Table table, cnp.ndarray a):
    """The `Region` of array `a` in a table; None if it has no tangent, `MISSING` if that is not to be said here."""
    cdef PyObject* owner = memory_of(a)
    cdef PyObject* found
    if owner == NULL:
        return MISSING
    found = PyDict_GetItemWithError(table.others, PyLong_FromVoidPtr(<void*> owner))
    if found == NULL:
        return None
    return <object> found if type(<object> found) is steps.Region else MISSING


cdef bint may_write(object level, object region) except -1:
    """Whether a write to memory with a tangent is seen by no other name."""
    cdef dict fresh = level.fresh
    twin = fresh.get(region) if fresh else None
    return twin is None or twin.written
