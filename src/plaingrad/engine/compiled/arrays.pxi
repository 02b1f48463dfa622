# -- arrays of float64 --------------------------------------------------------------------------------------------------
#
# What a step on the tape needs of arrays up to `SMALL` is done here, element by element, with strides: views, broadcast
# operands and sums over axes are loops over the same elements. So are larger ones where rows lie side by side, without the
# GIL; other larger arrays go back by the functions of NumPy.

cdef enum:
    MOST_AXES = 8

cdef Py_ssize_t SMALL = 4096  # elements; above, other threads may go on, and NumPy's order of going through axes is better
cdef Py_ssize_t SHORT_ROW = 256  # elements of a row of such an array; below, NumPy
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


cdef inline double element(char* p) noexcept nogil:
    return (<double*> p)[0]


cdef inline double term_of(int kind, double v, double o, double p, double c) noexcept nogil:
    """A product of `v`, which arrived, and a slope."""
    if kind == PLUS:
        return v
    if kind == MINUS:
        return -v
    if kind == TIMES:
        return v * o
    if kind == OVER:
        return v / o
    if kind == SCALED:
        return v * c
    if kind == UNSCALED:
        return v / c
    if kind == QUOTIENT:
        return -v * (o / p)
    if kind == NEGATIVE_TIMES:
        return -(v * o)
    if kind == SQUARED:
        return v * (2.0 * o)
    if kind == ROOT:
        return v * (0.5 / o)
    if kind == LOGARITHM:
        return v * (1.0 / o)
    if kind == SIGMOIDAL:
        return v * (1.0 - o * o)
    if kind == TIMES_BOTH:
        return v * (o * p)
    if kind == SIGMOIDAL_DOT:
        return v * (-2.0 * o * p)
    if kind == ROOT_DOT:
        return v * (-0.5 / o * (p / o))
    if kind == LOGARITHM_DOT:
        return v * (-1.0 / o * (p / o))
    return 0.0


cdef struct Run:  # along one axis: where d, g, o and p begin, and how far apart their elements are
    Py_ssize_t n
    char* d
    char* g
    char* o
    char* p
    Py_ssize_t sd, sg, so, sp
    double c


# Called with constants for `kind`, `fresh` and `packed`, these are a loop each, of the processor's vectors where the
# elements lie side by side.
cdef inline void go_along(int kind, bint fresh, bint packed, Run* r) noexcept nogil:
    cdef Py_ssize_t k, n = r.n
    cdef Py_ssize_t sd = sizeof(double) if packed else r.sd, sg = sizeof(double) if packed else r.sg
    cdef Py_ssize_t so = sizeof(double) if packed else r.so, sp = sizeof(double) if packed else r.sp
    cdef char* d = r.d
    cdef char* g = r.g
    cdef char* o = r.o
    cdef char* p = r.p
    cdef double c = r.c
    cdef bint reads_p = (
        kind == QUOTIENT or kind == TIMES_BOTH or kind == SIGMOIDAL_DOT or kind == ROOT_DOT or kind == LOGARITHM_DOT
    )
    cdef bint reads_o = not (kind == PLUS or kind == MINUS or kind == SCALED or kind == UNSCALED or kind == ZERO)
    for k in range(n):
        v = term_of(
            kind, element(g + k * sg), element(o + k * so) if reads_o else 0.0, element(p + k * sp) if reads_p else 0.0, c
        )
        (<double*> (d + k * sd))[0] = v if fresh else element(d + k * sd) + v


