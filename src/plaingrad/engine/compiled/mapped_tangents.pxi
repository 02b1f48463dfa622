# -- functions of arrays by their rules, in forward mode and in reverse mode inside it ----------------------------------


# Forward mode

cdef object mapped_in_forward(ArrayPusher p, MappedRule how, tuple args, dict kwargs):
    """f(*args, **kwargs), filed with its tangent; None where that is not done here."""
    cdef list dots = []
    cdef bint moves = False
    for x in args:
        x_dot = ZeroTangent
        if cnp.PyArray_CheckExact(x) and not is_float64(x):
            if not is_still_array(p, x):
                return None
        elif has_entries(x):
            if role_of(x) == OPERANDS:
                x_dot = dots_of_entries(p, x)
                if x_dot is None:
                    return None
        elif not is_plain_option(x):
            x_dot = dot_of_operand(p, x)
            if x_dot is None:
                return None
        if x_dot is not ZeroTangent:
            moves = True
        dots.append(x_dot)
    if not moves:
        return None
    while len(dots) < how.parameters:
        dots.append(ZeroTangent)
    if how.form == ROW:
        z = how.f(*args)
        if not is_new_array(z):
            return None
        with steps.quiet():
            z_dot = row_dot(how, args, z, dots)
        if z_dot is None:
            return z
    elif how.rule.frule is not None:
        found = how.rule.frule(*args, **kwargs)
        if found is None:
            return None
        z, push = found
        if cnp.PyArray_CheckExact(z) and is_filed_memory(p.table, z):
            return z if how.form == AFFINE else None
        with steps.quiet():
            z_dot = evaluated(push(tuple(dots)))
    else:
        return None
    return file_mapped(p, how, z, z_dot)


cdef object file_mapped(ArrayPusher p, MappedRule how, object z, object z_dot):
    """`z`, filed with its tangent; None where that is not done here."""
    number = z if how.part < 0 else z[how.part]
    if type(number) is NUMBER64:
        if p.table.find(<PyObject*> number) != NULL:
            return None
        if z_dot is not ZeroTangent:
            p._file(number, real(z_dot) if is_real(z_dot) else float(z_dot))
        return z
    if not cnp.PyArray_CheckExact(z):
        return None
    z = result_of(p.table, z)
    if z is None or z_dot is ZeroTangent:
        return z
    if not is_float64(z_dot) or not is_new_array(z_dot) or not has_shape(z_dot, z) or Py_REFCNT(<PyObject*> z_dot) > 2:
        whole_dot = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(<cnp.ndarray> z), cnp.PyArray_DIMS(<cnp.ndarray> z), cnp.NPY_DOUBLE, 0)
        whole_dot[...] = z_dot
        z_dot = whole_dot
    p._file_array(z, z_dot)
    return z


cdef object dot_of_operand(ArrayPusher p, object x):
    """The tangent of an array or number, `ZeroTangent` if it has none; None where that is not for here."""
    cdef Place* at
    if cnp.PyArray_CheckExact(x):
        region = p._region(x)
        if region is MISSING:
            return None
        x_dot = p._dot_of(region, x)
        if x_dot is None:
            return ZeroTangent
        return x_dot if is_float64(x_dot) and has_shape(x_dot, x) else None
    at = p.table.find(<PyObject*> x) if not PyLong_CheckExact(x) else NULL
    return ZeroTangent if at == NULL else NUMBER64(at.dot)


cdef object dots_of_entries(ArrayPusher p, object values):
    """The tangents of a sequence of arrays and numbers, explicit zeros among them; None where that is not for here."""
    cdef list dots = []
    cdef bint moves = False
    for x in values:
        x_dot = dot_of_operand(p, x)
        if x_dot is None:
            return None
        moves = moves or x_dot is not ZeroTangent
        dots.append(x_dot)
    if not moves:
        return ZeroTangent
    for k in range(len(dots)):
        if dots[k] is ZeroTangent:
            dots[k] = np.zeros_like(values[k]) if cnp.PyArray_CheckExact(values[k]) else 0.0
    return tuple(dots) if PyTuple_CheckExact(values) else dots


