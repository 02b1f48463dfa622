# -- arrays of float64 in reverse mode ----------------------------------------------------------------------------------
#
# What a step on the tape needs of arrays up to `SMALL` is done here, element by element, with strides: views, broadcast
# operands and sums over axes are loops over the same elements. Larger arrays go back by the functions of NumPy.

cdef enum:
    MOST_AXES = 8

cdef Py_ssize_t SMALL = 4096  # elements; above, NumPy's own loops are worth their calls
cdef Py_ssize_t PAIRED_SUMS = 8  # NumPy adds as many terms in pairs, or fewer one after another

# What a step adds to a cotangent d, from g, which arrived, and arrays o and p or the number c.
cdef enum:
    PLUS, MINUS, TIMES, OVER, QUOTIENT, SCALED, UNSCALED, SQUARED, ROOT, LOGARITHM, SIGMOIDAL, ZERO


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
            elif kind == SQUARED:
                v = v * (2.0 * element(qo))
            elif kind == ROOT:
                v = v * (0.5 / element(qo))
            elif kind == LOGARITHM:
                v = v * (1.0 / element(qo))
            elif kind == SIGMOIDAL:
                v = v * (1.0 - element(qo) * element(qo))
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


# -- cotangents of arrays -----------------------------------------------------------------------------------------------

cdef cnp.ndarray writable_bar(Bars bars, set owned, int64_t i, cnp.ndarray owner, int nd, cnp.npy_intp* shape, bint* fresh):
    """The cotangent of region `i` to be written, None where that is not for here.

    `owner` has the region's memory, in whose layout the cotangent is wanted; None: any layout of `shape` will do.
    `fresh`, where that is given: whether nothing had arrived, so that what is in it has no meaning; else it is zero then.
    """
    cdef cnp.ndarray bar
    cdef int order = 0
    index = i
    if owner is not None:
        nd, shape = cnp.PyArray_NDIM(owner), cnp.PyArray_DIMS(owner)
        if not cnp.PyArray_IS_C_CONTIGUOUS(owner):
            if not cnp.PyArray_IS_F_CONTIGUOUS(owner):
                return None
            order = 1
    if bars.cells[i].bits == NOTHING:
        if fresh != NULL:
            fresh[0] = True
            bar = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, order)
        else:
            bar = cnp.PyArray_ZEROS(nd, shape, cnp.NPY_DOUBLE, order)
        bars.others[index] = bar
        bars.cells[i].bits = OBJECT
        owned.add(index)
        return bar
    if bars.cells[i].bits != OBJECT:
        return None
    found = bars.others[index]
    if not is_float64(found):
        return None
    bar = found
    if not PySet_Contains(owned, index):
        bar = cnp.PyArray_NewCopy(bar, cnp.NPY_KEEPORDER if owner is None else cnp.NPY_FORTRANORDER if order else cnp.NPY_CORDER)
        bars.others[index] = bar
        owned.add(index)
    if owner is not None:
        if not has_shape(bar, owner):
            return None
        if not (cnp.PyArray_IS_F_CONTIGUOUS(bar) if order else cnp.PyArray_IS_C_CONTIGUOUS(bar)):
            return None
    return bar


cdef bint walk_to(Walk* w, Bars bars, set owned, int64_t i, object a, int nd, cnp.npy_intp* shape, bint* fresh) except -1:
    """How to write to the cotangent of `a`, in region `i`, broadcast to `shape`; False where that is not for here.

    `a` is None for whole arrays of that very shape.
    """
    cdef cnp.ndarray bar, owner, x
    cdef PyObject* found
    if a is None:
        bar = writable_bar(bars, owned, i, None, nd, shape, fresh)
        if bar is None:
            return False
        walk_along(w, bar, <char*> cnp.PyArray_DATA(bar), nd, shape)
        return True
    x = a
    found = memory_of(x)
    if found == NULL:
        return False
    owner = <cnp.ndarray> found
    bar = writable_bar(bars, owned, i, owner, 0, NULL, NULL)
    if bar is None:
        return False
    walk_along(w, x, <char*> cnp.PyArray_DATA(bar) + (<char*> cnp.PyArray_DATA(x) - <char*> cnp.PyArray_DATA(owner)), nd, shape)
    return True


cdef void let_go(object shadow, set owned, Bars bars, int64_t n) except *:
    """Nothing refers to the cotangent of region `n` any more: what made it has been gone back over."""
    index = n
    bars.cells[n].bits = NOTHING
    bars.others.pop(index, None)
    owned.discard(index)
    shadow.laid.pop(index, None)