cdef inline void go_by_kind(int kind, bint fresh, bint packed, Run* r) noexcept nogil:
    if kind == PLUS:
        go_along(PLUS, fresh, packed, r)
    elif kind == MINUS:
        go_along(MINUS, fresh, packed, r)
    elif kind == TIMES:
        go_along(TIMES, fresh, packed, r)
    elif kind == OVER:
        go_along(OVER, fresh, packed, r)
    elif kind == QUOTIENT:
        go_along(QUOTIENT, fresh, packed, r)
    elif kind == NEGATIVE_TIMES:
        go_along(NEGATIVE_TIMES, fresh, packed, r)
    elif kind == SCALED:
        go_along(SCALED, fresh, packed, r)
    elif kind == UNSCALED:
        go_along(UNSCALED, fresh, packed, r)
    elif kind == SQUARED:
        go_along(SQUARED, fresh, packed, r)
    elif kind == ROOT:
        go_along(ROOT, fresh, packed, r)
    elif kind == LOGARITHM:
        go_along(LOGARITHM, fresh, packed, r)
    elif kind == SIGMOIDAL:
        go_along(SIGMOIDAL, fresh, packed, r)
    elif kind == ZERO:
        go_along(ZERO, fresh, packed, r)
    elif kind == TIMES_BOTH:
        go_along(TIMES_BOTH, fresh, packed, r)
    elif kind == SIGMOIDAL_DOT:
        go_along(SIGMOIDAL_DOT, fresh, packed, r)
    elif kind == ROOT_DOT:
        go_along(ROOT_DOT, fresh, packed, r)
    else:
        go_along(LOGARITHM_DOT, fresh, packed, r)


cdef void go(int kind, bint fresh, bint is_o, bint is_p, Run* r) noexcept nogil:
    """d += the terms along one axis; `fresh`: d = the terms. `is_o`, `is_p`: whether there are o and p."""
    cdef Py_ssize_t unit = sizeof(double)
    if r.so == 0 and is_o and not is_p and (kind == TIMES or kind == OVER):
        r.c = element(r.o)
        kind = SCALED if kind == TIMES else UNSCALED
        is_o = False
    if r.sd == unit and r.sg == unit and (r.so == unit or not is_o) and (r.sp == unit or not is_p):
        if fresh:
            go_by_kind(kind, True, True, r)
        else:
            go_by_kind(kind, False, True, r)
    elif fresh:
        go_by_kind(kind, True, False, r)
    else:
        go_by_kind(kind, False, False, r)


cdef void accumulate(int kind, bint fresh, int nd, cnp.npy_intp* shape, Walk* d, Walk* g, Walk* o, Walk* p, double c) noexcept nogil:
    """d += a product of g and a slope, element by element; `fresh`: d = that instead."""
    cdef cnp.npy_intp at[MOST_AXES]
    cdef Run r
    cdef Run row
    cdef int axis, first = nd
    for axis in range(nd):
        if shape[axis] == 0:
            return
        at[axis] = 0
    r.n, r.c = 1, c
    r.sd = r.sg = r.so = r.sp = 0
    r.d, r.g = d.data, g.data
    r.o, r.p = o.data if o != NULL else NULL, p.data if p != NULL else NULL
    if nd > 0:
        axis = first = nd - 1
        r.n = shape[axis]
        r.sd, r.sg = d.strides[axis], g.strides[axis]
        if o != NULL:
            r.so = o.strides[axis]
        if p != NULL:
            r.sp = p.strides[axis]
        while first > 0:  # axes along which all lie one behind the other are one
            axis = first - 1
            if shape[axis] != 1 and not (
                d.strides[axis] == r.n * r.sd and g.strides[axis] == r.n * r.sg
                and (o == NULL or o.strides[axis] == r.n * r.so) and (p == NULL or p.strides[axis] == r.n * r.sp)
            ):
                break
            r.n *= shape[axis]
            first = axis
    while True:
        row = r
        go(kind, fresh, o != NULL, p != NULL, &row)
        axis = first - 1
        while axis >= 0:
            at[axis] += 1
            r.d += d.strides[axis]
            r.g += g.strides[axis]
            if o != NULL:
                r.o += o.strides[axis]
            if p != NULL:
                r.p += p.strides[axis]
            if at[axis] < shape[axis]:
                break
            at[axis] = 0
            r.d -= shape[axis] * d.strides[axis]
            r.g -= shape[axis] * g.strides[axis]
            if o != NULL:
                r.o -= shape[axis] * o.strides[axis]
            if p != NULL:
                r.p -= shape[axis] * p.strides[axis]
            axis -= 1
        if axis < 0:
            return