cdef object row_dot(MappedRule how, tuple args, object z, list dots):
    """The tangent of an elementwise function of several arguments; None for zero."""
    cdef Py_ssize_t k
    z_dot = None
    for k in range(len(args)):
        slope = how.partials[k] if k < len(how.partials) else None
        if dots[k] is ZeroTangent or slope is None:
            continue
        if callable(slope):
            slope = slope(np, *args, z)
        term = dots[k] if is_one(slope) else slope * dots[k]
        z_dot = term if z_dot is None else z_dot + term
    return z_dot


# Reverse mode inside forward mode

cdef bint mapped_pairs_back(PairsBack way, ArrayStep step) except -1:
    """As `mapped_back`, with tangents."""
    cdef Mapped m = step.more
    cdef MappedRule how = m.how
    cdef PairBars bars = way.bars
    cdef Py_ssize_t k, position, entry
    cdef list dots = None
    if bars.cells[step.n].bits != OBJECT:
        g = PyFloat_FromDouble(bars.cells[step.n].number)
        g_dot = PyFloat_FromDouble(bars.dots[step.n]) if bars.dots[step.n] != 0.0 else None
    else:
        if not way.arrives(step.n):
            return False
        g, g_dot = way.g, way.g_dot
    if how.form == ROW:
        return row_pairs_back(way, step, m, g, g_dot)
    if how.form != AFFINE:
        dots = []
        for x in m.args:
            x_dot = ZeroTangent
            if cnp.PyArray_CheckExact(x) and is_float64(x) or PyFloat_CheckExact(x) or type(x) is NUMBER64:
                x_dot = dot_of_operand(way.pusher, x)
                if x_dot is None:
                    return False
            dots.append(None if x_dot is ZeroTangent else x_dot)
    more = None
    if how.form == BENT:
        z_dot = dot_of_operand(way.pusher, m.result if how.part < 0 else m.result[how.part])
        if z_dot is None:
            return False
        x_bars, x_dots = how.bend(m.args, m.result, dots, None if z_dot is ZeroTangent else z_dot, g, g_dot, **m.kwargs)
    else:
        pullback = m.pullback if m.pullback is not None else how.rule.rrule(*m.args, **m.kwargs)[1]
        x_bars = pullback(g)
        x_dots = None if g_dot is None else pullback(g_dot)
        if dots is not None:
            more = moved_cotangents(how.rule.rrule, m, dots, g)
    for k in range(len(m.indices)):
        position, entry = m.positions[k], m.entries[k]
        if position >= len(x_bars):
            return refused_in_pairs(way, step)
        x_bar = evaluated(x_bars[position])
        if x_bar is ZeroTangent:
            continue
        x_dot = None if x_dots is None else evaluated(x_dots[position])
        if x_dot is ZeroTangent:
            x_dot = None
        if entry >= 0:
            x_bar = evaluated(x_bar[entry])
            x_dot = None if x_dot is None else evaluated(x_dot[entry])
        if more is not None:
            for moved, others in <list> more:
                if moved != position:
                    bend = evaluated(others[position])
                    x_dot = bend if x_dot is None else x_dot + bend
        give_pair(way, m.indices[k], m.operands[k], x_bar, x_dot)
    return True


cdef list moved_cotangents(object rrule, Mapped m, list dots, object g):
    """The cotangents of a function linear in each operand, with one operand at a time replaced by its tangent."""
    cdef Py_ssize_t k
    cdef list found = []
    for k in range(len(dots)):
        if dots[k] is not None:
            moved = (*m.args[:k], dots[k], *m.args[k + 1 :])
            found.append((k, rrule(*moved, **m.kwargs)[1](g)))
    return found


cdef bint refused_in_pairs(PairsBack way, ArrayStep step) except -1:
    way.in_python(step)
    return True


