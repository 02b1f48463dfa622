# -- elements chosen by arrays ---------------------------------------------------------------------------------------------
#
# a[k] and a[k] = v where k has arrays of places or of truth values: NumPy copies. On the way back the same index is used
# on the cotangent, with every term where a place stands twice.


cdef bint is_choice(object k, int* places) except -1:
    """Whether `k` is an index with arrays or lists of whole numbers (`places`: how many) or truth values."""
    cdef Py_ssize_t n
    cdef bint chooses = False
    places[0] = 0
    if PyTuple_CheckExact(k):
        for n in range(PyTuple_GET_SIZE(k)):
            part = <object> PyTuple_GET_ITEM(k, n)
            if is_basic_part(part):
                continue
            if not is_choice_part(part, places):
                return False
            chooses = True
        return chooses
    return is_choice_part(k, places)


cdef inline bint is_choice_part(object part, int* places) except -1:
    cdef int kind
    if cnp.PyArray_CheckExact(part):
        kind = cnp.PyArray_TYPE(<cnp.ndarray> part)
        if cnp.PyArray_NDIM(<cnp.ndarray> part) == 0:
            return False
        if cnp.PyTypeNum_ISINTEGER(kind):
            places[0] += 1
            return True
        return cnp.PyTypeNum_ISBOOL(kind)
    if not PyList_CheckExact(part) or len(<list> part) == 0:
        return False
    for x in <list> part:
        if not PyLong_CheckExact(x):
            return False
    places[0] += 1
    return True


cdef inline bint is_apart(cnp.ndarray a) noexcept:
    """Whether no two elements of an array surely share memory."""
    return cnp.PyArray_IS_C_CONTIGUOUS(a) or cnp.PyArray_IS_F_CONTIGUOUS(a)


cdef object writable_part(object whole, cnp.ndarray x, char* data):
    """As `part_of`, to be written."""
    view = part_of(whole, x, data)
    cnp.PyArray_ENABLEFLAGS(view, cnp.NPY_ARRAY_WRITEABLE)
    return view


cdef object bar_of(Bars bars, set owned, int64_t i, cnp.ndarray a):
    """The cotangent of array or view `a` of region `i`, to be written; None where that is not for here."""
    cdef cnp.ndarray owner
    cdef PyObject* found
    if not is_view(a):
        return writable_bar(bars, owned, i, None, cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), NULL)
    found = memory_of(a)
    if found == NULL:
        return None
    owner = <cnp.ndarray> found
    bar = writable_bar(bars, owned, i, owner, 0, NULL, NULL)
    if bar is None:
        return None
    return writable_part(
        bar, a, <char*> cnp.PyArray_DATA(<cnp.ndarray> bar) + (<char*> cnp.PyArray_DATA(a) - <char*> cnp.PyArray_DATA(owner))
    )


cdef int add_at(object bar, object k, object g, bint repeats) except -1:
    """bar[k] += g, with every term."""
    if repeats:
        np.add.at(bar, k, g)
    else:
        PyObject_SetItem(bar, k, PyNumber_Add(PyObject_GetItem(bar, k), g))
    return 0


# Reverse mode

cdef object chosen_in_reverse(ArrayRecorder r, cnp.ndarray a, int64_t i, object k):
    """a[k] of active array `a`; None where more is to be done."""
    cdef int places = 0
    cdef ArrayStep step
    if cnp.PyArray_NDIM(a) == 0 or cnp.PyArray_SIZE(a) == 0 or not is_choice(k, &places):
        return None
    k = steps.frozen_key(k)
    z = result_of(r.table, r._item(a, k))
    if z is None:
        return None
    step = ArrayStep.__new__(ArrayStep)
    step.op, step.i, step.j, step.a, step.more = CHOSEN, i, -1, r._form(a), k
    step.slope = places > 0 or not is_apart(a)
    return r._noted(step, z)


cdef bint chosen_back(ArrayStep step, Bars bars, set owned) except -1:
    cdef cnp.ndarray g
    if bars.cells[step.n].bits != OBJECT or not is_float64(bars.others[step.n]):
        return False
    bar = bar_of(bars, owned, step.i, step.a)
    if bar is None:
        return False
    add_at(bar, step.more, bars.others[step.n], step.slope)
    return True


cdef bint written_by_choice(ArrayRecorder r, object v, cnp.ndarray a, int64_t i, object k) except -1:
    """a[k] = v; False where more is to be done."""
    cdef double number = 0.0
    cdef bint is_array = False
    cdef int places = 0
    cdef int64_t j
    cdef ArrayStep step
    if cnp.PyArray_NDIM(a) == 0 or not is_apart(a) or not is_choice(k, &places):
        return False
    j = r._operand(v, &number, &is_array)
    if j == ELSEWHERE or (is_array and memory_of(v) == memory_of(a)):
        return False
    k = steps.frozen_key(k)
    save = r._save(a, k)
    r._set_item(v, a, k)
    step = ArrayStep.__new__(ArrayStep)
    step.op, step.i, step.j, step.a = CHANGED, i, j, a
    if j >= 0:
        step.b = r._form(v)
    step.more = k, steps.winners(a, k) if places and j >= 0 else None
    r._push(step)
    if save is not None:
        r.level._saved(save)
    return True