cdef inline bint is_in_rows(Walk* w, int nd, cnp.npy_intp* shape) noexcept:
    """Whether the elements of a long last axis lie side by side, or are one."""
    return w == NULL or (
        nd > 0 and shape[nd - 1] >= SHORT_ROW and (w.strides[nd - 1] == sizeof(double) or w.strides[nd - 1] == 0)
    )


cdef void accumulate_unlocked(int kind, bint fresh, int nd, cnp.npy_intp* shape, Walk* d, Walk* g, Walk* o, Walk* p, double c) noexcept:
    """`accumulate` of large arrays: other threads go on meanwhile. The caller holds what the walks point to."""
    with nogil:
        accumulate(kind, fresh, nd, shape, d, g, o, p, c)


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


cdef object result_of(Table table, object z):
    """`z`, an array in memory of its own as functions return it; of one in memory that only it refers to, a copy; else None."""
    cdef PyObject* owner
    if not is_float64(z):
        return None
    if not is_view(z):
        return z if is_new_array(z) else None
    owner = memory_of(z)
    if owner == NULL or Py_REFCNT(owner) != 1 or PyDict_GetItemWithError(table.others, PyLong_FromVoidPtr(<void*> owner)) != NULL:
        return None
    return cnp.PyArray_NewCopy(z, cnp.NPY_KEEPORDER)


cdef object sum_of(object f, object x, object axis, bint by_name, bint keeps):
    """f(x, axis), a sum or mean; `by_name`: to be called as it is."""
    if not by_name:
        return np.add.reduce(x, axis, None, None, keeps)
    return f(x, axis, keepdims=True) if keeps else f(x, axis)


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


cdef object part_of(object whole, cnp.ndarray x, char* data):
    """What lies in `whole`, from `data` on, as `x` does in its memory; to be read."""
    view = cnp.PyArray_New(
        NDARRAY, cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.NPY_DOUBLE, cnp.PyArray_STRIDES(x), data, 0,
        cnp.NPY_ARRAY_ALIGNED, None,
    )
    cnp.set_array_base(view, whole)
    return view


cdef inline bint is_new_array(object z):
    """Whether `z` is an array of float64 with memory of its own, as operations make them."""
    return is_float64(z) and not is_view(z) and cnp.PyArray_CHKFLAGS(<cnp.ndarray> z, cnp.NPY_ARRAY_OWNDATA)


cdef int sweep_owners(Arithmetic m, list owners) except -1:
    """As `_sweep_arrays` of the level: take out of its table the `owners` of memory that nothing else refers to."""
    cdef object level = m.level, lock = level.sweeping
    cdef list dead = [], alive = []  # the dead, and what was filed of them, are let go of when all is in order again
    cdef int64_t held = 0
    if level.parent is not outermost or not level.may_sweep or lock._is_owned() or not lock.acquire(False):
        level._sweep_arrays()
        return 0
    try:
        for owner in owners:
            if Py_REFCNT(<PyObject*> owner) > 2:  # that of the list, and `owner`
                alive.append(owner)
            else:
                dead.append(owner)
                dead.append(m.table.others.pop(PyLong_FromVoidPtr(<void*> <PyObject*> owner), None))
        owners[:] = alive
    finally:
        lock.release()
    for owner in alive:
        held += cnp.PyArray_NBYTES(<cnp.ndarray> owner) if cnp.PyArray_CheckExact(owner) else <int64_t> getattr(owner, "nbytes", 0)
    level._array_bytes = m.array_bytes = 0
    level._array_limit = m.array_limit = m.first_limit + max(held // 4, 800 * len(alive))
    return 0


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
