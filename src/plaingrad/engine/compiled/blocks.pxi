# -- slopes of large arrays, a block at a time --------------------------------------------------------------------------------
#
# What a row computes on a block stays in the cache, and its product with what arrived goes where it belongs, without an
# array of its own.

cdef bint in_blocks(ArrayStep step, Bars bars, set owned, cnp.ndarray g, bint ends) except -1:
    """g times the slope of a large array, a block at a time, each added at once where it belongs."""
    cdef int nd = cnp.PyArray_NDIM(g), k
    cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(g)
    cdef cnp.npy_intp size[1]
    cdef Py_ssize_t first, apart = sizeof(double)
    cdef bint fresh = False
    cdef Walk d, at, wg, wo
    cdef cnp.ndarray slope
    blocks = steps.slopes_in_blocks(g, step.more, (step.a,), step.z)
    if blocks is None:
        return False
    x = step.a if step.a is not None and is_view(step.a) else None
    walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, shape)
    if ends and x is None and bars.cells[step.i].bits == NOTHING:
        d, fresh = wg, True
    else:
        if not walk_to(&d, bars, owned, step.i, x, nd, shape, &fresh if x is None else NULL):
            return False
        for k in reversed(range(nd)):  # its elements in the order of those of g?
            if not fresh and shape[k] != 1 and d.strides[k] != apart:
                return False
            apart *= shape[k]
    for first, slope in blocks:
        size[0] = cnp.PyArray_SIZE(slope)
        at.data, at.strides[0] = d.data + first * sizeof(double), sizeof(double)
        wo.data, wo.strides[0] = <char*> cnp.PyArray_DATA(slope), sizeof(double)
        if cnp.PyArray_IS_C_CONTIGUOUS(g):
            wg.data, wg.strides[0] = <char*> cnp.PyArray_DATA(g) + first * sizeof(double), sizeof(double)
        else:  # one number, of a sum
            wg.strides[0] = 0
        accumulate_unlocked(TIMES, fresh, 1, size, &at, &wg, &wo, NULL, 0.0)
    if bars.cells[step.i].bits == NOTHING:
        bars.others[step.i] = g
        bars.cells[step.i].bits = OBJECT
        owned.add(step.i)
    return True