cdef bint choice_changed_back(ArrayStep step, Bars bars, set owned, object shadow) except -1:
    k, winners = <tuple> step.more
    bar = bar_of(bars, owned, step.i, step.a)
    if bar is None:
        return False
    if step.j >= 0:
        v_bar = PyObject_GetItem(bar, k)
        if winners is not None:
            v_bar = PyNumber_Multiply(v_bar, winners)
        if cnp.PyArray_CheckExact(step.b):
            give_operand(step, bars, owned, shadow, step.j, step.b, v_bar, Py_REFCNT(<PyObject*> v_bar) == 1)
        else:
            add_number(bars, step.j, real(np.add.reduce(v_bar, None)))
    PyObject_SetItem(bar, k, 0.0)
    return True


# Forward mode

cdef object chosen_in_forward(ArrayPusher p, cnp.ndarray a, object region, object k):
    """a[k] of array `a`, which has a tangent; None where that is not done here."""
    cdef int places = 0
    if cnp.PyArray_NDIM(a) == 0 or cnp.PyArray_SIZE(a) == 0 or not is_choice(k, &places):
        return None
    a_dot = p._dot_of(region, a)
    if a_dot is None or not is_float64(a_dot) or not has_shape(a_dot, a):
        return None
    z = result_of(p.table, PyObject_GetItem(a, k))
    if z is None:
        return None
    z_dot = PyObject_GetItem(a_dot, k)
    p._file_array(z, z_dot if is_new_array(z_dot) else cnp.PyArray_NewCopy(z_dot, cnp.NPY_KEEPORDER))
    return z


cdef bint written_in_forward(ArrayPusher p, object v, cnp.ndarray a, Dot* da, object whole, object k) except -1:
    """a[k] = v, of an array with a tangent, which is at `da`; False where that is not done here."""
    cdef int places = 0
    if cnp.PyArray_NDIM(a) == 0 or not is_apart(a) or not is_choice(k, &places):
        return False
    v_dot = None
    if cnp.PyArray_CheckExact(v):
        if not is_float64(v) or memory_of(v) == memory_of(a):
            return False
        region = p._region(v)
        if region is MISSING:
            return False
        v_dot = p._dot_of(region, v)
        if v_dot is not None and (not is_float64(v_dot) or not has_shape(v_dot, v)):
            return False
    elif PyFloat_CheckExact(v) or type(v) is NUMBER64:
        v_dot = dot_of_operand(p, v)
        v_dot = None if v_dot is ZeroTangent else v_dot
    elif not PyLong_CheckExact(v):
        return False
    PyObject_SetItem(a, k, v)
    PyObject_SetItem(writable_part(whole, a, da.data), k, 0.0 if v_dot is None else v_dot)
    return True


# Reverse mode inside forward mode

cdef tuple pair_of_bars(PairsBack way, int64_t i, cnp.ndarray a, bint moves):
    """The cotangent of array or view `a`, and its tangent if there is one or it `moves`, to be written; None as above."""
    cdef Walk d, d_dot
    cdef bint fresh = False, fresh_dot = False, is_part = is_view(a)
    if not way.aim(
        i, a if is_part else None, cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), moves, &d, &d_dot, &fresh, &fresh_dot
    ):
        return None
    index = i
    bar, dot = way.bars.others[index], None
    if fresh:
        cnp.PyArray_FILLWBYTE(bar, 0)
    if d_dot.data != NULL:
        dot = way.dot_of(index, bar)
        if dot is None or dot is MISSING:
            return None
        if fresh_dot:
            cnp.PyArray_FILLWBYTE(dot, 0)
        if is_part:
            dot = writable_part(dot, a, d_dot.data)
    return writable_part(bar, a, d.data) if is_part else bar, dot


cdef bint chosen_pairs_back(PairsBack way, ArrayStep step) except -1:
    if not way.arrives(step.n):
        return False
    g, g_dot = way.g, way.g_dot
    found = pair_of_bars(way, step.i, step.a, g_dot is not None)
    if found is None:
        return False
    bar, dot = found
    add_at(bar, step.more, g, step.slope)
    if g_dot is not None:
        add_at(dot, step.more, g_dot, step.slope)
    return True


cdef bint choice_changed_pairs_back(PairsBack way, ArrayStep step) except -1:
    k, winners = <tuple> step.more
    found = pair_of_bars(way, step.i, step.a, False)
    if found is None:
        return False
    bar, dot = found
    if step.j >= 0:
        v_bar, v_dot = PyObject_GetItem(bar, k), None if dot is None else PyObject_GetItem(dot, k)
        if winners is not None:
            v_bar = PyNumber_Multiply(v_bar, winners)
            v_dot = None if v_dot is None else PyNumber_Multiply(v_dot, winners)
        if not cnp.PyArray_CheckExact(step.b):
            v_bar = np.add.reduce(v_bar, None)
            v_dot = None if v_dot is None else np.add.reduce(v_dot, None)
        give_pair(way, step.j, step.b, v_bar, v_dot)
    PyObject_SetItem(bar, k, 0.0)
    if dot is not None:
        PyObject_SetItem(dot, k, 0.0)
    return True
