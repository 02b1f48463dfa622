# -- expressions --------------------------------------------------------------------------------------------------------
#
# Several operations in one call, as `rewrite.evaluation` says. Numbers in between are no objects unless something other
# than arithmetic takes them, and are then filed as a hook would have done.

cdef enum:
    LOAD_OPERAND, LOAD_CELL, LOAD_CONST, LOAD_GLOBAL, ATTRIBUTE, METHOD, ITEM, OPERATOR, NEGATIVE, COMPARISON, CALL, PREPARED_CALL, SET_ATTRIBUTE, SET_ITEM_OF

cdef tuple VERBS = evaluation.VERBS
cdef tuple COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
cdef enum:
    MOST_VALUES = 12, MOST_STEPS = 40, MOST_OPERANDS = 8
    FIRST = 2  # the place of the first value: the two at the top are looked at where there are fewer


cdef struct Step:
    int verb
    int what  # an operand, operator or comparison
    bint in_place
    PyObject* thing  # a name or constant
    Item number  # a constant
    Item anything  # the same where numbers do not do without objects


cdef struct Working:  # on an expression
    int top  # the place of the next value
    Item* values[FIRST + MOST_VALUES]  # in `own` at the same place, which has a reference to its object, or elsewhere, borrowed
    Item own[FIRST + MOST_VALUES]
    Item operands[MOST_OPERANDS]


@cython.final
cdef class Expression:
    """Steps that make one value of so many operands; `rewrite.evaluation.Expression` in memory of C."""

    cdef readonly tuple steps
    cdef readonly int operands
    cdef Step codes[MOST_STEPS]
    cdef int count
    cdef bint has_objects_only  # it loads, and looks up attributes, methods and items
    cdef list things

    def __init__(self, steps, operands):
        cdef Step* s
        if len(steps) > MOST_STEPS or operands > MOST_OPERANDS:
            raise ValueError("too long an expression")
        self.steps, self.operands = steps, operands
        self.count = len(steps)
        self.things = []
        self.has_objects_only = True
        for k, (verb, what) in enumerate(steps):
            s = &self.codes[k]
            s.verb = VERBS.index(verb)
            if s.verb > ITEM or s.verb == LOAD_CELL:
                self.has_objects_only = False
            if s.verb == LOAD_OPERAND:
                s.what = what
            elif s.verb == OPERATOR:
                s.in_place = what not in OPERATORS
                s.what = (IN_PLACE if s.in_place else OPERATORS).index(what)
            elif s.verb == COMPARISON:
                s.what = COMPARISONS.index(what)
            else:
                if s.verb == LOAD_CELL:
                    s.what = what[0]
                self.things.append(what)
                s.thing = s.number.object = s.anything.object = <PyObject*> what
                if type(what) is float:
                    s.number.x, s.number.kind = what, STILL_NUMBER