cdef inline void add_number(Bars bars, int64_t j, double v) except *:
    if bars.cells[j].bits == NOTHING:
        bars._put(j, v)
    elif bars.cells[j].bits != OBJECT:
        bars._put(j, bars.cells[j].number + v)
    else:
        bars.add(j, v)


cdef double* element_of(Bars bars, set owned, dict layouts, int64_t i, int64_t offset) except? NULL:
    """Where the cotangent of one element of region `i` is; NULL where it is not for here."""
    cdef cnp.ndarray bar = writable_bar(bars, owned, i, layouts[i], 0, NULL, NULL)
    if bar is None:
        return NULL
    return <double*> cnp.PyArray_DATA(bar) + offset


# -- steps --------------------------------------------------------------------------------------------------------------

cdef enum:  # besides ADD, SUB, MUL, DIV
    UNARY = 4
    PRODUCT, SUM, ADDED_TO, SCALED_BY, WRITTEN, GATHERED


@cython.final
@cython.freelist(64)
cdef class ArrayStep:
    """One operation on arrays: z = a op b, of which `n`, `i` and `j` are the regions or numbers; below 0, not active."""

    cdef int op, slope
    cdef int64_t n, i, j
    cdef object z, a, b  # None where the way back does without
    cdef double c
    cdef object more

    cdef tuple triple(self):
        """The same as an entry of a tape in Python's form."""
        i = None if self.i < 0 else self.i
        j = None if self.j < 0 else self.j
        return steps.TRIPLES[self.op](self.n, self.z, self.a, i, self.b, j, self.c, self.slope, self.more)

    cdef int held_in(self, list found) except -1:
        """Add what it refers to to a list."""
        found.extend([x for x in (self.z, self.a, self.b, self.more) if x is not None])
        return 0

    cdef int in_python(self, object shadow, object undone) except -1:
        args, kind, what = self.triple()
        if kind == CALLED:
            what(shadow, *args)
        else:
            what.back(shadow, undone)
        return 0

    cdef int back(self, object shadow, Bars bars, object undone) except -1:
        """Carry the cotangent of what it made back to what it was made of."""
        cdef set owned
        cdef bint done
        cdef int64_t n = self.i if self.op == ADDED_TO or self.op == SCALED_BY or self.op == WRITTEN else self.n
        if bars.cells[n].bits == NOTHING:
            return 0
        owned = shadow.owned
        if self.op <= DIV:
            done = self.binary_back(bars, owned, shadow, undone)
        elif self.op == UNARY:
            done = self.unary_back(bars, owned, shadow)
        elif self.op == PRODUCT:
            done = self.product_back(bars, owned, shadow)
        elif self.op == SUM:
            done = self.sum_back(bars, owned)
        elif self.op == GATHERED:
            done = self.gathered_back(bars)
        else:
            done = self.changed_back(bars, owned)
        if not done:
            self.in_python(shadow, undone)
        if self.op <= SUM or self.op == GATHERED:
            let_go(shadow, owned, bars, n)
        return 0

    cdef cnp.ndarray arrived(self, Bars bars):
        """The cotangent of the result, if it is an array to be gone through here; else None."""
        cdef cnp.ndarray g
        if bars.cells[self.n].bits != OBJECT:
            return None
        found = bars.others[self.n]
        if not is_float64(found):
            return None
        g = found
        return g if cnp.PyArray_SIZE(g) <= SMALL else None

    cdef bint binary_back(self, Bars bars, set owned, object shadow, object undone) except -1:
        cdef cnp.ndarray g = self.arrived(bars)
        cdef int nd, to_a = PLUS, to_b = PLUS
        cdef cnp.npy_intp* shape
        cdef Walk wg, wa, wb, wz
        cdef Walk* by_a = NULL
        cdef Walk* by_b = NULL
        cdef Walk* over = NULL
        cdef bint has_a, has_b
        cdef int64_t i
        if g is None:
            return False
        nd, shape = cnp.PyArray_NDIM(g), cnp.PyArray_DIMS(g)
        walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
        has_a, has_b = cnp.PyArray_CheckExact(self.a), cnp.PyArray_CheckExact(self.b)
        if has_a:
            walk_along(&wa, self.a, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.a), nd, shape)
        if has_b:
            walk_along(&wb, self.b, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.b), nd, shape)
        if self.op == SUB:
            to_b = MINUS
        elif self.op == MUL:
            to_a, by_a = TIMES if has_b else SCALED, &wb
            to_b, by_b = TIMES if has_a else SCALED, &wa
        elif self.op == DIV:
            to_a, by_a = OVER if has_b else UNSCALED, &wb
            if self.j >= 0:
                walk_along(&wz, self.z, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.z), nd, shape)
                if not has_b:
                    stay_at(&wb, &self.c, nd)
                to_b, by_b, over = QUOTIENT, &wz, &wb
        if self.i >= 0 and not self.give(bars, owned, shadow, self.i, self.whole_or(self.a, g), g, to_a, &wg, by_a, NULL):
            return False
        if self.j >= 0 and not self.give(bars, owned, shadow, self.j, self.whole_or(self.b, g), g, to_b, &wg, by_b, over):
            i = self.i
            self.i = -1  # that has been done
            try:
                self.in_python(shadow, undone)
            finally:
                self.i = i
        return True

    cdef object whole_or(self, object x, cnp.ndarray g):
        """None for a whole array of the result's shape, whose cotangent may have any layout; `x` otherwise."""
        if x is None or type(x) is not NDARRAY:
            return x
        return None if not is_view(x) and has_shape(x, g) else x

    cdef bint give(
        self, Bars bars, set owned, object shadow, int64_t i, object a, cnp.ndarray g, int kind, Walk* wg, Walk* wo, Walk* wp
    ) except -1:
        """Add to the cotangent of operand `a`, an array (None: whole, of the result's shape) or a number."""
        cdef Walk d
        cdef int nd = cnp.PyArray_NDIM(g)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(g)
        cdef cnp.npy_intp size = cnp.PyArray_SIZE(g)
        cdef bint fresh = False, is_array = a is None or type(a) is NDARRAY
        cdef double total = 0.0
        cdef cnp.ndarray terms
        if size >= PAIRED_SUMS and (not is_array or (a is not None and cnp.PyArray_SIZE(<cnp.ndarray> a) < size)):
            terms = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)  # summed by NumPy, which adds in pairs
            walk_along(&d, terms, <char*> cnp.PyArray_DATA(terms), nd, shape)
            accumulate(kind, True, nd, shape, &d, wg, wo, wp, self.c)
            if is_array:
                self.add(bars, owned, shadow, i, a, steps.unbroadcast(terms, a.shape))
            else:
                add_number(bars, i, real(np.add.reduce(terms, None)))
            return True
        if is_array:
            if not walk_to(&d, bars, owned, i, a, nd, shape, &fresh if a is None else NULL):
                return False
            accumulate(kind, fresh, nd, shape, &d, wg, wo, wp, self.c)
            return True
        stay_at(&d, &total, nd)
        accumulate(kind, False, nd, shape, &d, wg, wo, wp, self.c)
        add_number(bars, i, total)
        return True

    cdef bint unary_back(self, Bars bars, set owned, object shadow) except -1:
        cdef cnp.ndarray g = self.arrived(bars)
        cdef cnp.ndarray by
        cdef int nd, kind = self.slope
        cdef cnp.npy_intp* shape
        cdef Walk wg, wo
        if g is None:
            return False
        nd, shape = cnp.PyArray_NDIM(g), cnp.PyArray_DIMS(g)
        if kind == MINUS:
            by = g
        elif kind == SIGMOIDAL or kind == ROOT or (kind == TIMES and self.c == 1.0):
            by = self.z
        elif kind == TIMES:
            slope = self.more(np, self.a, self.z)
            if not is_float64(slope) or not has_shape(slope, g):
                return False
            by = slope
        else:
            by = self.a
        walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
        walk_along(&wo, by, <char*> cnp.PyArray_DATA(by), nd, shape)
        x = self.a if self.a is not None and is_view(self.a) else None
        return self.give(bars, owned, shadow, self.i, x, g, kind, &wg, &wo, NULL)

    cdef bint sum_back(self, Bars bars, set owned) except -1:
        """Of a sum or mean over one axis, or all: `more` is the shape of what was added up, `slope` the axis."""
        cdef cnp.ndarray g
        cdef int nd = len(<tuple> self.more), k, at = 0
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef Walk wg, d
        cdef Py_ssize_t size = 1
        cdef double number
        cdef bint fresh = False
        cdef int kind = PLUS if self.c == 0.0 else UNSCALED
        for k in range(nd):
            shape[k] = (<tuple> self.more)[k]
            size *= shape[k]
        if size > SMALL:
            return False
        if bars.cells[self.n].bits != OBJECT:
            number = bars.cells[self.n].number
            stay_at(&wg, &number, nd)
        else:
            g = self.arrived(bars)
            if g is None or self.slope < 0 or cnp.PyArray_NDIM(g) != nd - 1:
                return False
            wg.data = <char*> cnp.PyArray_DATA(g)
            for k in range(nd):
                if k == self.slope:
                    wg.strides[k] = 0
                else:
                    if cnp.PyArray_DIM(g, at) != shape[k]:
                        return False
                    wg.strides[k] = cnp.PyArray_STRIDE(g, at)
                    at += 1
        if not walk_to(&d, bars, owned, self.i, self.a, nd, shape, &fresh if self.a is None else NULL):
            return False
        accumulate(kind, fresh, nd, shape, &d, &wg, NULL, NULL, self.c)
        return True

    cdef bint product_back(self, Bars bars, set owned, object shadow) except -1:
        """Of a matrix product of vectors and matrices."""
        cdef int na = self.slope >> 8, nb = self.slope & 255
        if bars.cells[self.n].bits != OBJECT:
            z_bar = PyFloat_FromDouble(bars.cells[self.n].number)
        else:
            z_bar = bars.others[self.n]
            if not is_float64(z_bar):
                return False
        if (type(z_bar) is float) != (na == 1 and nb == 1):
            return False
        if self.i >= 0:
            if nb == 1:
                self.outer_product(bars, owned, shadow, self.i, self.a, z_bar, self.b, na == 2)
            else:
                x_bar = PyNumber_MatrixMultiply(self.b if na == 1 else z_bar, z_bar if na == 1 else transposed(self.b))
                self.add(bars, owned, shadow, self.i, self.a, x_bar)
        if self.j >= 0:
            if na == 1:
                self.outer_product(bars, owned, shadow, self.j, self.b, self.a, z_bar, nb == 2)
            else:
                self.add(bars, owned, shadow, self.j, self.b, PyNumber_MatrixMultiply(transposed(self.a), z_bar))
        return True

    cdef int outer_product(self, Bars bars, set owned, object shadow, int64_t i, object a, object u, object v, bint is_matrix) except -1:
        """Add u v^T, or a number times a vector, to the cotangent of `a`."""
        cdef Walk d, wu, wv
        cdef cnp.ndarray x, y
        cdef cnp.npy_intp shape[2]
        cdef bint fresh = False
        cdef double number
        cdef int nd = 1
        x = u if cnp.PyArray_CheckExact(u) else v
        y = v if cnp.PyArray_CheckExact(v) else u
        shape[0] = cnp.PyArray_DIM(x, 0)
        if is_matrix:
            nd = 2
            shape[1] = cnp.PyArray_DIM(y, 0)
        whole = a if a is not None and is_view(a) else None
        if shape[0] * (shape[1] if is_matrix else 1) > SMALL or not walk_to(&d, bars, owned, i, whole, nd, shape, &fresh if whole is None else NULL):
            x_bar = np.multiply.outer(u, v) if is_matrix else PyNumber_Multiply(u, v)
            shadow.add_array(i, steps.WHOLE if whole is None else whole, x_bar)
            return 0
        if is_matrix:
            wu.data, wv.data = <char*> cnp.PyArray_DATA(x), <char*> cnp.PyArray_DATA(y)
            wu.strides[0], wu.strides[1] = cnp.PyArray_STRIDE(x, 0), 0
            wv.strides[0], wv.strides[1] = 0, cnp.PyArray_STRIDE(y, 0)
        else:
            number = real(u if x is v else v)
            stay_at(&wu, &number, 1)
            walk_along(&wv, x, <char*> cnp.PyArray_DATA(x), 1, shape)
        accumulate(TIMES, fresh, nd, shape, &d, &wu, &wv, NULL, 0.0)
        return 0

    cdef int add(self, Bars bars, set owned, object shadow, int64_t i, object a, object x_bar) except -1:
        """Add `x_bar`, which is nobody else's, to the cotangent of `a` (None: a whole array)."""
        cdef Walk d, w
        cdef cnp.ndarray x
        cdef bint fresh = False
        whole = a if a is not None and is_view(a) else None
        if is_float64(x_bar):
            x = x_bar
            if whole is None and bars.cells[i].bits == NOTHING and not is_view(x):
                index = i
                bars.others[index] = x
                bars.cells[i].bits = OBJECT
                owned.add(index)
                return 0
            if cnp.PyArray_SIZE(x) <= SMALL:
                if walk_to(&d, bars, owned, i, whole, cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), &fresh if whole is None else NULL):
                    walk_along(&w, x, <char*> cnp.PyArray_DATA(x), cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x))
                    accumulate(PLUS, fresh, cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), &d, &w, NULL, NULL, 0.0)
                    return 0
        shadow.add_array(i, steps.WHOLE if whole is None else whole, x_bar)
        return 0

    cdef bint gathered_back(self, Bars bars) except -1:
        """Of an array made of numbers: `more` has their indices."""
        cdef cnp.ndarray g
        cdef double* p
        cdef Py_ssize_t k
        cdef int64_t j
        if bars.cells[self.n].bits != OBJECT or not is_float64(bars.others[self.n]):
            return False
        g = cnp.PyArray_GETCONTIGUOUS(bars.others[self.n])
        p = <double*> cnp.PyArray_DATA(g)
        for k, i in enumerate(<tuple> self.more):
            j = i
            if j >= 0:
                add_number(bars, j, p[k])
        return True

    cdef bint changed_back(self, Bars bars, set owned) except -1:
        """Of what was written into view or array `a` of region `i`."""
        cdef Walk d, db
        cdef cnp.ndarray x = self.a
        cdef int nd = cnp.PyArray_NDIM(x)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(x)
        cdef double total = 0.0
        if cnp.PyArray_SIZE(x) > SMALL or not walk_to(&d, bars, owned, self.i, x, nd, shape, NULL):
            return False
        if self.op == SCALED_BY:
            accumulate(self.slope, True, nd, shape, &d, &d, NULL, NULL, self.c)
            return True
        if self.j >= 0:
            if type(self.b) is NDARRAY:
                if cnp.PyArray_SIZE(<cnp.ndarray> self.b) < cnp.PyArray_SIZE(x) and cnp.PyArray_SIZE(x) >= PAIRED_SUMS:
                    return False
                if not walk_to(&db, bars, owned, self.j, self.b, nd, shape, NULL):
                    return False
                accumulate(self.slope, False, nd, shape, &db, &d, NULL, NULL, 0.0)
            else:
                if cnp.PyArray_SIZE(x) >= PAIRED_SUMS:
                    return False
                stay_at(&db, &total, nd)
                accumulate(self.slope, False, nd, shape, &db, &d, NULL, NULL, 0.0)
                add_number(bars, self.j, total)
        if self.op == WRITTEN:
            accumulate(ZERO, True, nd, shape, &d, &d, NULL, NULL, 0.0)
        return True