cdef object of_shape(object x_bar, cnp.ndarray x):
    """A new array of the shape of `x`, of a cotangent that may be another's, or of another shape."""
    cdef cnp.ndarray z
    if not is_float64(x_bar) or not has_shape(x_bar, x):
        x_bar = steps.project(x_bar, x)
    if is_new_array(x_bar) and Py_REFCNT(<PyObject*> x_bar) <= 2:
        return x_bar
    z = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.NPY_DOUBLE, 0)
    z[...] = x_bar
    return z


cdef int give_pair(PairsBack way, int64_t i, object x, object x_bar, object x_dot) except -1:
    """Add `x_bar` and its tangent to those of operand `x`."""
    if cnp.PyArray_CheckExact(x):
        way.add(i, x, of_shape(x_bar, x), None if x_dot is None else of_shape(x_dot, x))
    else:
        way.add_number(
            i, real(steps.number_cotangent(x_bar, 1.0)), 0.0 if x_dot is None else real(steps.number_cotangent(x_dot, 1.0))
        )
    return 0


cdef object moved_slope(tuple bends, Py_ssize_t position, object x_dot, object y_dot):
    """The tangent of a slope of a function of two; None for zero."""
    slope_dot = None
    if x_dot is not ZeroTangent:
        slope_dot = bends[position] * x_dot
    if y_dot is not ZeroTangent:
        more = bends[position + 1] * y_dot
        slope_dot = more if slope_dot is None else slope_dot + more
    return slope_dot


cdef bint row_pairs_back(PairsBack way, ArrayStep step, Mapped m, object z_bar, object z_dot) except -1:
    cdef Py_ssize_t k
    cdef list slopes = [], slope_dots = []
    cdef cnp.ndarray g
    if not cnp.PyArray_CheckExact(z_bar):
        return False
    g = z_bar
    bends = None if m.how.is_flat else steps.curvature_of_two(m.how.f, m.args[0], m.args[1], m.result)
    if bends is not None:
        x_dot, y_dot = dot_of_operand(way.pusher, m.args[0]), dot_of_operand(way.pusher, m.args[1])
        if x_dot is None or y_dot is None:
            return False
    for k in range(len(m.indices)):
        slope, slope_dot = m.how.partials[<Py_ssize_t> m.positions[k]], None
        if callable(slope) and (m.how.is_flat or bends is not None):
            slope = slope(np, *m.args, m.result)
            if bends is not None:
                slope_dot = moved_slope(bends, <Py_ssize_t> m.positions[k], x_dot, y_dot)
        elif callable(slope):
            slope = way.outer.calls.inside(slope)(np, *m.args, m.result)
            if not is_float64(slope) and not is_real(slope):
                return False
            if not PyLong_CheckExact(slope):
                slope_dot = dot_of_operand(way.pusher, slope)
            if slope_dot is None:
                return False
            if slope_dot is ZeroTangent:
                slope_dot = None
        slopes.append(slope)
        slope_dots.append(slope_dot)
    for k in range(len(slopes)):
        slope, slope_dot = slopes[k], slope_dots[k]
        if slope is None:
            continue
        x = m.operands[k]
        x_bar = PyNumber_Multiply(g, slope)
        x_dot = None if z_dot is None else PyNumber_Multiply(z_dot, slope)
        if slope_dot is not None:
            bend = PyNumber_Multiply(g, slope_dot)
            x_dot = bend if x_dot is None else PyNumber_Add(x_dot, bend)
        if cnp.PyArray_CheckExact(x):
            x_bar = steps.unbroadcast(x_bar, x.shape)
            x_dot = None if x_dot is None else steps.unbroadcast(x_dot, x.shape)
        else:
            x_bar = np.add.reduce(x_bar, None)
            x_dot = None if x_dot is None else np.add.reduce(x_dot, None)
        give_pair(way, m.indices[k], x, x_bar, x_dot)
    return True
