# -- functions of arrays by their rules -----------------------------------------------------------------------------------
#
# Of a function without a loop of its own here, NumPy computes what its rule says, on arrays and numbers that are looked
# at and filed here. What a pullback gives for z_bar it gives for the tangent of z_bar, too, where it does not change with
# the arguments (`AFFINE`); where it is linear in each of them, their tangents take their places (`MULTILINEAR`).

cdef enum:
    AFFINE, MULTILINEAR, ROW, BENT, CURVED  # `CURVED`: nothing is known of how the pullback changes

cdef enum:
    INERT, OPERAND, OPERANDS, NOT_HERE


cdef Py_ssize_t ANY_NUMBER = 1000
cdef tuple ANY_NAMES = ("any",)


cdef inline object evaluated(object x):
    """`x`, computed now if it was postponed."""
    while type(x) is Thunk:
        x = x.evaluate()
    return x


cdef bint may_map(Arithmetic m, object f, object rule) except -1:
    """Whether calls of `f`, which has a rule of ours, are for here."""
    if f in steps.UNFIT:
        return False
    if f in steps.KERNELS:
        return True
    if not rule.own or rule.rrule is None:
        return False
    if rule.kind == "scalar":
        return type(f) is np.ufunc and f.nin == 2 and f.nout == 1 and len(rule.partials) == 2
    module = rule.rrule.__module__
    return module.startswith("plaingrad.rules.numpy.") and not module.endswith(".random_numbers")


cdef int role_of(object x) except -1:
    """What an argument is: an array or number that may be active, a sequence of those, or neither."""
    cdef Py_ssize_t whole_numbers = 0, given
    if cnp.PyArray_CheckExact(x):
        if is_float64(x):
            return OPERAND if cnp.PyArray_NDIM(<cnp.ndarray> x) > 0 and cnp.PyArray_SIZE(<cnp.ndarray> x) > 0 else NOT_HERE
        return INERT
    if PyFloat_CheckExact(x) or type(x) is NUMBER64:
        return OPERAND
    if is_plain_option(x):
        return INERT
    if PyTuple_CheckExact(x) or PyList_CheckExact(x):
        given = len(x)
        for part in x:
            if PyLong_CheckExact(part):
                whole_numbers += 1
            elif not PyFloat_CheckExact(part) and type(part) is not NUMBER64 and (
                not is_float64(part) or cnp.PyArray_NDIM(<cnp.ndarray> part) == 0 or cnp.PyArray_SIZE(<cnp.ndarray> part) == 0
            ):
                return NOT_HERE
        return INERT if whole_numbers == given else OPERANDS
    return NOT_HERE


cdef inline bint is_plain_option(object x):
    return PyLong_CheckExact(x) or x is None or PyBool_Check(x) or PyUnicode_CheckExact(x) or x is Ellipsis


cdef bint is_still_array(Arithmetic m, cnp.ndarray x) except -1:
    """Whether an array of another type has no derivative, and memory that can be followed."""
    cdef PyObject* owner = cnp.PyArray_BASE(x)
    cdef int kind = cnp.PyArray_TYPE(x)
    if not cnp.PyTypeNum_ISNUMBER(kind) and not cnp.PyTypeNum_ISBOOL(kind):
        return False
    if owner == NULL:
        owner = <PyObject*> x
    elif not cnp.PyArray_CheckExact(<object> owner) or cnp.PyArray_BASE(<cnp.ndarray> owner) != NULL:
        return False
    if not cnp.PyArray_CHKFLAGS(<cnp.ndarray> owner, cnp.NPY_ARRAY_OWNDATA):
        return False
    key = PyLong_FromVoidPtr(<void*> owner)
    return PyDict_GetItemWithError(m.table.others, key) == NULL and (
        m.outer is None or PyDict_GetItemWithError(m.outer.table.others, key) == NULL
    )