cdef object transposed(cnp.ndarray x):
    return cnp.PyArray_Transpose(x, NULL)


# -- recording ----------------------------------------------------------------------------------------------------------

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


cdef int64_t ELSEWHERE = -2, INACTIVE = -1


@cython.final
cdef class ArrayRecorder(Recorder):
    """Those of a reverse level for arrays of float64 that have their memory themselves, or from one that has."""

    cdef dict captured
    cdef list owners
    cdef int64_t last_layout

    def __init__(self, level):
        super().__init__(level)
        self.captured = level.captured
        self.owners = level.arrays
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
            return INACTIVE if at == NULL else at.index
        if not PyLong_CheckExact(x):
            return ELSEWHERE
        value[0] = <double> PyLong_AsLongLongAndOverflow(x, &overflow)
        return ELSEWHERE if overflow else INACTIVE

    cdef int _capture(self, object x) except -1:
        """The way back will read array `x`."""
        cdef PyObject* owner = memory_of(x)
        self.captured[PyLong_FromVoidPtr(<void*> owner)] = <object> owner
        return 0

    cdef int64_t _add_region(self, cnp.ndarray z) except -1:
        self.n += 1
        self.owners.append(z)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> z)] = self.n
        self.array_bytes += cnp.PyArray_NBYTES(z) + 1000
        return self.n

    cdef int _settle(self) except -1:
        """Let arrays go that nothing else refers to, if it is time; other threads may run meanwhile."""
        if self.array_bytes > self.array_limit:
            self.level._sweep_arrays()
        return 0

    def add_region(self, owner):
        """File the memory that `owner` holds as active; its index."""
        cdef int64_t n
        self.n += 1
        n = self.n
        self.owners.append(owner)
        self.table.others[PyLong_FromVoidPtr(<void*> <PyObject*> owner)] = n
        self.array_bytes += getattr(owner, "nbytes", 64) + 1000
        self._settle()
        return n

    cdef int _push(self, ArrayStep step) except -1:
        self.tape.objects.append(step)
        return self.tape.push(-1, ARRAY, <double> (len(self.tape.objects) - 1))

    cdef bint _is_new(self, object z) except -1:
        """Whether `z` is an array of float64 that was made just now."""
        return is_float64(z) and not is_view(z) and cnp.PyArray_CHKFLAGS(<cnp.ndarray> z, cnp.NPY_ARRAY_OWNDATA)

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
        z = whole(a, b, op)
        if i < 0 and j < 0:
            return z
        if not self._is_new(z):
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j = op, i, j
        step.c = y if is_a and not is_b else x
        if op == ADD or op == SUB:
            all_whole = (i < 0 or self._is_whole(a, is_a, z)) and (j < 0 or self._is_whole(b, is_b, z))
            if not all_whole:
                step.a = a if i >= 0 else None
                step.b = b if j >= 0 else None
        else:
            if i >= 0 and not self._is_whole(a, is_a, z):
                step.a = a
            if j >= 0 and not self._is_whole(b, is_b, z):
                step.b = b
            if is_b and (i >= 0 or op == DIV):
                step.b = b
                self._capture(b)
            if is_a and j >= 0 and op == MUL:
                step.a = a
                self._capture(a)
            if op == DIV and j >= 0:
                step.z = z
        step.n = self._add_region(z)
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
        cdef ArrayStep step
        if i < 0 or (op >= MUL and (is_b or j >= 0)):
            return None
        if is_b and memory_of(b) == memory_of(a):
            return None
        if not self._may_write(i):
            return None
        save = self._save(a, Ellipsis)
        if op == ADD:
            z = PyNumber_InPlaceAdd(a, b)
        elif op == SUB:
            z = PyNumber_InPlaceSubtract(a, b)
        elif op == MUL:
            z = PyNumber_InPlaceMultiply(a, b)
        else:
            z = PyNumber_InPlaceTrueDivide(a, b)
        if op >= MUL or j >= 0:
            step = ArrayStep.__new__(ArrayStep)
            step.op = SCALED_BY if op >= MUL else ADDED_TO
            step.slope = SCALED if op == MUL else UNSCALED if op == DIV else MINUS if op == SUB else PLUS
            step.i, step.j, step.a, step.b, step.c = i, j, a, b, y
            self._push(step)
        if save is not None:
            self.level._saved(save)
        return z

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

    cdef object _negative(self, object a):
        return self._elementwise(np.negative, a, MINUS, steps.NEGATIVE)

    cdef object _square(self, object a):
        if not self.own_arrays:
            return None
        return self._elementwise(np.square, a, SQUARED, steps.square_slope)

    cdef object _elementwise(self, object f, object x, int slope, object partial):
        """f(x) of an active array; None where more is to be done."""
        cdef int64_t i
        cdef ArrayStep step
        if not is_float64(x) or cnp.PyArray_NDIM(<cnp.ndarray> x) == 0:
            return None
        i = self._place(x)
        if i < 0:
            return None
        z = f(x)
        if not self._is_new(z) or not has_shape(z, x):
            return None
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.slope, step.i, step.j, step.more = UNARY, slope, i, -1, partial
        if slope == BY_RESULT:
            step.slope, step.c = TIMES, 1.0
        if slope == BY_RESULT or slope == SIGMOIDAL or slope == ROOT or slope == TIMES:
            step.z = z
        if slope == TIMES or slope == LOGARITHM or slope == SQUARED:
            step.a = x
            self._capture(x)
        elif is_view(x):
            step.a = x
        step.n = self._add_region(z)
        if step.z is not None:
            self._capture(z)
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
        if not is_basic(k):
            return None
        if not is_float64(a):
            return None
        i = self._place(a)
        if i == ELSEWHERE:
            return None
        p = address_of(a, k) if i >= 0 else NULL
        if p == NULL:
            z = PyObject_GetItem(a, k)
            return z if i == INACTIVE or cnp.PyArray_CheckExact(z) else None
        owner = memory_of(a)
        if not self._has_layout(i, <cnp.ndarray> owner):
            return None
        self._make_room()  # first: what is read is noted before another thread may write there
        z = cnp.PyArray_ToScalar(p, a)
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
        cdef PyObject* owner
        if not is_basic(k) or not is_float64(a) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a):
            return False
        i = self._place(a)
        if i < 0 or not self._may_write(i):
            return False
        p = address_of(a, k) if PyFloat_CheckExact(v) or type(v) is NUMBER64 else NULL
        if p == NULL:
            return self._write_slice(v, a, k, i)
        owner = memory_of(a)
        if PyDict_GetItemWithError(self.captured, PyLong_FromVoidPtr(<void*> owner)) != NULL:
            return False
        if not self._has_layout(i, <cnp.ndarray> owner):
            return False
        (<double*> p)[0] = PyFloat_AS_DOUBLE(v)
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
            PyObject_SetItem(a, k, v)  # a[k] op= x puts back what is there
            return True
        save = self._save(a, k)
        PyObject_SetItem(a, k, v)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.slope, step.i, step.j, step.a = WRITTEN, PLUS, i, j, target
        if j >= 0:
            step.b = v
        self._push(step)
        if save is not None:
            self.level._saved(save)
        return True

    # Functions

    cdef object _noted(self, ArrayStep step, object z, tuple args, dict kwargs, object general):
        """`z`, a new array or number, as the result of `step`; what is neither goes the general way."""
        cdef Place* at
        if type(z) is NUMBER64:
            self._make_room()
            at = self._filed(z)
            at.index = step.n = self.n
        elif self._is_new(z):
            step.n = self._add_region(z)
        else:
            return general(*args, **kwargs)
        self._push(step)
        self._settle()
        return z

    cdef object _product(self, object f, object a, object b, object general):
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
        z = f(a, b)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j, step.slope = PRODUCT, i, j, na << 8 | nb
        if j >= 0 or is_view(a):
            step.a = a
        if i >= 0 or is_view(b):
            step.b = b
        if j >= 0:
            self._capture(a)
        if i >= 0:
            self._capture(b)
        return self._noted(step, z, (a, b), {}, general)

    def matmul(self, a, b):
        """a @ b."""
        general = self.level.general_matmul
        z = self._product(operator.matmul, a, b, general) if self.own_matmul else None
        return general(a, b) if z is None else z

    def compiled(self, f, rule, general):
        """What to call instead of `f`, which has a rule of plaingrad's own; `general` where that is nothing of ours."""
        if not rule.own or rule.users:
            return general
        if f is np.array:
            return ArrayMaker(self, f, general).call
        if f is np.dot or f is np.ndarray.dot or f is np.matmul or f is operator.matmul:
            return ProductRule(self, f, general).call
        if f is np.sum or f is np.ndarray.sum or f is np.mean or f is np.ndarray.mean:
            return SumOfArray(self, f, general).call
        if type(f) is np.ufunc and f.nin == 1 and f.nout == 1 and rule.kind == "scalar" and callable(rule.partials[0]):
            return UfuncRule(self, f, rule.partials[0], general).call
        return general


