# -- cotangents of arrays with their tangents -------------------------------------------------------------------------------
#
# The tangent of a cotangent that is an array is another array of the same layout, beside it in `PairBars.array_dots`.
# The level around does not know of it before Python code asks for the cotangent. What is added to a cotangent, and to
# its tangent, is a sum of terms, each a product of what arrived (or its tangent) and a slope (or the slope's).

cdef enum:
    MOST_TERMS = 4

cdef Py_ssize_t SMALL_PAIR = 16384  # elements; above, NumPy's own loops are worth the hooks of the level around


cdef struct Term:
    int kind, factors  # `factors`: how many of o and p there are
    Walk* g
    Walk* o
    Walk* p


cdef struct Terms:
    Term term[MOST_TERMS]
    int count
    double c


cdef inline void add_term_of(Terms* terms, int kind, Walk* g, Walk* o, Walk* p) noexcept:
    cdef Term* t = &terms.term[terms.count]
    t.kind, t.g, t.o, t.p = kind, g, o, p
    terms.count += 1


cdef void accumulate_terms(bint fresh, int nd, cnp.npy_intp* shape, Walk* d, Terms* terms) noexcept:
    """d += the terms; `fresh`: d = the terms."""
    cdef int k
    for k in range(terms.count):
        accumulate(
            terms.term[k].kind, fresh and k == 0, nd, shape, d,
            terms.term[k].g, terms.term[k].o, terms.term[k].p, terms.c
        )


cdef inline cnp.ndarray laid_like(cnp.ndarray x, cnp.ndarray like):
    """`x`, or a copy of it with the layout of `like`."""
    cdef cnp.ndarray z
    if has_strides(x, like):
        return x
    z = cnp.PyArray_NewCopy(like, cnp.NPY_KEEPORDER)
    cnp.PyArray_CopyInto(z, x)
    return z


cdef inline Py_ssize_t number_of(int nd, cnp.npy_intp* shape) noexcept:
    cdef Py_ssize_t n = 1
    cdef int k
    for k in range(nd):
        n *= shape[k]
    return n