@cython.final
cdef class MappedRule(ArrayRule):
    """A function whose rule maps arrays and numbers to one array or number."""

    cdef readonly object rule, bend
    cdef readonly tuple partials, named  # `named`: what may be given by name
    cdef readonly int part  # of the result, which has the derivative; below 0: all of it
    cdef int form
    cdef bint is_flat  # of a row: its slopes do not change
    cdef bint begun, is_here
    cdef bint joins  # arrays, of which lists of numbers may take the place
    cdef bint of_one  # a short form of a rule, for one array and options
    cdef Py_ssize_t most_positional
    cdef Py_ssize_t before_out  # how many arguments may come before an output array
    cdef Py_ssize_t parameters, most  # `most`: positional arguments; a ufunc takes more, and keywords, elsewhere
    cdef int mode  # 0: of a reverse level, 1: of a forward level

    def __init__(self, recorder, f, rule, general):
        super().__init__(recorder, f, general)
        self.rule = rule

    cdef bint _begin(self) except -1:
        """What is known of the function, at its first call; False if it is not for here."""
        f, rule = self.f, self.rule
        self.begun = True
        if not may_map(self.recorder, f, rule):
            return False
        short = steps.KERNELS.get(f)
        self.rule = rule = rule if short is None else short
        self.partials = rule.partials
        self.part = steps.PARTS.get(f, -1)
        self.named = ANY_NAMES if short is None else rule.rrule.__code__.co_varnames
        self.mode = 0 if isinstance(self.recorder, ArrayRecorder) else 1
        self.bend = steps.BENDS.get(f)
        self.form = (
            ROW if rule.kind == "scalar" else AFFINE if rule.kind == "linear" or rule.affine
            else MULTILINEAR if rule.kind == "bilinear" or f in steps.MULTILINEAR else CURVED if self.bend is None else BENT
        )
        self.is_flat = f in steps.FLAT_ROWS
        self.joins = f in steps.JOINING
        self.parameters = len(rule.parameters)
        self.most = f.nin if type(f) is np.ufunc else ANY_NUMBER
        self.of_one = short is not None and self.form != MULTILINEAR
        if self.of_one:
            self.most_positional = rule.rrule.__code__.co_argcount
        self.before_out = steps.PLACES_OF_OUT.get(f, ANY_NUMBER)
        self.is_here = True
        return True

    def call(self, *args, **kwargs):
        """f(*args, **kwargs)."""
        cdef int role
        cdef bint active = False
        if not self.is_here and (self.begun or not self._begin()) or len(args) > self.before_out:
            return self.general(*args, **kwargs)
        if self.of_one and (len(args) == 0 or len(args) > self.most_positional or not cnp.PyArray_CheckExact(args[0])):
            return self.general(*args, **kwargs)
        if self.joins and len(args) > 0 and PyList_CheckExact(args[0]) and holds_lists(args[0]):
            args = (with_rows(self.recorder, args[0]), *args[1:])
        if 0 < len(args) <= self.most and (not kwargs or self.most == ANY_NUMBER):
            for x in args:
                role = role_of(x)
                if role == NOT_HERE or (role == OPERANDS and self.form != AFFINE):
                    break
                if self.of_one and active and role != INERT:
                    break
                active = active or role != INERT
            else:
                for name, x in kwargs.items():
                    if self.named is not ANY_NAMES and name not in self.named:
                        break
                    if not is_plain_option(x) and not (PyTuple_CheckExact(x) and role_of(x) == INERT):
                        break
                else:
                    if active:
                        if self.mode == 0:
                            z = mapped_in_reverse(self.recorder, self, args, kwargs)
                        else:
                            z = mapped_in_forward(self.recorder, self, args, kwargs)
                        if z is not None:
                            return z
        return self.general(*args, **kwargs)