cdef inline bint has_strides(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays of one shape have one layout."""
    cdef int k
    for k in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, k) > 1 and cnp.PyArray_STRIDE(a, k) != cnp.PyArray_STRIDE(b, k):
            return False
    return True


cdef class ArrayRule:
    """A function of arrays with a rule of plaingrad's own; what is not done here goes the general way."""

    cdef ArrayRecorder recorder
    cdef object f, general

    def __init__(self, recorder, f, general):
        self.recorder, self.f, self.general = recorder, f, general


cdef enum:
    BY_RESULT = 100

# How the slope of a function is computed here, as the rows of `rules.elementwise` say.
cdef dict SLOPES_OF_ARRAYS = {
    np.exp: BY_RESULT, np.tanh: SIGMOIDAL, np.sqrt: ROOT, np.log: LOGARITHM, np.square: SQUARED, np.negative: MINUS
}


cdef class UfuncRule(ArrayRule):
    """A ufunc of one argument, with a scalar row."""

    cdef object partial
    cdef int slope, known

    def __init__(self, recorder, f, partial, general):
        super().__init__(recorder, f, general)
        self.partial = partial
        own = getattr(partial, "__module__", None) == "plaingrad.rules.elementwise"
        self.slope = SLOPES_OF_ARRAYS.get(f, TIMES) if own else TIMES
        self.known = SLOPES.get(getattr(math, f.__name__, None), 0) if own else 0

    def call(self, *args, **kwargs):
        """f(x)."""
        cdef Place* i
        cdef double slope = 0.0
        if len(args) != 1 or kwargs:
            return self.general(*args, **kwargs)
        x = args[0]
        if cnp.PyArray_CheckExact(x):
            z = self.recorder._elementwise(self.f, x, self.slope, self.partial)
            return self.general(x) if z is None else z
        if self.known and (PyFloat_CheckExact(x) or type(x) is NUMBER64):
            i = self.recorder.table.find(<PyObject*> x)
            if i == NULL:
                return self.f(x)
            z = self.f(x)
            if type(z) is NUMBER64 and slope_of(self.known, PyFloat_AS_DOUBLE(x), PyFloat_AS_DOUBLE(z), &slope):
                self.recorder._along(z, slope, i)
                return z
        return self.general(x)


cdef class ProductRule(ArrayRule):
    """The matrix product of vectors and matrices."""

    def call(self, *args, **kwargs):
        """f(a, b)."""
        if len(args) == 2 and not kwargs:
            z = self.recorder._product(self.f, args[0], args[1], self.general)
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
        """f(a), or f(a, axis)."""
        cdef Py_ssize_t given = len(args)
        cdef ArrayStep step
        cdef cnp.ndarray x
        cdef int64_t i
        cdef int nd
        cdef Place* at
        if given == 0 or given + len(kwargs) > 2 or not is_float64(args[0]):
            return self.general(*args, **kwargs)
        axis = args[1] if given == 2 else None
        if kwargs:
            if "axis" not in kwargs:
                return self.general(*args, **kwargs)
            axis = kwargs["axis"]
        x = args[0]
        nd = cnp.PyArray_NDIM(x)
        i = self.recorder._place(x)
        if i < 0 or nd == 0 or cnp.PyArray_SIZE(x) == 0:
            return self.general(*args, **kwargs)
        if axis is not None and (not PyLong_CheckExact(axis) or not -nd <= axis < nd):
            return self.general(*args, **kwargs)
        z = (np.add.reduce(x, axis) if not self.is_mean else self.f(x, axis))
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j = SUM, i, -1
        step.more = args[0].shape
        step.slope = -1 if axis is None else axis % nd
        step.a = x if is_view(x) else None
        if self.is_mean:
            step.c = cnp.PyArray_SIZE(x) if axis is None else cnp.PyArray_DIM(x, step.slope)
        return self.recorder._noted(step, z, args, kwargs, self.general)


cdef class ArrayMaker(ArrayRule):
    """np.array of numbers in a list, or in lists in a list."""

    def call(self, *args, **kwargs):
        """np.array(values)."""
        cdef list indices
        cdef bint active = False, nested = False
        cdef ArrayStep step
        if len(args) == 1 and (not kwargs or (len(kwargs) == 1 and is_float_type(kwargs.get("dtype")))):
            values = args[0]
        elif len(args) == 2 and not kwargs and is_float_type(args[1]):
            values = args[0]
        else:
            return self.general(*args, **kwargs)
        indices = []
        if PyList_CheckExact(values) or PyTuple_CheckExact(values):
            for part in values:
                if PyList_CheckExact(part) or PyTuple_CheckExact(part):
                    nested = True
                    if not self.look(part, indices, &active):
                        return self.general(*args, **kwargs)
            if nested:
                for part in values:
                    if not (PyList_CheckExact(part) or PyTuple_CheckExact(part)):
                        return self.general(*args, **kwargs)
            elif not self.look(values, indices, &active):
                return self.general(*args, **kwargs)
        if not active:
            return self.general(*args, **kwargs)
        z = self.f(*args, **kwargs)
        if not self.recorder._is_new(z) or cnp.PyArray_SIZE(<cnp.ndarray> z) != len(indices):
            return self.general(*args, **kwargs)
        step = ArrayStep.__new__(ArrayStep)
        step.op, step.i, step.j, step.more = GATHERED, -1, -1, tuple(indices)
        return self.recorder._noted(step, z, args, kwargs, self.general)

    cdef bint look(self, object values, list indices, bint* active) except -1:
        """Note the indices of the numbers in `values`; False if something else is among them."""
        cdef Place* at
        for x in values:
            if PyFloat_CheckExact(x) or type(x) is NUMBER64:
                at = self.recorder.table.find(<PyObject*> x)
                if at == NULL:
                    indices.append(-1)
                else:
                    active[0] = True
                    indices.append(at.index)
            elif PyLong_CheckExact(x):
                indices.append(-1)
            else:
                return False
        return True


cdef inline bint is_float_type(object t):
    return t is float or t is NUMBER64 or t is FLOAT64
