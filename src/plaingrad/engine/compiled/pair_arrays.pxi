# -- the way back over steps on arrays with tangents -------------------------------------------------------------------


@cython.final
cdef class PairsBack(PairedCotangents):
    """One way back over the steps on arrays of a tape."""

    cdef object undone, called_back, step_back
    cdef dict curvatures
    cdef int64_t element_region  # of the element before, if nothing else came in between; else -1
    cdef double* element_bars
    cdef double* element_dots

    def __init__(self, shadow, outer, undone, called_back, step_back, add_array):
        super().__init__(shadow, outer, add_array)
        self.undone, self.called_back, self.step_back = undone, called_back, step_back
        self.curvatures = steps.curvatures()
        self.element_region = -1

    cdef int back(self, ArrayStep step) except -1:
        """Carry the cotangent of what a step made, and its tangent, back to what it was made of."""
        cdef int op = step.op
        cdef bint done = False
        cdef int64_t n = step.i if is_change(op) else step.n
        if self.bars.cells[n].bits == NOTHING:
            return 0
        if op == ADDED_TO or op == SCALED_BY or op == WRITTEN:
            done = self.changed_back(step)
        elif op == SUM:
            done = self.sum_back(step)
        elif op == PRODUCT:
            done = self.product_back(step)
        elif op == MAPPED:
            done = mapped_pairs_back(self, step)
        elif op == CHOSEN:
            done = chosen_pairs_back(self, step)
        elif op == CHANGED:
            done = choice_changed_pairs_back(self, step)
        elif op == MULTIPLIED:
            done = multiplied_pairs_back(self, step)
        elif self.arrives(n) and cnp.PyArray_SIZE(<cnp.ndarray> self.g) <= SMALL_PAIR:
            if op <= DIV:
                done = self.binary_back(step)
            elif op == UNARY:
                done = self.unary_back(step)
            elif op == GATHERED:
                done = self.gathered_back(step)
            elif op == CROSS:
                done = self.cross_back(step)
        self.g = self.g_dot = None
        if not done:
            self.in_python(step)
        if not is_change(op):
            let_go(self.bars, n)
            self.bars.forget(n)
        return 0

    cdef int in_python(self, ArrayStep step) except -1:
        first, kind, what = step.triple()
        if kind == CALLED:
            self.called_back(self.outer, what, self.shadow, first)
        else:
            self.step_back(self.outer, what, self.shadow, self.undone)
        return 0

    cdef bint element_back(self, Tape tape, Entry* e) except -1:
        """Of an element that was read or written; False where that is not for here."""
        cdef PairBars bars = self.bars
        cdef int32_t* place = <int32_t*> &e.partial
        cdef int64_t i = place[0], at = e.output
        cdef Walk d, d_dot
        cdef cnp.ndarray layout
        cdef bint fresh = False, fresh_dot = False, moves = e.input == READ and bars.dots[at] != 0.0
        cdef double* x_bar
        cdef double* x_dot
        if bars.cells[at if e.input == READ else i].bits == NOTHING:
            return True
        if at >= 0 and bars.cells[at].bits == OBJECT:
            return False
        if self.element_region != i or (moves and self.element_dots == NULL):
            layout = tape.layouts[i]
            if not self.aim(
                i, layout, cnp.PyArray_NDIM(layout), cnp.PyArray_DIMS(layout), moves, &d, &d_dot, &fresh, &fresh_dot
            ):
                return False
            self.element_region, self.element_bars, self.element_dots = i, <double*> d.data, <double*> d_dot.data
        x_bar = self.element_bars + place[1]
        x_dot = NULL if self.element_dots == NULL else self.element_dots + place[1]
        if e.input == READ:
            x_bar[0] += bars.cells[at].number
            if x_dot != NULL:
                x_dot[0] += bars.dots[at]
            return True
        if at >= 0:
            self.add_number(at, x_bar[0], 0.0 if x_dot == NULL else x_dot[0])
        x_bar[0] = 0.0
        if x_dot != NULL:
            x_dot[0] = 0.0
        return True

    cdef bint binary_back(self, ArrayStep step) except -1:
        cdef cnp.ndarray g = self.g, quotient
        cdef int nd = cnp.PyArray_NDIM(g)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(g)
        cdef Walk wg, wg_dot, wa, wb, wz, wa_dot, wb_dot, wz_dot, wq
        cdef Dot a_dot, b_dot, z_dot
        cdef Terms terms, dots
        cdef double x = 0.0, y = 0.0, z = 0.0
        cdef bint is_array = False, a_is_array, b_is_array, g_moves = self.g_dot is not None
        cdef int op = step.op
        walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
        if g_moves:
            walk_along(&wg_dot, self.g_dot, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.g_dot), nd, shape)
        a_dot.kind = b_dot.kind = z_dot.kind = STILL
        keep_a = keep_b = keep_z = None
        a_is_array, b_is_array = type(step.a) is NDARRAY, type(step.b) is NDARRAY
        if op >= MUL:
            if step.a is not None and op == MUL:
                keep_a = self.pusher._look(&a_dot, step.a, &x, &is_array)
            if step.b is not None:
                keep_b = self.pusher._look(&b_dot, step.b, &y, &is_array)
            if step.z is not None:
                keep_z = self.pusher._look(&z_dot, step.z, &z, &is_array)
            if a_dot.kind == UNKNOWN or b_dot.kind == UNKNOWN or z_dot.kind == UNKNOWN:
                return False
            if a_is_array:
                walk_along(&wa, step.a, <char*> cnp.PyArray_DATA(<cnp.ndarray> step.a), nd, shape)
            else:
                stay_at(&wa, &step.c, nd)
            if b_is_array:
                walk_along(&wb, step.b, <char*> cnp.PyArray_DATA(<cnp.ndarray> step.b), nd, shape)
            else:
                stay_at(&wb, &step.c, nd)
            if a_dot.kind != STILL:
                self.pusher._walk(&wa_dot, &a_dot, nd, shape)
            if b_dot.kind != STILL:
                self.pusher._walk(&wb_dot, &b_dot, nd, shape)
            if z_dot.kind != STILL:
                self.pusher._walk(&wz_dot, &z_dot, nd, shape)
        if step.i >= 0:
            terms.count = dots.count = 0
            if op == ADD or op == SUB:
                add_term_of(&terms, PLUS, &wg, NULL, NULL)
                if g_moves:
                    add_term_of(&dots, PLUS, &wg_dot, NULL, NULL)
            elif op == MUL:
                add_term_of(&terms, TIMES, &wg, &wb, NULL)
                if g_moves:
                    add_term_of(&dots, TIMES, &wg_dot, &wb, NULL)
                if b_dot.kind != STILL:
                    add_term_of(&dots, TIMES, &wg, &wb_dot, NULL)
            else:
                add_term_of(&terms, OVER, &wg, &wb, NULL)
                if g_moves:
                    add_term_of(&dots, OVER, &wg_dot, &wb, NULL)
                if b_dot.kind != STILL:
                    quotient = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)
                    walk_along(&wq, quotient, <char*> cnp.PyArray_DATA(quotient), nd, shape)
                    accumulate(OVER, True, nd, shape, &wq, &wg, &wb, NULL, 0.0)
                    add_term_of(&dots, QUOTIENT, &wq, &wb_dot, &wb)
            if not self.give(step.i, step.whole_or(step.a, g), nd, shape, &terms, &dots):
                return False
        if step.j >= 0:
            terms.count = dots.count = 0
            if op == ADD or op == SUB:
                add_term_of(&terms, PLUS if op == ADD else MINUS, &wg, NULL, NULL)
                if g_moves:
                    add_term_of(&dots, PLUS if op == ADD else MINUS, &wg_dot, NULL, NULL)
            elif op == MUL:
                add_term_of(&terms, TIMES, &wg, &wa, NULL)
                if g_moves:
                    add_term_of(&dots, TIMES, &wg_dot, &wa, NULL)
                if a_dot.kind != STILL:
                    add_term_of(&dots, TIMES, &wg, &wa_dot, NULL)
            else:
                walk_along(&wz, step.z, <char*> cnp.PyArray_DATA(<cnp.ndarray> step.z), nd, shape)
                add_term_of(&terms, QUOTIENT, &wg, &wz, &wb)
                if g_moves:
                    add_term_of(&dots, QUOTIENT, &wg_dot, &wz, &wb)
                if z_dot.kind != STILL:
                    add_term_of(&dots, QUOTIENT, &wg, &wz_dot, &wb)
                if b_dot.kind != STILL:
                    quotient = cnp.PyArray_EMPTY(nd, shape, cnp.NPY_DOUBLE, 0)
                    walk_along(&wq, quotient, <char*> cnp.PyArray_DATA(quotient), nd, shape)
                    accumulate(QUOTIENT, True, nd, shape, &wq, &wg, &wz, &wb, 0.0)
                    add_term_of(&dots, QUOTIENT, &wq, &wb_dot, &wb)
            if not self.give(step.j, step.whole_or(step.b, g), nd, shape, &terms, &dots):
                self.rest_in_python(step)
        return True

    cdef int rest_in_python(self, ArrayStep step) except -1:
        """As `in_python`, where the part of operand a has been done."""
        cdef int64_t i = step.i
        step.i = -1
        try:
            self.in_python(step)
        finally:
            step.i = i
        return 0

    cdef bint unary_back(self, ArrayStep step) except -1:
        cdef cnp.ndarray g = self.g
        cdef int nd = cnp.PyArray_NDIM(g), kind = step.slope
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(g)
        cdef Walk wg, wg_dot, by, by_dot, curve
        cdef Terms terms, dots
        cdef Dot dot
        cdef double number = 0.0
        cdef bint is_array = False
        cdef PyObject* found
        terms.count = dots.count = 0
        dot.kind = STILL
        factor = keep = curvature = None
        if kind == SIGMOIDAL or kind == ROOT or (kind == TIMES and step.c == 1.0):
            factor = step.z
        elif kind != MINUS:
            factor = step.a
        if factor is not None:
            keep = self.pusher._look(&dot, factor, &number, &is_array)
            if dot.kind == UNKNOWN:
                return False
        if kind == TIMES and step.c != 1.0:
            if type(step.more) is steps.PowerSlope:
                curvature = step.more.curvature
            else:
                found = PyDict_GetItemWithError(self.curvatures, step.more)
                if found != NULL:
                    curvature = <object> found
            if dot.kind == STILL or curvature is not None:
                factor = step.more(np, step.a, step.z)
                if dot.kind != STILL:
                    curvature = curvature(step.a, step.z, factor)
                    if not is_float64(curvature) or not has_shape(curvature, g):
                        return False
            else:  # the slope's own tangent, by the hooks of the level around
                factor = self.outer.calls.inside(step.more)(np, step.a, step.z)
                if is_float64(factor):
                    keep = self.pusher._look(&dot, factor, &number, &is_array)
                    if dot.kind == UNKNOWN:
                        return False
            if not is_float64(factor) or not has_shape(factor, g):
                return False
        walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
        if factor is not None:
            walk_along(&by, factor, <char*> cnp.PyArray_DATA(<cnp.ndarray> factor), nd, shape)
        add_term_of(&terms, kind, &wg, &by if factor is not None else NULL, NULL)
        if self.g_dot is not None:
            walk_along(&wg_dot, self.g_dot, <char*> cnp.PyArray_DATA(<cnp.ndarray> self.g_dot), nd, shape)
            add_term_of(&dots, kind, &wg_dot, &by if factor is not None else NULL, NULL)
        if dot.kind != STILL:
            self.pusher._walk(&by_dot, &dot, nd, shape)
            if curvature is not None:
                walk_along(&curve, curvature, <char*> cnp.PyArray_DATA(<cnp.ndarray> curvature), nd, shape)
                add_term_of(&dots, TIMES_BOTH, &wg, &curve, &by_dot)
            elif kind == TIMES or kind == SQUARED:
                add_term_of(&dots, kind, &wg, &by_dot, NULL)
            elif kind == SIGMOIDAL:
                add_term_of(&dots, SIGMOIDAL_DOT, &wg, &by, &by_dot)
            elif kind == ROOT:
                add_term_of(&dots, ROOT_DOT, &wg, &by, &by_dot)
            else:
                add_term_of(&dots, LOGARITHM_DOT, &wg, &by, &by_dot)
        x = step.a if step.a is not None and is_view(step.a) else None
        return self.give(step.i, x, nd, shape, &terms, &dots)

    cdef bint sum_back(self, ArrayStep step) except -1:
        cdef int nd = len(<tuple> step.more), k
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef Walk wg, wg_dot
        cdef Terms terms, dots
        cdef double number, dot
        cdef int kind = PLUS if step.c == 0.0 else UNSCALED
        terms.count = dots.count = 0
        terms.c = dots.c = step.c
        for k in range(nd):
            shape[k] = (<tuple> step.more)[k]
        if number_of(nd, shape) > SMALL_PAIR:
            return False
        add_term_of(&terms, kind, &wg, NULL, NULL)
        if self.bars.cells[step.n].bits != OBJECT:
            number, dot = self.bars.cells[step.n].number, self.bars.dots[step.n]
            stay_at(&wg, &number, nd)
            if dot != 0.0:
                stay_at(&wg_dot, &dot, nd)
                add_term_of(&dots, kind, &wg_dot, NULL, NULL)
        else:
            if not self.arrives(step.n) or step.slope < 0:
                return False
            if not walk_over(&wg, self.g, nd, shape, step.slope):
                return False
            if self.g_dot is not None:
                if not walk_over(&wg_dot, self.g_dot, nd, shape, step.slope):
                    return False
                add_term_of(&dots, kind, &wg_dot, NULL, NULL)
        return self.give(step.i, step.a, nd, shape, &terms, &dots)

    cdef bint product_back(self, ArrayStep step) except -1:
        """Of a matrix product of vectors and matrices."""
        cdef int na = step.slope >> 8, nb = step.slope & 255
        cdef object z_bar, z_dot = None, a_dot = None, b_dot = None
        cdef bint is_number = self.bars.cells[step.n].bits != OBJECT
        if is_number:
            z_bar = PyFloat_FromDouble(self.bars.cells[step.n].number)
            if self.bars.dots[step.n] != 0.0:
                z_dot = PyFloat_FromDouble(self.bars.dots[step.n])
        else:
            if not self.arrives(step.n):
                return False
            z_bar, z_dot = self.g, self.g_dot
        if is_number != (na == 1 and nb == 1):
            return False
        if step.j >= 0:
            region = self.pusher._region(step.a)
            if region is MISSING:
                return False
            a_dot = self.pusher._dot_of(region, step.a)
        if step.i >= 0:
            region = self.pusher._region(step.b)
            if region is MISSING:
                return False
            b_dot = self.pusher._dot_of(region, step.b)
        if step.i >= 0:
            if nb == 1:
                self.outer_product(step.i, step.a, z_bar, z_dot, step.b, b_dot, na == 2)
            elif na == 1:
                self.add(step.i, step.a, PyNumber_MatrixMultiply(step.b, z_bar), product_dot(step.b, b_dot, z_bar, z_dot))
            else:
                b_dot = None if b_dot is None else transposed(b_dot)
                b = transposed(step.b)
                self.add(step.i, step.a, PyNumber_MatrixMultiply(z_bar, b), product_dot(z_bar, z_dot, b, b_dot))
        if step.j >= 0:
            if na == 1:
                self.outer_product(step.j, step.b, step.a, a_dot, z_bar, z_dot, nb == 2)
            else:
                a_dot = None if a_dot is None else transposed(a_dot)
                a = transposed(step.a)
                self.add(step.j, step.b, PyNumber_MatrixMultiply(a, z_bar), product_dot(a, a_dot, z_bar, z_dot))
        return True

    cdef int outer_product(
        self, int64_t i, object a, object u, object u_dot, object v, object v_dot, bint is_matrix
    ) except -1:
        """Add u v^T, or a number times a vector, to the cotangent of `a`, and to its tangent."""
        cdef Walk wu, wu_dot, wv, wv_dot
        cdef Terms terms, dots
        cdef cnp.npy_intp shape[2]
        cdef double number = 0.0, number_dot = 0.0
        cdef int nd = 2 if is_matrix else 1
        cdef cnp.ndarray x
        terms.count = dots.count = 0
        whole = a if a is not None and is_view(a) else None
        x = u if cnp.PyArray_CheckExact(u) else v
        shape[0] = cnp.PyArray_DIM(x, 0)
        if is_matrix:
            shape[1] = cnp.PyArray_DIM(<cnp.ndarray> v, 0)
        walk_factor(&wu, u, &number, is_matrix, nd, shape)
        walk_factor(&wv, v, &number, False, nd, shape)
        add_term_of(&terms, TIMES, &wu, &wv, NULL)
        if u_dot is not None:
            walk_factor(&wu_dot, u_dot, &number_dot, is_matrix, nd, shape)
            add_term_of(&dots, TIMES, &wu_dot, &wv, NULL)
        if v_dot is not None:
            walk_factor(&wv_dot, v_dot, &number_dot, False, nd, shape)
            add_term_of(&dots, TIMES, &wu, &wv_dot, NULL)
        if number_of(nd, shape) <= SMALL_PAIR and self.give(i, whole, nd, shape, &terms, &dots):
            return 0
        x_dot = None
        if u_dot is not None:
            x_dot = np.multiply.outer(u_dot, v) if is_matrix else PyNumber_Multiply(u_dot, v)
        if v_dot is not None:
            more = np.multiply.outer(u, v_dot) if is_matrix else PyNumber_Multiply(u, v_dot)
            x_dot = more if x_dot is None else PyNumber_Add(x_dot, more)
        self.add(i, a, np.multiply.outer(u, v) if is_matrix else PyNumber_Multiply(u, v), x_dot)
        return 0

    cdef bint gathered_back(self, ArrayStep step) except -1:
        """Of an array made of numbers: `more` has their indices."""
        cdef cnp.ndarray g = cnp.PyArray_GETCONTIGUOUS(self.g), g_dot
        cdef double* p = <double*> cnp.PyArray_DATA(g)
        cdef double* p_dot = NULL
        cdef Py_ssize_t k
        cdef int64_t j
        if self.g_dot is not None:
            g_dot = cnp.PyArray_GETCONTIGUOUS(self.g_dot)
            p_dot = <double*> cnp.PyArray_DATA(g_dot)
        for k, i in enumerate(<tuple> step.more):
            j = i
            if j >= 0:
                self.add_number(j, p[k], 0.0 if p_dot == NULL else p_dot[k])
        return True

    cdef bint cross_back(self, ArrayStep step) except -1:
        """Of the cross product of two vectors of three."""
        cdef cnp.ndarray x_dot
        region_a = self.pusher._region(step.a)
        region_b = self.pusher._region(step.b)
        if region_a is MISSING or region_b is MISSING:
            return False
        g, g_dot = self.g, self.g_dot
        a_dot = self.pusher._dot_of(region_a, step.a)
        b_dot = self.pusher._dot_of(region_b, step.b)
        if step.i >= 0:
            x_dot = None if g_dot is None else cross_of(step.b, g_dot, None)
            if b_dot is not None:
                x_dot = cross_of(b_dot, g, x_dot)
            self.add(step.i, step.a, cross_of(step.b, g, None), x_dot)
        if step.j >= 0:
            x_dot = None if g_dot is None else cross_of(g_dot, step.a, None)
            if a_dot is not None:
                x_dot = cross_of(g, a_dot, x_dot)
            self.add(step.j, step.b, cross_of(g, step.a, None), x_dot)
        return True

    cdef bint changed_back(self, ArrayStep step) except -1:
        """Of what was written into view or array `a` of region `i`."""
        cdef Walk d, d_dot
        cdef Terms terms, dots
        cdef cnp.ndarray x = step.a
        cdef int nd = cnp.PyArray_NDIM(x)
        cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(x)
        cdef bint fresh = False, fresh_dot = False
        if cnp.PyArray_SIZE(x) > SMALL_PAIR:
            return False
        if not self.aim(step.i, x, nd, shape, False, &d, &d_dot, &fresh, &fresh_dot):
            return False
        if step.op == SCALED_BY:
            accumulate(step.slope, True, nd, shape, &d, &d, NULL, NULL, step.c)
            if d_dot.data != NULL:
                accumulate(step.slope, True, nd, shape, &d_dot, &d_dot, NULL, NULL, step.c)
            return True
        if step.j >= 0:
            terms.count = dots.count = 0
            add_term_of(&terms, step.slope, &d, NULL, NULL)
            if d_dot.data != NULL:
                add_term_of(&dots, step.slope, &d_dot, NULL, NULL)
            if not self.give(step.j, step.b, nd, shape, &terms, &dots):
                return False
        if step.op == WRITTEN:
            accumulate(ZERO, True, nd, shape, &d, &d, NULL, NULL, 0.0)
            if d_dot.data != NULL:
                accumulate(ZERO, True, nd, shape, &d_dot, &d_dot, NULL, NULL, 0.0)
        return True