@cython.final
cdef class Evaluator:
    """The hook of expressions of a level with compiled arithmetic; without, `general` does it."""

    cdef Looks looks
    cdef Arithmetic arithmetic
    cdef Tape tape  # of a reverse level with none around; else None
    cdef object general
    cdef Columns columns  # where the tangents of numbers are, or None
    cdef bint has_numbers  # whether numbers may do without objects: no level is around this one

    def __init__(self, looks, arithmetic, general):
        self.looks, self.arithmetic, self.general = looks, arithmetic, general
        self.has_numbers = arithmetic is not None and self.arithmetic.outer is None
        self.tape = (<Recorder> arithmetic).tape if self.has_numbers and isinstance(arithmetic, Recorder) else None
        self.columns = None if arithmetic is None else self.arithmetic.table.columns

    @property
    def expression(self):
        """The hook: the value of an expression, which comes after up to two operands from the stack, before the others."""
        return PyCFunction_New(&expression_method, self)

    cdef object _evaluated(self, PyObject** given, Py_ssize_t count):
        cdef PyObject* operands[MOST_OPERANDS]
        cdef Py_ssize_t k, at = 0
        while at < count and type(<object> given[at]) is not Expression:
            at += 1
        if at == count or self.arithmetic is None or not self.arithmetic.own_numbers:
            return self.general(*[<object> given[k] for k in range(count)])
        if at == 0:
            return self._value(<Expression> <object> given[0], given + 1)
        for k in range(count):
            if k != at:
                operands[k - (k > at)] = given[k]
        return self._value(<Expression> <object> given[at], operands)

    cdef object _value(self, Expression e, PyObject** given):
        cdef Working w  # which is left as it is found in memory
        cdef int k
        if e.has_objects_only:
            return self._looked_up(e, given)
        w.top = FIRST
        w.values[0] = w.values[1] = NULL
        for k in range(e.operands):
            w.operands[k].kind = NOT_LOOKED_AT
        try:
            self._run(e, given, &w)
            return self._object(w.values[FIRST])
        finally:
            while w.top > FIRST:
                self._pop(&w)

    cdef object _looked_up(self, Expression e, PyObject** given):
        """The value of an expression that has objects only: nothing needs to be known of what is on the way."""
        cdef PyObject* values[MOST_VALUES]
        cdef PyObject* x
        cdef Step* s = e.codes
        cdef Step* end = s + e.count
        cdef int top = 0
        try:
            while s != end:
                if s.verb == LOAD_OPERAND or s.verb == LOAD_CONST:
                    x = given[s.what] if s.verb == LOAD_OPERAND else s.thing
                    Py_INCREF(x)
                    values[top] = x
                    top += 1
                    s += 1
                    continue
                if s.verb == LOAD_GLOBAL:
                    made = global_of_frame(<object> s.thing)
                    top += 1
                elif s.verb == ITEM:
                    made = self.looks.getitem(<object> values[top - 2], <object> values[top - 1])
                    top -= 1
                    Py_DECREF(values[top])
                    x = values[top - 1]
                    Py_DECREF(x)
                else:
                    if s.verb == ATTRIBUTE:
                        made = self.looks.attr(<object> values[top - 1], <object> s.thing)
                    else:
                        made = self.looks.method(<object> values[top - 1], <object> s.thing)
                    Py_DECREF(values[top - 1])
                values[top - 1] = <PyObject*> made
                Py_INCREF(values[top - 1])
                s += 1
            return <object> values[0]
        finally:
            while top > 0:
                top -= 1
                Py_DECREF(values[top])

    cdef inline void _look(self, Item* z, PyObject* x) noexcept:
        """Make `z` that of an object."""
        cdef Place* at
        z.object = x
        z.kind = ANY_OBJECT
        if self.has_numbers and PyFloat_CheckExact(<object> x):
            z.x = PyFloat_AS_DOUBLE(<object> x)
            z.kind = STILL_NUMBER
            at = self.arithmetic.table.find(x)
            if at != NULL:
                z.at = at[0]
                z.kind = MOVING_NUMBER

    cdef inline void _let_go(self, Item* z) noexcept:
        """An own item is not needed any more: its object, or the column of a number that never was one."""
        if z.object != NULL:
            Py_DECREF(z.object)
        elif z.kind == MOVING_NUMBER and self.columns is not None:
            self.columns.give(z.at.column)

    cdef inline void _pop(self, Working* w) noexcept:
        """Take the top value away."""
        w.top -= 1
        if w.values[w.top] == &w.own[w.top]:
            self._let_go(w.values[w.top])

    cdef inline void _push(self, Working* w, PyObject* x) noexcept:
        """An object, which gets one more reference, at the top."""
        Py_INCREF(x)
        self._look(&w.own[w.top], x)
        w.values[w.top] = &w.own[w.top]
        w.top += 1

    cdef inline void _put(self, Working* w, int count, PyObject* x) noexcept:
        """An object instead of the top `count` values."""
        Py_INCREF(x)
        while count > 0:
            count -= 1
            self._pop(w)
        self._look(&w.own[w.top], x)
        w.values[w.top] = &w.own[w.top]
        w.top += 1

    cdef inline void _put_number(self, Working* w, int count, Item* z) noexcept:
        """A number without an object instead of the top `count` values."""
        while count > 0:
            count -= 1
            self._pop(w)
        z.object = NULL
        w.own[w.top] = z[0]
        w.values[w.top] = &w.own[w.top]
        w.top += 1

    cdef inline object _object(self, Item* z):
        """The item as an object."""
        cdef Place* at
        if z.object == NULL:
            made = PyFloat_FromDouble(z.x)
            if z.kind == MOVING_NUMBER:
                self.arithmetic._make_room()
                at = self.arithmetic.table.put(<PyObject*> made)
                at[0] = z.at
            z.object = <PyObject*> made
            Py_INCREF(z.object)
            return made
        return <object> z.object

    cdef int _run(self, Expression e, PyObject** given, Working* w) except -1:
        cdef Step* s = e.codes
        cdef Step* end = s + e.count
        cdef int verb
        cdef Item* z
        cdef Item* below  # the values at the top
        cdef Item* last
        cdef PyObject* inside
        while s != end:
            verb = s.verb
            if verb == LOAD_OPERAND:
                z = &w.operands[s.what]
                if z.kind == NOT_LOOKED_AT or self.columns is not None:  # a column may be another number's since then
                    self._look(z, given[s.what])
                w.values[w.top] = z
                w.top += 1
                s += 1
                continue
            if verb == LOAD_CONST:
                w.values[w.top] = &s.number if self.has_numbers else &s.anything
                w.top += 1
                s += 1
                continue
            last = w.values[w.top - 1]
            below = w.values[w.top - 2]
            if verb == OPERATOR:
                if last.kind and below.kind:
                    if s.what > DIV or (s.what == DIV and last.x == 0.0):
                        self._operate(w, below, last, s)
                    else:
                        self._of_numbers(w, below, last, s.what)
                else:
                    self._operate(w, below, last, s)
            elif verb == ATTRIBUTE:
                made = self.looks.attr(self._object(last), <object> s.thing)
                self._put(w, 1, <PyObject*> made)
            elif verb == ITEM:
                made = self.looks.getitem(self._object(below), self._object(last))
                self._put(w, 2, <PyObject*> made)
            elif verb == LOAD_GLOBAL:
                made = global_of_frame(<object> s.thing)
                self._push(w, <PyObject*> made)
            elif verb == NEGATIVE:
                self._negate(w, last)
            elif verb == COMPARISON:
                made = self._compare(below, last, s.what)
                self._put(w, 2, <PyObject*> made)
            elif verb == METHOD:
                made = self.looks.method(self._object(last), <object> s.thing)
                self._put(w, 1, <PyObject*> made)
            elif verb == SET_ATTRIBUTE:
                self.looks.set_attr(self._object(below), self._object(last), <object> s.thing)
                self._put(w, 2, <PyObject*> None)
            elif verb == SET_ITEM_OF:
                self.looks.setitem(self._object(w.values[w.top - 3]), self._object(below), self._object(last))
                self._put(w, 3, <PyObject*> None)
            elif verb == LOAD_CELL:
                inside = PyCell_GET(<object> given[s.what])
                if inside == NULL:
                    evaluation.contents(<object> given[s.what], *(<tuple> s.thing)[1:])  # which raises
                self._push(w, inside)
            else:
                made = self._object(below)
                if verb == PREPARED_CALL:
                    made = self.looks.prep(made)
                self._call(w, made, last)
            s += 1
        return 0

    cdef inline int _of_numbers(self, Working* w, Item* a, Item* b, int op) except -1:
        """Put a op b instead of the top values, which these numbers are, or one stands for a whole number."""
        cdef Item z
        cdef Item* own = &w.own[w.top - 2]
        cdef Entry* e
        cdef double dx = 1.0, dy = 1.0
        cdef bint moves = (a.kind | b.kind) & MOVING_NUMBER
        if op == MUL:
            z.x, dx, dy = a.x * b.x, b.x, a.x
        elif op == ADD:
            z.x = a.x + b.x
        elif op == SUB:
            z.x, dy = a.x - b.x, -1.0
        else:
            z.x = a.x / b.x
            if moves:
                dx, dy = 1.0 / b.x, -z.x / b.x
        if moves and self.tape is None:
            self.arithmetic._of_two(&z, a, b, op)
        elif moves:
            self.arithmetic.n += 1
            z.at.index = self.arithmetic.n
            if self.tape.is_shared or self.tape.count + 2 > self.tape.room:
                if a.kind == MOVING_NUMBER:
                    self.tape.push(z.at.index, a.at.index, dx)
                if b.kind == MOVING_NUMBER:
                    self.tape.push(z.at.index, b.at.index, dy)
            else:
                e = &self.tape.entries[self.tape.count]
                if a.kind == MOVING_NUMBER:
                    e.output, e.input, e.partial = <int32_t> z.at.index, <int32_t> a.at.index, dx
                    e += 1
                if b.kind == MOVING_NUMBER:
                    e.output, e.input, e.partial = <int32_t> z.at.index, <int32_t> b.at.index, dy
                    e += 1
                self.tape.count = e - self.tape.entries
        w.top -= 1
        if w.values[w.top] == own + 1:
            self._let_go(own + 1)
        if w.values[w.top - 1] == own:
            self._let_go(own)
        own.object, own.x, own.at, own.kind = NULL, z.x, z.at, MOVING_NUMBER if moves else STILL_NUMBER
        w.values[w.top - 1] = own
        return 0

    cdef int _operate(self, Working* w, Item* a, Item* b, Step* s) except -1:
        """Put a op b instead of the top values."""
        cdef Item whole
        cdef int op = s.what
        if op <= DIV:
            if a.kind and not b.kind and PyLong_CheckExact(<object> b.object):
                whole.x, whole.kind = PyLong_AsDouble(<object> b.object), STILL_NUMBER
                if op != DIV or whole.x != 0.0:
                    return self._of_numbers(w, a, &whole, op)
            elif b.kind and not a.kind and PyLong_CheckExact(<object> a.object) and (op != DIV or b.x != 0.0):
                whole.x, whole.kind = PyLong_AsDouble(<object> a.object), STILL_NUMBER
                return self._of_numbers(w, &whole, b, op)
            made = self.arithmetic._binary(self._object(a), self._object(b), op, s.in_place)
        elif op == POWER and not s.in_place:
            if a.kind and self._power(w, a, b):
                return 0
            made = self.arithmetic._power(self._object(a), self._object(b), False)
        elif not a.kind and not b.kind and PyLong_CheckExact(<object> a.object) and PyLong_CheckExact(<object> b.object):
            made = self.arithmetic._whole(<object> a.object, <object> b.object, op, s.in_place)
        else:
            made = getattr(self.arithmetic.level, (IN_PLACE if s.in_place else OPERATORS)[op])(self._object(a), self._object(b))
        self._put(w, 2, <PyObject*> made)
        return 0

    cdef bint _power(self, Working* w, Item* a, Item* b) except -1:
        """Put a ** b, with a small whole power, instead of the top values; False where that is not done here."""
        cdef Item z
        cdef long long e
        cdef int overflow
        if b.object == NULL or not PyLong_CheckExact(<object> b.object):
            return False
        e = PyLong_AsLongLongAndOverflow(<object> b.object, &overflow)
        if overflow or e < 1 or e > 64:
            return False
        z.x = c_pow(a.x, <double> e)
        if not isfinite(z.x):
            return False
        z.kind = a.kind
        if a.kind == MOVING_NUMBER:
            self.arithmetic._of_power(&z, a, <double> e)
        self._put_number(w, 2, &z)
        return True

    cdef int _negate(self, Working* w, Item* a) except -1:
        cdef Item z
        if a.kind == ANY_OBJECT:
            made = self.arithmetic.neg(<object> a.object)
            self._put(w, 1, <PyObject*> made)
            return 0
        z.x = -a.x
        z.kind = a.kind
        if a.kind == MOVING_NUMBER:
            self.arithmetic._of_one(&z, a, -1.0)
        self._put_number(w, 1, &z)
        return 0

    cdef object _compare(self, Item* a, Item* b, int place):
        if a.kind and b.kind:
            if place == 0:
                return a.x < b.x
            if place == 1:
                return a.x <= b.x
            if place == 2:
                return a.x == b.x
            if place == 3:
                return a.x != b.x
            if place == 4:
                return a.x > b.x
            return a.x >= b.x
        return self.looks._compare(self._object(a), self._object(b), COMPARED[place], place)

    cdef int _call(self, Working* w, object f, Item* x) except -1:
        """Put f(x) instead of the top values."""
        cdef ScalarRule rule
        cdef PyTypeObject* owner
        cdef Item z
        cdef double slope
        if x.kind and PyCFunction_CheckExact(f) and PyCFunction_GET_SELF(f) != NULL:
            owner = type_of(<object> PyCFunction_GET_SELF(f))
            if owner == <PyTypeObject*> ScalarRule or owner == <PyTypeObject*> JetRule:
                rule = <ScalarRule> <object> PyCFunction_GET_SELF(f)
                if rule.arithmetic is self.arithmetic and value_of(rule.known, x.x, &z.x):
                    if x.kind == STILL_NUMBER or slope_of(rule.known, x.x, z.x, &slope):
                        z.kind = x.kind
                        if x.kind == MOVING_NUMBER:
                            self.arithmetic._of_function(&z, x, rule.known, slope)
                        self._put_number(w, 2, &z)
                        return 0
        made = f(self._object(x))
        self._put(w, 2, <PyObject*> made)
        return 0


