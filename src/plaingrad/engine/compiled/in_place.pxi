# -- arrays multiplied and divided in place, and memory that becomes active -------------------------------------------------


# Reverse mode

cdef int64_t activated(ArrayRecorder r, cnp.ndarray a, int64_t j, object v) except -9:
    """The region of array `a`, which is not active, now that `v`, of index `j`, is written there; -1 where `v` is not active."""
    cdef cnp.ndarray owner
    if j < 0:
        return INACTIVE
    owner = <cnp.ndarray> memory_of(a)
    return r._add_region(owner, cnp.PyArray_NBYTES(owner))


cdef bint write_of_still(ArrayRecorder r, object v, cnp.ndarray a, object k) except -1:
    """a[k] = v of what is not active; False where more is to be done."""
    if r.truncated or PyDict_GetItemWithError(r.captured, PyLong_FromVoidPtr(<void*> memory_of(a))) != NULL:
        return False
    r._set_item(v, a, k)
    return True


cdef object multiplied(ArrayRecorder r, cnp.ndarray a, object b, int64_t i, int64_t j, bint is_b, double y, int op):
    """a *= b or a /= b where b is an array or active; None where more is to be done."""
    cdef ArrayStep step
    old = None
    if cnp.PyArray_NDIM(a) == 0:
        return None
    if is_b and (cnp.PyArray_NDIM(<cnp.ndarray> b) == 0 or memory_of(b) == memory_of(a)):
        return None
    if not cnp.PyArray_ISWRITEABLE(a) or not r._may_write(i):
        return None
    if j >= 0:
        old = cnp.PyArray_NewCopy(a, cnp.NPY_CORDER) if r.outer is None else r.outer.copied(a)
        if old is None:
            return None
    save = r._save(a, Ellipsis)
    step = ArrayStep.__new__(ArrayStep)
    step.op, step.slope, step.i, step.j, step.a, step.b, step.z, step.c = MULTIPLIED, op, i, j, a, b, old, y
    if is_b:
        r._capture(b)
    z = error = None
    try:
        z = changed_in_place(a, b, op) if r.outer is None else r.outer._binary(a, b, op, True)
    except FloatingPointError as raised:  # of `np.errstate`: the memory has been written
        error = raised
    r._push(step)
    if save is not None:
        r.level._saved(save)
    if error is not None:
        raise error
    return z


cdef bint multiplied_back(ArrayStep step, Bars bars, set owned, object shadow) except -1:
    cdef cnp.ndarray bar
    cdef int nd
    cdef Walk d, wb, wz
    cdef bint is_b = cnp.PyArray_CheckExact(step.b)
    cdef cnp.npy_intp* shape
    if cnp.PyArray_SIZE(<cnp.ndarray> step.a) > SMALL:
        return False
    found = bar_of(bars, owned, step.i, step.a)
    if found is None:
        return False
    bar = found
    nd, shape = cnp.PyArray_NDIM(bar), cnp.PyArray_DIMS(bar)
    walk_along(&d, bar, <char*> cnp.PyArray_DATA(bar), nd, shape)
    if is_b:
        walk_along(&wb, step.b, <char*> cnp.PyArray_DATA(<cnp.ndarray> step.b), nd, shape)
    else:
        stay_at(&wb, &step.c, nd)
    if step.j >= 0:
        z = step.z if step.slope == MUL else PyNumber_TrueDivide(step.z, step.b if is_b else step.c)
        walk_along(&wz, z, <char*> cnp.PyArray_DATA(<cnp.ndarray> z), nd, shape)
        if not step.give(
            bars, owned, shadow, step.j, step.b, bar, TIMES if step.slope == MUL else QUOTIENT, &d, &wz,
            NULL if step.slope == MUL else &wb
        ):
            return False
    accumulate(TIMES if step.slope == MUL else OVER, True, nd, shape, &d, &d, &wb, NULL, 0.0)
    return True


# Reverse mode inside forward mode