cdef bint walk_over(Walk* w, cnp.ndarray g, int nd, cnp.npy_intp* shape, int axis) noexcept:
    """How to go through `g`, the sum over `axis` of something of this shape, as broadcast to it; False if it is not."""
    cdef int k, at = 0
    cdef bint keeps = cnp.PyArray_NDIM(g) == nd
    if not keeps and cnp.PyArray_NDIM(g) != nd - 1:
        return False
    w.data = <char*> cnp.PyArray_DATA(g)
    for k in range(nd):
        if k == axis:
            w.strides[k] = 0
            if keeps:
                if cnp.PyArray_DIM(g, at) != 1:
                    return False
                at += 1
            continue
        if cnp.PyArray_DIM(g, at) != shape[k]:
            return False
        w.strides[k] = cnp.PyArray_STRIDE(g, at)
        at += 1
    return True


cdef int walk_factor(Walk* w, object u, double* number, bint along_rows, int nd, cnp.npy_intp* shape) except -1:
    """How to go through a vector or number of an outer product."""
    if not cnp.PyArray_CheckExact(u):
        number[0] = real(u)
        stay_at(w, number, nd)
    elif along_rows:
        w.data = <char*> cnp.PyArray_DATA(<cnp.ndarray> u)
        w.strides[0], w.strides[1] = cnp.PyArray_STRIDE(<cnp.ndarray> u, 0), 0
    else:
        walk_along(w, u, <char*> cnp.PyArray_DATA(<cnp.ndarray> u), nd, shape)
    return 0


cdef object product_dot(object a, object a_dot, object b, object b_dot):
    """The tangent of a @ b; None for zero."""
    if a_dot is None:
        return None if b_dot is None else PyNumber_MatrixMultiply(a, b_dot)
    z_dot = PyNumber_MatrixMultiply(a_dot, b)
    return z_dot if b_dot is None else PyNumber_Add(z_dot, PyNumber_MatrixMultiply(a, b_dot))