cdef bint holds_lists(list values):
    """Whether there are lists or tuples of numbers, some of them floats, among `values`, and arrays or such only."""
    cdef bint found = False, floats
    for part in values:
        if PyList_CheckExact(part) or PyTuple_CheckExact(part):
            floats = False
            for x in part:
                if not is_real(x):
                    return False
                floats = floats or not PyLong_CheckExact(x)
            if not floats:
                return False
            found = True
        elif not cnp.PyArray_CheckExact(part):
            return False
    return found


cdef list with_rows(Arithmetic m, list values):
    """`values`, with arrays in the place of lists."""
    make = m.level.prep(np.array)
    return [part if cnp.PyArray_CheckExact(part) else make(part) for part in values]


@cython.final
cdef class Mapped:
    """What the way back over such a call needs."""

    cdef readonly object pullback, rule
    cdef readonly tuple args, indices, operands, positions, entries  # of operands, what `places` has as C data
    cdef readonly dict kwargs
    cdef MappedRule how
    cdef readonly object result  # of a row, or of what has second derivatives of its own


cdef object by_rule_of(Arithmetic m, object f, object a, object b):
    """f(a, b) of a ufunc that an operator is; None where that is not done here."""
    cdef MappedRule how
    if m.mapped is None:
        m.mapped = {}
    how = m.mapped.get(f)
    if how is None:
        rule = steps.rule_of(f)
        if not isinstance(m, (ArrayRecorder, ArrayPusher)) or rule.users or rule.variants:
            return None
        how = m.mapped[f] = MappedRule(m, f, rule, steps.nothing_here)
    return how.call(a, b)


cdef bint has_entries(object x):
    return PyTuple_CheckExact(x) or PyList_CheckExact(x)


cdef tuple unshared(tuple args):
    """`args`, with lists that nobody else can change."""
    for x in args:
        if PyList_CheckExact(x):
            return tuple([list(x) if PyList_CheckExact(x) else x for x in args])
    return args


# Reverse mode

cdef object mapped_in_reverse(ArrayRecorder r, MappedRule how, tuple args, dict kwargs):
    """f(*args, **kwargs), with a step on the tape; None where that is not done here."""
    cdef list positions = [], entries = [], indices = [], operands = []
    cdef bint moves = False
    cdef Py_ssize_t position, entry
    cdef Mapped m
    if how.form == CURVED and r.outer is not None:
        return None
    args = unshared(args)
    for position in range(len(args)):
        x = args[position]
        if cnp.PyArray_CheckExact(x) and not is_float64(x):
            if not is_still_array(r, x):
                return None
        elif has_entries(x) and role_of(x) == OPERANDS:
            for entry in range(len(x)):
                if not look_at_operand(r, x[entry], position, entry, positions, entries, indices, operands, &moves):
                    return None
        elif not is_plain_option(x) and not has_entries(x):
            if not look_at_operand(r, x, position, -1, positions, entries, indices, operands, &moves):
                return None
    if not indices:
        return None
    m = Mapped.__new__(Mapped)
    m.how, m.rule = how, how.rule
    z = None
    if moves:
        z = mapped_in_forward(r.outer, how, args, kwargs)
        if z is None:
            return None
    if z is None and how.form == ROW:
        z = how.f(*args)
    elif z is None:
        found = how.rule.rrule(*args, **kwargs)
        if found is None:
            return None
        z, m.pullback = found
    elif how.form == AFFINE:
        if cnp.PyArray_CheckExact(z) and is_filed_memory(r.table, z):
            return z
        with steps.quiet():
            _, m.pullback = how.rule.rrule(*args, **kwargs)
    if how.form != AFFINE:
        m.args, m.kwargs = args, kwargs
    m.positions, m.entries, m.indices, m.operands = tuple(positions), tuple(entries), tuple(indices), tuple(operands)
    return note_mapped(r, m, z, args)