cdef bint multiplied_pairs_back(PairsBack way, ArrayStep step) except -1:
    cdef bint is_b = cnp.PyArray_CheckExact(step.b), times = step.slope == MUL
    b = step.b if is_b else step.c
    b_dot = dot_of_operand(way.pusher, step.b)
    if b_dot is None:
        return False
    b_dot = None if b_dot is ZeroTangent else b_dot
    old_dot = None
    if step.z is not None:
        old_dot = dot_of_operand(way.pusher, step.z)
        if old_dot is None:
            return False
        old_dot = None if old_dot is ZeroTangent else old_dot
    found = pair_of_bars(way, step.i, step.a, b_dot is not None)
    if found is None:
        return False
    g, g_dot = found
    back = g * b if times else g / b
    back_dot = None if g_dot is None else g_dot * b if times else g_dot / b
    if b_dot is not None:
        more = g * b_dot if times else -(back / b * b_dot)
        back_dot = more if back_dot is None else back_dot + more
    if step.j >= 0:
        z = step.z if times else step.z / b
        z_dot = old_dot if times or old_dot is None else old_dot / b
        if not times and b_dot is not None:
            more = -(z / b * b_dot)
            z_dot = more if z_dot is None else z_dot + more
        left, left_dot = (g, g_dot) if times else (-back, None if back_dot is None else -back_dot)
        v_bar = left * z
        v_dot = None if left_dot is None else left_dot * z
        if z_dot is not None:
            v_dot = left * z_dot if v_dot is None else v_dot + left * z_dot
        if is_b:
            v_bar = steps.unbroadcast(v_bar, b.shape)
            v_dot = None if v_dot is None else steps.unbroadcast(v_dot, b.shape)
        else:
            v_bar = np.add.reduce(v_bar, None)
            v_dot = None if v_dot is None else np.add.reduce(v_dot, None)
        give_pair(way, step.j, step.b, v_bar, v_dot)
    g[...] = back
    if back_dot is not None:
        g_dot[...] = back_dot
    return True


# Forward mode

cdef object multiplied_in_forward(ArrayPusher p, cnp.ndarray a, object b, Dot* da, Dot* db, bint is_b, double y, int op):
    """a *= b or a /= b where b is an array or moves; None where that is not done here."""
    cdef int nd = cnp.PyArray_NDIM(a)
    cdef cnp.npy_intp* shape = cnp.PyArray_DIMS(a)
    cdef Walk d, w, by
    cdef cnp.ndarray old = None
    if nd == 0:
        return None
    if is_b and (cnp.PyArray_NDIM(<cnp.ndarray> b) == 0 or memory_of(b) == memory_of(a)):
        return None
    if not cnp.PyArray_ISWRITEABLE(a) or not p._may_write(p._region(a)):
        return None
    if db.kind != STILL and op == MUL:
        old = cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)
    z = error = None
    try:
        z = changed_in_place(a, b, op)
    except FloatingPointError as raised:  # of `np.errstate`: the memory has been written
        error = raised
    walk_along(&d, <cnp.ndarray> da.like, da.data, nd, shape)
    if is_b:
        walk_along(&by, b, <char*> cnp.PyArray_DATA(<cnp.ndarray> b), nd, shape)
    else:
        stay_at(&by, &y, nd)
    if op == MUL:
        accumulate(TIMES, True, nd, shape, &d, &d, &by, NULL, 0.0)
        if db.kind != STILL:
            p._walk(&w, db, nd, shape)
            walk_along(&by, old, <char*> cnp.PyArray_DATA(old), nd, shape)
            accumulate(TIMES, False, nd, shape, &d, &w, &by, NULL, 0.0)
    else:
        if db.kind != STILL:
            p._walk(&w, db, nd, shape)
            walk_along(&by, a, <char*> cnp.PyArray_DATA(a), nd, shape)
            accumulate(NEGATIVE_TIMES, False, nd, shape, &d, &w, &by, NULL, 0.0)
            if is_b:
                walk_along(&by, b, <char*> cnp.PyArray_DATA(<cnp.ndarray> b), nd, shape)
            else:
                stay_at(&by, &y, nd)
        accumulate(OVER, True, nd, shape, &d, &d, &by, NULL, 0.0)
    if error is not None:
        raise error
    return z


cdef object moving_memory(ArrayPusher p, cnp.ndarray a):
    """The region of array `a`, which had no tangent, with zeros if it is new; None where that is not done here."""
    cdef cnp.ndarray owner = <cnp.ndarray> memory_of(a)
    if not (cnp.PyArray_IS_C_CONTIGUOUS(owner) or cnp.PyArray_IS_F_CONTIGUOUS(owner)):
        return None
    # Several threads may begin to write into parts of one array, which has one region.
    return exclusively(p.level.activating, filed_memory, p, a)


def filed_memory(ArrayPusher p, cnp.ndarray a):
    """The same, while no other thread does so."""
    cdef cnp.ndarray owner = <cnp.ndarray> memory_of(a)
    region = p._region(a)
    if region is MISSING:
        return None
    if region is None:
        order = 0 if cnp.PyArray_IS_C_CONTIGUOUS(owner) else 1
        p._file_array(
            owner, cnp.PyArray_ZEROS(cnp.PyArray_NDIM(owner), cnp.PyArray_DIMS(owner), cnp.NPY_DOUBLE, order)
        )
        region = p._region(a)
    return region