cdef class PairedCotangents:
    """The cotangents of one way back, to be read and added to."""

    cdef PairBars bars
    cdef ArrayPusher pusher
    cdef object shadow, outer, add_array
    cdef set owned
    cdef dict laid
    cdef object g, g_dot  # what arrived, and its tangent; None for zero

    def __init__(self, shadow, outer, add_array):
        self.shadow, self.outer, self.add_array = shadow, outer, add_array
        self.bars = shadow.bars
        self.pusher = self.bars.outer
        self.bars.belong(shadow)
        self.owned, self.laid = shadow.owned, shadow.laid

    cdef object dot_of(self, object index, cnp.ndarray bar):
        """The tangent of the cotangent at `index`; None for zero, `MISSING` if that is not to be said here."""
        cdef PyObject* found = PyDict_GetItemWithError(self.bars.array_dots, index)
        if found != NULL:
            return <object> found
        region = self.pusher._region(bar)
        if region is None or region is MISSING:
            return region
        dot = region.read(bar) if is_view(bar) else region.dot
        return dot if dot is None or (is_float64(dot) and has_shape(dot, bar)) else MISSING

    cdef bint arrives(self, int64_t n) except -1:
        """Note what arrived at `n`, an array; False where that is not for here."""
        if self.bars.cells[n].bits != OBJECT:
            return False
        index = n
        self.g = self.bars.others[index]
        if not is_float64(self.g):
            return False
        self.g_dot = self.dot_of(index, self.g)
        return self.g_dot is not MISSING

    cdef bint take(self, object index, bint in_layout, int order) except -1:
        """Make the cotangent at `index` one that may be written, with its tangent beside it."""
        cdef cnp.ndarray bar = self.bars.others[index]
        dot = self.dot_of(index, bar)
        if dot is MISSING:
            return False
        if not PySet_Contains(self.owned, index) or not is_new_array(bar):
            bar = cnp.PyArray_NewCopy(
                bar, (cnp.NPY_FORTRANORDER if order else cnp.NPY_CORDER) if in_layout else cnp.NPY_KEEPORDER
            )
            if dot is not None:
                dot = cnp.PyArray_NewCopy(dot, cnp.NPY_KEEPORDER)
            self.bars.others[index] = bar
            self.owned.add(index)
        self.bars.array_dots[index] = None if dot is None else laid_like(dot, bar)
        return True

    cdef bint aim(
        self, int64_t i, object a, int nd, cnp.npy_intp* shape, bint moves,
        Walk* d, Walk* d_dot, bint* fresh, bint* fresh_dot
    ) except -1:
        """How to write to the cotangent of `a`, in region `i`, broadcast to `shape`, and if it `moves` to its tangent.

        `a` is None for whole arrays of that very shape; where there was no cotangent, or no tangent, what is in these
        has no meaning then (`fresh`, `fresh_dot`). Without `moves`, the tangent is told if there is one; else NULL.
        False where that is not for here.
        """
        cdef cnp.ndarray bar, dot = None, like = None, x
        cdef PyObject* found
        cdef int like_nd = nd, order = 0
        cdef cnp.npy_intp* like_shape = shape
        cdef cnp.npy_intp offset = 0
        cdef bint is_laid = False, whole = a is None
        index = i
        fresh[0] = fresh_dot[0] = False
        if not whole:
            x = a
            found = memory_of(x)
            if found == NULL:
                return False
            like = <cnp.ndarray> found
            like_nd, like_shape = cnp.PyArray_NDIM(like), cnp.PyArray_DIMS(like)
            if not cnp.PyArray_IS_C_CONTIGUOUS(like):
                if not cnp.PyArray_IS_F_CONTIGUOUS(like):
                    return False
                order = 1
            offset = <char*> cnp.PyArray_DATA(x) - <char*> cnp.PyArray_DATA(like)
        if self.bars.cells[i].bits == NOTHING:
            bar = self.made(whole, like_nd, like_shape, order)
            fresh[0] = whole
            self.bars.others[index] = bar
            self.bars.cells[i].bits = OBJECT
            self.bars.array_dots[index] = None
            self.owned.add(index)
        else:
            if self.bars.cells[i].bits != OBJECT or not is_float64(self.bars.others[index]):
                return False
            is_laid = index in self.laid
            if is_laid:
                bar = self.bars.others[index]
                known = self.dot_of(index, bar)
                if known is MISSING:
                    return False
                if known is None and moves:
                    known = self.region_dot(bar)
                dot = known
            else:
                found = PyDict_GetItemWithError(self.bars.array_dots, index)
                if found == NULL:
                    if not self.take(index, not whole, order):
                        return False
                    found = PyDict_GetItemWithError(self.bars.array_dots, index)
                bar = self.bars.others[index]
                dot = <object> found
            if not self.fits(bar, like, like_nd, like_shape, order) or (dot is not None and not has_strides(dot, bar)):
                return False
        if moves and dot is None and not is_laid:
            dot = self.made(whole, like_nd, like_shape, order) if whole else laid_zeros(bar)
            fresh_dot[0] = whole
            if whole and not has_strides(dot, bar):
                dot = laid_zeros(bar)
                fresh_dot[0] = False
            self.bars.array_dots[index] = dot
        if whole:
            x = bar
        walk_along(d, x, <char*> cnp.PyArray_DATA(bar) + offset, nd, shape)
        d_dot.data = NULL
        if dot is not None:
            walk_along(d_dot, x, <char*> cnp.PyArray_DATA(dot) + offset, nd, shape)
        return True

    cdef object region_dot(self, cnp.ndarray bar):
        """The tangent at the level around of a cotangent that views of are there, made now."""
        region = self.pusher._region(bar)
        if region is None:
            region = self.outer.add_region(<object> memory_of(bar))
        return region.writable(bar)

    cdef inline cnp.ndarray made(self, bint empty, int nd, cnp.npy_intp* shape, int order):
        if empty:
            return cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, order)
        return cnp.PyArray_ZEROS(nd, shape, cnp.NPY_DOUBLE, order)

    cdef inline bint fits(self, cnp.ndarray bar, cnp.ndarray like, int nd, cnp.npy_intp* shape, int order) noexcept:
        """Whether a cotangent has this shape, and where it is addressed like `like` that layout."""
        cdef int k
        if cnp.PyArray_NDIM(bar) != nd:
            return False
        for k in range(nd):
            if cnp.PyArray_DIM(bar, k) != shape[k]:
                return False
        if like is None:
            return True
        return cnp.PyArray_IS_F_CONTIGUOUS(bar) if order else cnp.PyArray_IS_C_CONTIGUOUS(bar)

    cdef int add_number(self, int64_t j, double x_bar, double x_dot) except -1:
        """Add to the cotangent of a number."""
        cdef PairBars bars = self.bars
        if bars.cells[j].bits == NOTHING:
            bars._put(j, x_bar)
            bars.dots[j] = x_dot
        elif bars.cells[j].bits != OBJECT:
            bars._put(j, bars.cells[j].number + x_bar)
            bars.dots[j] += x_dot
        else:
            term = PyFloat_FromDouble(x_bar)
            if x_dot != 0.0:
                self.pusher._file(term, x_dot)
            add_term(self.outer, bars, j, term)
        return 0

    cdef bint complex_back(self, int64_t o, int64_t i, object partial, double partial_dot) except -1:
        """x_bar += z_bar * partial of numbers, one of them complex; False where that is not for here."""
        cdef PairBars bars = self.bars
        if bars.cells[o].bits == NOTHING:
            return True
        if not self.product_of(o, partial, partial_dot):
            return False
        index = i
        if bars.cells[i].bits == NOTHING:
            before = before_dot = None
        elif bars.cells[i].bits != OBJECT:
            before = PyFloat_FromDouble(bars.cells[i].number)
            before_dot = PyFloat_FromDouble(bars.dots[i]) if bars.dots[i] != 0.0 else None
        else:
            before = bars.others[index]
            if not PyComplex_CheckExact(before):
                return False
            before_dot = self.complex_dot(index, before)
        term, term_dot = self.g, self.g_dot
        if before is not None:
            term = before + term
            if before_dot is not None:
                term_dot = before_dot if term_dot is None else before_dot + term_dot
        bars.dots[i] = 0.0
        if PyFloat_CheckExact(term):
            bars._put(i, PyFloat_AS_DOUBLE(term))
            if term_dot is not None:
                bars.dots[i] = term_dot
            return True
        bars.others[index] = term
        bars.cells[i].bits = OBJECT
        bars.array_dots[index] = None if term_dot is None else complex(term_dot)
        return True

    cdef bint real_part_back(self, int64_t o, int64_t i, object partial) except -1:
        """x_bar += the real part of z_bar * partial, of a real number; False where that is not for here."""
        if self.bars.cells[o].bits == NOTHING:
            return True
        if self.bars.cells[i].bits == OBJECT or not self.product_of(o, partial, 0.0):
            return False
        self.add_number(i, real_part(self.g), 0.0 if self.g_dot is None else real_part(self.g_dot))
        return True

    cdef object complex_dot(self, object index, object z_bar):
        """The tangent of a cotangent that is a complex number; None for zero."""
        cdef PyObject* found = PyDict_GetItemWithError(self.bars.array_dots, index)
        return self.pusher._complex_dot(z_bar) if found == NULL else <object> found

    cdef bint product_of(self, int64_t o, object partial, double partial_dot) except -1:
        """Note z_bar * partial and its tangent in `g` and `g_dot`; False where these are no numbers."""
        cdef PairBars bars = self.bars
        if not PyComplex_CheckExact(partial) and not is_real(partial):
            return False
        moves = PyFloat_FromDouble(partial_dot) if partial_dot != 0.0 else self.pusher._complex_dot(partial)
        z_dot = None
        if bars.cells[o].bits != OBJECT:
            z_bar = PyFloat_FromDouble(bars.cells[o].number)
            if bars.dots[o] != 0.0:
                z_dot = PyFloat_FromDouble(bars.dots[o])
        else:
            index = o
            z_bar = bars.others[index]
            if not PyComplex_CheckExact(z_bar):
                return False
            z_dot = self.complex_dot(index, z_bar)
        self.g, self.g_dot = z_bar * partial, None
        if z_dot is not None:
            self.g_dot = z_dot * partial
        if moves is not None:
            self.g_dot = z_bar * moves if self.g_dot is None else self.g_dot + z_bar * moves
        return True

    cdef int add(self, int64_t i, object a, object x_bar, object x_dot) except -1:
        """Add `x_bar` with tangent `x_dot`, both nobody else's, to the cotangent of `a` (None: a whole array)."""
        cdef Walk d, d_dot, w, w_dot
        cdef cnp.ndarray x = x_bar if type(x_bar) is NDARRAY else np.asarray(x_bar)
        cdef bint fresh = False, fresh_dot = False
        cdef int nd = cnp.PyArray_NDIM(x)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(x)
        whole = a if a is not None and is_view(a) else None
        index = i
        if x_dot is not None and type(x_dot) is not NDARRAY:
            x_dot = np.asarray(x_dot)
        if whole is None and self.bars.cells[i].bits == NOTHING and not is_view(x):
            self.bars.others[index] = x
            self.bars.cells[i].bits = OBJECT
            self.bars.array_dots[index] = None if x_dot is None else laid_like(x_dot, x)
            self.owned.add(index)
            return 0
        if self.aim(i, whole, nd, shape, x_dot is not None, &d, &d_dot, &fresh, &fresh_dot):
            walk_along(&w, x, <char*> cnp.PyArray_DATA(x), nd, shape)
            accumulate(PLUS, fresh, nd, shape, &d, &w, NULL, NULL, 0.0)
            if x_dot is not None:
                walk_along(&w_dot, x_dot, <char*> cnp.PyArray_DATA(<cnp.ndarray> x_dot), nd, shape)
                accumulate(PLUS, fresh_dot, nd, shape, &d_dot, &w_dot, NULL, NULL, 0.0)
            return 0
        if x_dot is not None:
            self.pusher._file_array(x, x_dot)
        self.add_array(self.outer, self.shadow, index, steps.WHOLE if whole is None else whole, x)
        return 0

    cdef bint give(self, int64_t i, object a, int nd, cnp.npy_intp* shape, Terms* terms, Terms* dots) except -1:
        """Add to the cotangent of operand `a`, an array (None: whole, of this shape) or a number, and to its tangent."""
        cdef Walk d, d_dot
        cdef Py_ssize_t size = number_of(nd, shape)
        cdef bint fresh = False, fresh_dot = False, is_array = a is None or type(a) is NDARRAY
        cdef double total = 0.0, total_dot = 0.0
        cdef cnp.ndarray sums, sum_dots = None
        if size >= PAIRED_SUMS and (not is_array or (a is not None and cnp.PyArray_SIZE(<cnp.ndarray> a) < size)):
            sums = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)  # added up by NumPy, as without a level around
            walk_along(&d, sums, <char*> cnp.PyArray_DATA(sums), nd, shape)
            accumulate_terms(True, nd, shape, &d, terms)
            if dots.count:
                sum_dots = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)
                walk_along(&d, sum_dots, <char*> cnp.PyArray_DATA(sum_dots), nd, shape)
                accumulate_terms(True, nd, shape, &d, dots)
            if is_array:
                unbroadcast = steps.unbroadcast
                self.add(
                    i, a, unbroadcast(sums, a.shape), None if sum_dots is None else unbroadcast(sum_dots, a.shape)
                )
            else:
                total = real(np.add.reduce(sums, None))
                self.add_number(i, total, 0.0 if sum_dots is None else real(np.add.reduce(sum_dots, None)))
            return True
        if is_array:
            if not self.aim(i, a, nd, shape, dots.count > 0, &d, &d_dot, &fresh, &fresh_dot):
                return False
            accumulate_terms(fresh, nd, shape, &d, terms)
            if dots.count:
                accumulate_terms(fresh_dot, nd, shape, &d_dot, dots)
            return True
        stay_at(&d, &total, nd)
        accumulate_terms(False, nd, shape, &d, terms)
        if dots.count:
            stay_at(&d, &total_dot, nd)
            accumulate_terms(False, nd, shape, &d, dots)
        self.add_number(i, total, total_dot)
        return True


cdef cnp.ndarray laid_zeros(cnp.ndarray like):
    """Zeros with the layout of an array."""
    cdef cnp.ndarray z = cnp.PyArray_NewCopy(like, cnp.NPY_KEEPORDER)
    cnp.PyArray_FILLWBYTE(z, 0)
    return z