cdef bint look_at_operand(
    ArrayRecorder r, object x, Py_ssize_t position, Py_ssize_t entry,
    list positions, list entries, list indices, list operands, bint* moves
) except -1:
    """Note an operand, if it is active; False where that is not for here."""
    cdef int64_t i
    cdef Place* at
    if PyLong_CheckExact(x):
        return True
    if cnp.PyArray_CheckExact(x):
        i = r._place(x)
        if i == ELSEWHERE:
            return False
        if r.outer is not None:
            region = r.outer._region(x)
            if region is MISSING:
                return False
            if region is not None:
                moves[0] = True
    else:
        at = r.table.find(<PyObject*> x)
        i = INACTIVE if at == NULL else at.index
        if r._moves_outside(x):
            moves[0] = True
    if i < 0:
        return True
    positions.append(position)
    entries.append(entry)
    indices.append(i)
    operands.append(r._form(x) if cnp.PyArray_CheckExact(x) else x)
    return True


cdef bint is_filed_memory(Table table, cnp.ndarray z):
    """Whether an array lies in memory that is filed: a view of an argument, then."""
    cdef PyObject* owner = memory_of(z) if is_float64(z) else NULL
    return owner != NULL and PyDict_GetItemWithError(table.others, PyLong_FromVoidPtr(<void*> owner)) != NULL


cdef object note_mapped(ArrayRecorder r, Mapped m, object z, tuple args):
    """`z`, the result of the call `m`, with a step on the tape; None where that is not done here."""
    cdef ArrayStep step
    cdef Place* at
    cdef int form = m.how.form
    step = ArrayStep.__new__(ArrayStep)
    step.op, step.i, step.j, step.more = MAPPED, -1, -1, m
    number = z if m.how.part < 0 else z[m.how.part]
    if type(number) is NUMBER64:
        if r.table.find(<PyObject*> number) != NULL:
            return None
        r._make_room()
        at = r._filed(number)
        at.index = step.n = r.n
    else:
        if not cnp.PyArray_CheckExact(z):
            return None
        if form == AFFINE and is_filed_memory(r.table, z):
            return z
        z = result_of(r.table, z)
        if z is None:
            return None
        step.n = r._add_region(z, cnp.PyArray_NBYTES(<cnp.ndarray> z))
        step.z = r._form(z)
    if form == ROW or form == BENT:
        m.result = z
    if m.rule.kind == "linear":
        capture_arguments(r, args[1:])
    elif form == AFFINE:
        capture_cells(r, m.pullback)
    else:
        capture_arguments(r, args)
        if form != MULTILINEAR and cnp.PyArray_CheckExact(z):
            capture_arguments(r, (z,))
    r._push(step)
    r._settle()
    return z


cdef int capture_arguments(ArrayRecorder r, tuple args) except -1:
    """The way back will read the arrays among `args`."""
    cdef PyObject* owner
    for x in args:
        if cnp.PyArray_CheckExact(x):
            owner = cnp.PyArray_BASE(<cnp.ndarray> x)
            if owner == NULL:
                owner = <PyObject*> x
            r.captured[PyLong_FromVoidPtr(<void*> owner)] = <object> owner
        elif has_entries(x):
            capture_arguments(r, tuple(x))
    return 0


cdef int capture_cells(ArrayRecorder r, object pullback) except -1:
    """The way back will read what a pullback holds."""
    cdef object held
    cells = getattr(pullback, "__closure__", ())
    if type(pullback) is FunctionType:
        for cell in cells or ():
            if not PyCell_Check(cell) or PyCell_GET(cell) == NULL:
                continue
            held = <object> PyCell_GET(cell)
            if is_float64(held) and memory_of(held) != NULL:
                r._capture(held)
            elif not is_plain_option(held) and not (PyTuple_CheckExact(held) and role_of(held) == INERT):
                r.level._capture_held(pullback, 0)
                return 0
        return 0
    r.level._capture_held(pullback, 0)
    return 0


