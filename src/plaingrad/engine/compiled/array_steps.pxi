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
    if not PySet_Contains(owned, index) and is_new_array(bar) and cnp.PyArray_ISWRITEABLE(bar) and Py_REFCNT(<PyObject*> bar) == 3:
        owned.add(index)  # kept as it came, and nobody else has it any more
    elif not PySet_Contains(owned, index):
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


cdef int let_go(Bars bars, int64_t n) except -1:
    """Nothing refers to the cotangent of region `n` any more: what made it has been gone back over."""
    index = n
    if bars.cells[n].bits == OBJECT:
        bars.others.pop(index, None)
    bars.cells[n].bits = NOTHING
    bars.owned.discard(index)
    if bars.laid:
        bars.laid.pop(index, None)
    return 0


cdef inline void add_number(Bars bars, int64_t j, double v) except *:
    if bars.cells[j].bits == NOTHING:
        bars._put(j, v)
    elif bars.cells[j].bits != OBJECT:
        bars._put(j, bars.cells[j].number + v)
    else:
        bars.add(j, v)


cdef char* elements_of(Bars bars, set owned, dict layouts, int64_t i) except? NULL:
    """Where the cotangents of the elements of region `i` begin; NULL where they are not for here."""
    cdef cnp.ndarray bar = writable_bar(bars, owned, i, layouts[i], 0, NULL, NULL)
    if bar is None:
        return NULL
    return <char*> cnp.PyArray_DATA(bar)


# -- steps --------------------------------------------------------------------------------------------------------------

cdef enum:  # besides ADD, SUB, MUL, DIV
    UNARY = 4
    PRODUCT, SUM, ADDED_TO, SCALED_BY, WRITTEN, GATHERED, CROSS, MAPPED, CHOSEN, CHANGED, MULTIPLIED


cdef inline bint is_change(int op) noexcept:
    """Whether an operation writes into memory that is there."""
    return op == ADDED_TO or op == SCALED_BY or op == WRITTEN or op == CHANGED or op == MULTIPLIED