cdef object called_expression(object evaluator, PyObject** given, Py_ssize_t count):
    return (<Evaluator> evaluator)._evaluated(given, count)


cdef PyMethodDef expression_method
expression_method.ml_name = "expression"
expression_method.ml_meth = <PyCFunction> called_expression
expression_method.ml_flags = METH_FASTCALL
expression_method.ml_doc = NULL


cdef int[6] COMPARED
COMPARED[:] = [Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE]


cdef inline bint value_of(int known, double x, double* z) noexcept:
    """The value of a function in `SLOPES`; False where it may raise, or is not computed here."""
    if known == 1 and isfinite(x):
        z[0] = sin(x)
    elif known == 2 and isfinite(x):
        z[0] = cos(x)
    elif known == 3:
        z[0] = exp(x)
    elif known == 4:
        z[0] = tanh(x)
    elif known == 5 and isfinite(x):
        z[0] = tan(x)
    elif known == 6 and x >= 0.0:
        z[0] = sqrt(x)
    elif known == 7 and x > 0.0:
        z[0] = log(x)
    elif known == 8:
        z[0] = atan(x)
    else:
        return False
    return isfinite(z[0])


cdef object global_of_frame(object name):
    """A global variable or builtin of the frame that called."""
    cdef PyObject* names = PyEval_GetGlobals()
    cdef PyObject* builtins = PyEval_GetBuiltins()
    cdef PyObject* found
    if names != NULL and PyDict_CheckExact(<object> names) and PyDict_CheckExact(<object> builtins):
        found = PyDict_GetItemWithError(<object> names, name)
        if found == NULL:
            found = PyDict_GetItemWithError(<object> builtins, name)
        if found != NULL:
            return <object> found
    return evaluation.global_value(<object> names, <object> builtins, name)