cdef bint mapped_back(ArrayStep step, Bars bars, set owned, object shadow) except -1:
    """Carry the cotangent of the result back to the operands; False where that is not for here."""
    cdef Mapped m = step.more
    cdef MappedRule how = m.how
    cdef tuple bars_found
    cdef Py_ssize_t k, position, entry
    cdef int64_t i
    cdef bint own
    if bars.cells[step.n].bits != OBJECT:
        z_bar = PyFloat_FromDouble(bars.cells[step.n].number)
    else:
        z_bar = bars.others[step.n]
        if not is_float64(z_bar):
            return False
    if how.form == ROW:
        return row_back(step, m, z_bar, bars, owned, shadow)
    if m.pullback is None:  # recorded inside a forward level that is over
        m.pullback = how.rule.rrule(*m.args, **m.kwargs)[1]
    bars_found = m.pullback(z_bar)
    for k in range(len(m.indices)):
        position, entry, i = m.positions[k], m.entries[k], m.indices[k]
        if position >= len(bars_found):
            return refused_in_python(step, shadow)
        x_bar = evaluated(bars_found[position])
        if x_bar is ZeroTangent:
            continue
        if entry >= 0:
            x_bar = evaluated(x_bar[entry])
        own = Py_REFCNT(<PyObject*> x_bar) == 2
        give_operand(step, bars, owned, shadow, i, m.operands[k], x_bar, own)
    return True


cdef bint refused_in_python(ArrayStep step, object shadow) except -1:
    step.in_python(shadow, [])
    return True


cdef int give_operand(
    ArrayStep step, Bars bars, set owned, object shadow, int64_t i, object x, object x_bar, bint own
) except -1:
    """Add `x_bar` to the cotangent of operand `x`; `own`: nobody else has it."""
    if cnp.PyArray_CheckExact(x) and is_float64(x_bar) and has_shape(<cnp.ndarray> x_bar, <cnp.ndarray> x):
        if not own and not is_view(<cnp.ndarray> x) and bars.cells[i].bits == NOTHING:
            shadow.add_array(i, steps.WHOLE, x_bar)  # kept as it came
        else:
            step.add(bars, owned, shadow, i, x, x_bar)
    elif not cnp.PyArray_CheckExact(x) and (PyFloat_CheckExact(x_bar) or type(x_bar) is NUMBER64):
        add_number(bars, i, PyFloat_AS_DOUBLE(x_bar))
    else:
        steps.add_projected(shadow, i, x, x_bar)
    return 0


cdef bint row_back(ArrayStep step, Mapped m, object z_bar, Bars bars, set owned, object shadow) except -1:
    """Of an elementwise function of several arguments."""
    cdef Walk wg, ws
    cdef Py_ssize_t k, position
    cdef cnp.ndarray g
    cdef int nd
    cdef bint few
    if not cnp.PyArray_CheckExact(z_bar):
        return False
    g = z_bar
    nd, few = cnp.PyArray_NDIM(g), cnp.PyArray_SIZE(g) <= SMALL
    for k in range(len(m.indices)):
        position = m.positions[k]
        slope = m.how.partials[position]
        x = m.operands[k]
        if slope is None:
            continue
        if callable(slope):
            slope = slope(np, *m.args, m.result)
        if few and is_float64(slope) and cnp.PyArray_NDIM(<cnp.ndarray> slope) <= nd:
            walk_along(&wg, g, <char*> cnp.PyArray_DATA(g), nd, cnp.PyArray_DIMS(g))
            walk_along(&ws, slope, <char*> cnp.PyArray_DATA(<cnp.ndarray> slope), nd, cnp.PyArray_DIMS(g))
            if step.give(bars, owned, shadow, m.indices[k], step.whole_or(x, g), g, TIMES, &wg, &ws, NULL):
                continue
        steps.add_projected(shadow, m.indices[k], x, g if is_one(slope) else PyNumber_Multiply(g, slope))
    return True


cdef inline bint is_one(object slope):
    return is_real(slope) and real(slope) == 1.0