@cython.final
@cython.freelist(1024)
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
        cdef int64_t n = self.i if is_change(self.op) else self.n
        if bars.cells[n].bits == NOTHING:
            return 0
        owned = bars.owned
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
        elif self.op == CROSS:
            done = self.cross_back(bars, owned, shadow)
        elif self.op == MAPPED:
            done = mapped_back(self, bars, owned, shadow)
        elif self.op == CHOSEN:
            done = chosen_back(self, bars, owned)
        elif self.op == CHANGED:
            done = choice_changed_back(self, bars, owned, shadow)
        elif self.op == MULTIPLIED:
            done = multiplied_back(self, bars, owned, shadow)
        else:
            done = self.changed_back(bars, owned)
        if not done:
            self.in_python(shadow, undone)
        if not is_change(self.op):
            let_go(bars, n)
        return 0

    cdef cnp.ndarray arrived(self, Bars bars, bint may_be_large=False):
        """The cotangent of the result, if it is an array to be gone through here; else None."""
        cdef cnp.ndarray g
        if bars.cells[self.n].bits != OBJECT:
            return None
        found = bars.others[self.n]
        if not is_float64(found):
            return None
        g = found
        return g if may_be_large or cnp.PyArray_SIZE(g) <= SMALL else None

    cdef bint is_free(self, cnp.ndarray g) noexcept:
        """Whether nobody else has the cotangent of the result, so that its memory may be used again by the last reader."""
        return (
            Py_REFCNT(<PyObject*> g) == 2 and is_new_array(g) and cnp.PyArray_IS_C_CONTIGUOUS(g)
            and cnp.PyArray_ISWRITEABLE(g)
        )

    cdef bint binary_back(self, Bars bars, set owned, object shadow, object undone) except -1:
        cdef cnp.ndarray g = self.arrived(bars, True)
        cdef int nd, to_a = PLUS, to_b = PLUS
        cdef cnp.npy_intp* shape
        cdef Walk wg, wa, wb, wz
        cdef Walk* by_a = NULL
        cdef Walk* by_b = NULL
        cdef Walk* over = NULL
        cdef bint has_a, has_b, ends
        if g is None:
            return False
        ends = self.is_free(g)
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
            to_a, by_a = TIMES if has_b else SCALED, &wb if has_b else NULL
            to_b, by_b = TIMES if has_a else SCALED, &wa if has_a else NULL
        elif self.op == DIV:
            to_a, by_a = OVER if has_b else UNSCALED, &wb if has_b else NULL
            if self.j >= 0:
                walk_along(&wz, self.z, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.z), nd, shape)
                if not has_b:
                    stay_at(&wb, &self.c, nd)
                to_b, by_b, over = QUOTIENT, &wz, &wb
        a = self.whole_or(self.a, g) if self.i >= 0 else MISSING
        if ends and a is None and self.j >= 0 and bars.cells[self.i].bits == NOTHING:  # it can have the memory, at last
            if not self.give(bars, owned, shadow, self.j, self.whole_or(self.b, g), g, to_b, &wg, by_b, over, False):
                return False
            ends = Py_REFCNT(<PyObject*> g) == 2  # not that of the other operand now, too
            if not self.give(bars, owned, shadow, self.i, None, g, to_a, &wg, by_a, NULL, ends):
                self.rest_in_python(shadow, undone, True)
            return True
        if self.i >= 0 and not self.give(bars, owned, shadow, self.i, a, g, to_a, &wg, by_a, NULL, ends and self.j < 0):
            return False
        ends = ends and Py_REFCNT(<PyObject*> g) == 2  # not that of the first operand now, too
        if self.j >= 0 and not self.give(
            bars, owned, shadow, self.j, self.whole_or(self.b, g), g, to_b, &wg, by_b, over, ends
        ):
            self.rest_in_python(shadow, undone, False)
        return True

    cdef int rest_in_python(self, object shadow, object undone, bint to_a) except -1:
        """`in_python` for operand a alone, or b; that of the other has been done."""
        cdef int64_t i = self.i, j = self.j
        if to_a:
            self.j = -1
        else:
            self.i = -1
        try:
            self.in_python(shadow, undone)
        finally:
            self.i, self.j = i, j
        return 0

    cdef object whole_or(self, object x, cnp.ndarray g):
        """None for a whole array of the result's shape, whose cotangent may have any layout; `x` otherwise."""
        if x is None or type(x) is not NDARRAY:
            return x
        return None if not is_view(x) and has_shape(x, g) else x

    cdef bint give(
        self, Bars bars, set owned, object shadow, int64_t i, object a, cnp.ndarray g, int kind, Walk* wg, Walk* wo, Walk* wp,
        bint ends=False
    ) except -1:
        """Add to the cotangent of operand `a`, an array (None: whole, of the result's shape) or a number.

        `ends`: nobody reads `g` after this. False where that is not for here.
        """
        cdef Walk d
        cdef int nd = cnp.PyArray_NDIM(g)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(g)
        cdef cnp.npy_intp size = cnp.PyArray_SIZE(g)
        cdef bint fresh = False, is_array = a is None or type(a) is NDARRAY, large = size > SMALL
        cdef double total = 0.0
        cdef cnp.ndarray terms
        if large and not (is_in_rows(wg, nd, shape) and is_in_rows(wo, nd, shape) and is_in_rows(wp, nd, shape)):
            return False
        if a is None and bars.cells[i].bits == NOTHING and (ends or (large and kind == PLUS)):
            if kind != PLUS and large:
                accumulate_unlocked(kind, True, nd, shape, wg, wg, wo, wp, self.c)
            elif kind != PLUS:
                accumulate(kind, True, nd, shape, wg, wg, wo, wp, self.c)
            bars.others[i] = g
            bars.cells[i].bits = OBJECT
            if ends:
                owned.add(i)
            return True
        if size >= PAIRED_SUMS and (not is_array or (a is not None and cnp.PyArray_SIZE(<cnp.ndarray> a) < size)):
            terms = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)  # summed by NumPy, which adds in pairs
            walk_along(&d, terms, <char*> cnp.PyArray_DATA(terms), nd, shape)
            if large:
                accumulate_unlocked(kind, True, nd, shape, &d, wg, wo, wp, self.c)
            else:
                accumulate(kind, True, nd, shape, &d, wg, wo, wp, self.c)
            if is_array:
                self.add(bars, owned, shadow, i, a, steps.unbroadcast(terms, a.shape))
            else:
                add_number(bars, i, real(np.add.reduce(terms, None)))
            return True
        if is_array:
            if not walk_to(&d, bars, owned, i, a, nd, shape, &fresh if a is None else NULL):
                return False
            if not large:
                accumulate(kind, fresh, nd, shape, &d, wg, wo, wp, self.c)
            elif fresh or is_in_rows(&d, nd, shape):
                accumulate_unlocked(kind, fresh, nd, shape, &d, wg, wo, wp, self.c)
            else:
                return False
            return True
        stay_at(&d, &total, nd)
        accumulate(kind, False, nd, shape, &d, wg, wo, wp, self.c)
        add_number(bars, i, total)
        return True

    cdef bint unary_back(self, Bars bars, set owned, object shadow) except -1:
        cdef cnp.ndarray g = self.arrived(bars, True)
        cdef cnp.ndarray by
        cdef int nd, kind = self.slope
        cdef cnp.npy_intp* shape
        cdef Walk wg, wo
        cdef bint ends
        if g is None:
            return False
        ends = self.is_free(g)
        nd, shape = cnp.PyArray_NDIM(g), cnp.PyArray_DIMS(g)
        if kind == MINUS:
            by = g
        elif kind == SIGMOIDAL or kind == ROOT or (kind == TIMES and self.c == 1.0):
            by = self.z
        elif kind == TIMES:
            if in_blocks(self, bars, owned, g, ends):
                return True
            slope = self.more(np, self.a, self.z)
            if not is_float64(slope) or not has_shape(slope, g):
                return False
            by = slope
        else:
            by = self.a
        walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
        walk_along(&wo, by, <char*> cnp.PyArray_DATA(by), nd, shape)
        x = self.a if self.a is not None and is_view(self.a) else None
        return self.give(bars, owned, shadow, self.i, x, g, kind, &wg, &wo, NULL, ends)

    cdef bint sum_back(self, Bars bars, set owned) except -1:
        """Of a sum or mean over one axis, or all: `more` is the shape of what was added up, `slope` the axis."""
        cdef cnp.ndarray g
        cdef int nd = len(<tuple> self.more), k
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
            if g is None or self.slope < 0 or not walk_over(&wg, g, nd, shape, self.slope):
                return False
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

    cdef bint cross_back(self, Bars bars, set owned, object shadow) except -1:
        """Of the cross product of two vectors of three."""
        cdef cnp.ndarray g = self.arrived(bars)
        if g is None:
            return False
        if self.i >= 0:
            self.add(bars, owned, shadow, self.i, self.a, cross_of(self.b, g, None))
        if self.j >= 0:
            self.add(bars, owned, shadow, self.j, self.b, cross_of(g, self.a, None))
        return True

    cdef bint shares(self, Bars bars, set owned) except -1:
        """Let a whole array b, added to a whole one, have the cotangent of that, which the next to write there copies."""
        cdef cnp.ndarray b, bar
        if type(self.b) is not NDARRAY or is_view(self.a) or is_view(self.b) or bars.cells[self.j].bits != NOTHING:
            return False
        b, bar = self.b, bars.others[self.i]
        if not has_shape(b, bar) or not is_new_array(bar) or not cnp.PyArray_IS_C_CONTIGUOUS(b) or not cnp.PyArray_IS_C_CONTIGUOUS(bar):
            return False
        bars.others[self.j] = bar
        bars.cells[self.j].bits = OBJECT
        owned.discard(self.i)
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
        if self.op == ADDED_TO and self.slope == PLUS and self.shares(bars, owned):
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
