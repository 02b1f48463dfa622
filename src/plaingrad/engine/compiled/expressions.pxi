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
    IN_PLACE_OPERATOR = 64


cdef struct Step:
    int verb
    int what  # an operand, operator or comparison
    PyObject* thing  # a name or constant
    double x
    bint is_float


@cython.final
cdef class Expression:
    """Steps that make one value of so many operands; `rewrite.evaluation.Expression` in memory of C."""

    cdef readonly tuple steps
    cdef readonly int operands
    cdef Step codes[MOST_STEPS]
    cdef int count
    cdef list things

    def __init__(self, steps, operands):
        cdef Step* s
        if len(steps) > MOST_STEPS or operands > MOST_OPERANDS:
            raise ValueError("too long an expression")
        self.steps, self.operands = steps, operands
        self.count = len(steps)
        self.things = []
        for k, (verb, what) in enumerate(steps):
            s = &self.codes[k]
            s.verb = VERBS.index(verb)
            s.is_float = type(what) is float
            if s.verb == LOAD_OPERAND:
                s.what = what
            elif s.verb == OPERATOR and what in OPERATORS:
                s.what = OPERATORS.index(what)
            elif s.verb == OPERATOR:
                s.what = IN_PLACE.index(what) + IN_PLACE_OPERATOR
            elif s.verb == COMPARISON:
                s.what = COMPARISONS.index(what)
            else:
                if s.is_float:
                    s.x = what
                if s.verb == LOAD_CELL:
                    s.what = what[0]
                self.things.append(what)
                s.thing = <PyObject*> what


@cython.final
cdef class Evaluator:
    """The hook of expressions of a level with compiled arithmetic; without, `general` does it."""

    cdef Looks looks
    cdef Arithmetic arithmetic
    cdef object general
    cdef Columns columns  # where the tangents of numbers are, or None
    cdef bint has_numbers  # whether numbers may do without objects: no level is around this one

    def __init__(self, looks, arithmetic, general):
        self.looks, self.arithmetic, self.general = looks, arithmetic, general
        self.has_numbers = arithmetic is not None and self.arithmetic.outer is None
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
        cdef Item stack[MOST_VALUES]
        cdef int top = 0
        try:
            self._run(e, given, stack, &top)
            return self._object(&stack[0])
        finally:
            while top > 0:
                top -= 1
                self._let_go(&stack[top])

    cdef inline void _take(self, Item* z, PyObject* x) noexcept:
        """Put an object, which gets one more reference, into `z`."""
        cdef Place* at
        Py_INCREF(x)
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
        """An item is not needed any more: its object, or the column of a number that never was one."""
        if z.object != NULL:
            Py_DECREF(z.object)
        elif z.kind == MOVING_NUMBER and self.columns is not None:
            self.columns.give(z.at.column)

    cdef inline void _replace(self, Item* z, PyObject* x) noexcept:
        cdef PyObject* before = z.object
        if before == NULL:
            self._let_go(z)
        self._take(z, x)
        Py_XDECREF(before)

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

    cdef int _run(self, Expression e, PyObject** given, Item* stack, int* top) except -1:
        cdef int k, verb
        cdef Step* s
        cdef Item* z
        cdef PyObject* inside
        for k in range(e.count):
            s = &e.codes[k]
            z = &stack[top[0] - 1]
            verb = s.verb
            if verb == LOAD_OPERAND:
                self._take(z + 1, given[s.what])
                top[0] += 1
            elif verb == OPERATOR:
                self._operate(z - 1, z, s.what)
                top[0] -= 1
            elif verb == ATTRIBUTE:
                made = self.looks.attr(self._object(z), <object> s.thing)
                self._replace(z, <PyObject*> made)
            elif verb == LOAD_CONST:
                if s.is_float and self.has_numbers:
                    z[1].object, z[1].x, z[1].kind = NULL, s.x, STILL_NUMBER
                else:
                    self._take(z + 1, s.thing)
                top[0] += 1
            elif verb == ITEM:
                made = self.looks.getitem(self._object(z - 1), self._object(z))
                self._replace(z - 1, <PyObject*> made)
                self._let_go(z)
                top[0] -= 1
            elif verb == LOAD_GLOBAL:
                made = global_of_frame(<object> s.thing)
                self._take(z + 1, <PyObject*> made)
                top[0] += 1
            elif verb == NEGATIVE:
                self._negate(z)
            elif verb == COMPARISON:
                made = self._compare(z - 1, z, s.what)
                self._replace(z - 1, <PyObject*> made)
                self._let_go(z)
                top[0] -= 1
            elif verb == METHOD:
                made = self.looks.method(self._object(z), <object> s.thing)
                self._replace(z, <PyObject*> made)
            elif verb == SET_ATTRIBUTE:
                self.looks.set_attr(self._object(z - 1), self._object(z), <object> s.thing)
                self._leave_none(stack, top, 2)
            elif verb == SET_ITEM_OF:
                self.looks.setitem(self._object(z - 2), self._object(z - 1), self._object(z))
                self._leave_none(stack, top, 3)
            elif verb == LOAD_CELL:
                inside = PyCell_GET(<object> given[s.what])
                if inside == NULL:
                    evaluation.contents(<object> given[s.what], *(<tuple> s.thing)[1:])  # which raises
                self._take(z + 1, inside)
                top[0] += 1
            else:
                made = self._object(z - 1)
                if verb == PREPARED_CALL:
                    made = self.looks.prep(made)
                self._call(z - 1, made, z)
                self._let_go(z)
                top[0] -= 1
        return 0

    cdef void _leave_none(self, Item* stack, int* top, int count) noexcept:
        """None instead of the top items."""
        while count > 1:
            count -= 1
            top[0] -= 1
            self._let_go(&stack[top[0]])
        self._replace(&stack[top[0] - 1], <PyObject*> None)

    cdef int _operate(self, Item* a, Item* b, int op) except -1:
        """Put a op b into `a`."""
        cdef Item z
        cdef bint in_place = op >= IN_PLACE_OPERATOR
        if in_place:
            op -= IN_PLACE_OPERATOR
        if op <= DIV:
            if a.kind != ANY_OBJECT and b.kind == ANY_OBJECT and PyLong_CheckExact(<object> b.object):
                b.x, b.kind = PyLong_AsDouble(<object> b.object), STILL_NUMBER
            elif b.kind != ANY_OBJECT and a.kind == ANY_OBJECT and PyLong_CheckExact(<object> a.object):
                a.x, a.kind = PyLong_AsDouble(<object> a.object), STILL_NUMBER
            if a.kind != ANY_OBJECT and b.kind != ANY_OBJECT and (op != DIV or b.x != 0.0):
                z.x = a.x + b.x if op == ADD else a.x - b.x if op == SUB else a.x * b.x if op == MUL else a.x / b.x
                z.kind = STILL_NUMBER
                if a.kind == MOVING_NUMBER or b.kind == MOVING_NUMBER:
                    self.arithmetic._of_two(&z, a, b, op)
                    z.kind = MOVING_NUMBER
                self._let_go(a)
                self._let_go(b)
                a.object, a.x, a.at, a.kind = NULL, z.x, z.at, z.kind
                b.object = NULL
                return 0
            made = self.arithmetic._binary(self._object(a), self._object(b), op, in_place)
        elif op == POWER and not in_place:
            if a.kind != ANY_OBJECT and b.kind == ANY_OBJECT and self._power(a, b):
                return 0
            made = self.arithmetic._power(self._object(a), self._object(b), False)
        else:
            made = getattr(self.arithmetic.level, (IN_PLACE if in_place else OPERATORS)[op])(self._object(a), self._object(b))
        self._replace(a, <PyObject*> made)
        self._let_go(b)
        b.object = NULL
        return 0

    cdef bint _power(self, Item* a, Item* b) except -1:
        """Put a ** b, with a small whole power, into `a`; False where that is not done here."""
        cdef Item z
        cdef long long e
        cdef int overflow
        if not PyLong_CheckExact(<object> b.object):
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
        self._let_go(a)
        self._let_go(b)
        a.object, a.x, a.at = NULL, z.x, z.at
        b.object = NULL
        return True

    cdef int _negate(self, Item* a) except -1:
        cdef Item z
        if a.kind == ANY_OBJECT:
            made = self.arithmetic.neg(<object> a.object)
            self._replace(a, <PyObject*> made)
            return 0
        z.x = -a.x
        if a.kind == MOVING_NUMBER:
            self.arithmetic._of_one(&z, a, -1.0)
        self._let_go(a)
        a.object, a.x, a.at = NULL, z.x, z.at
        return 0

    cdef object _compare(self, Item* a, Item* b, int place):
        if a.kind != ANY_OBJECT and b.kind != ANY_OBJECT:
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

    cdef int _call(self, Item* function, object f, Item* x) except -1:
        """Put f(x) into `function`."""
        cdef ScalarRule rule
        cdef PyTypeObject* owner
        cdef Item z
        cdef double slope
        if x.kind != ANY_OBJECT and PyCFunction_CheckExact(f) and PyCFunction_GET_SELF(f) != NULL:
            owner = type_of(<object> PyCFunction_GET_SELF(f))
            if owner == <PyTypeObject*> ScalarRule or owner == <PyTypeObject*> JetRule:
                rule = <ScalarRule> <object> PyCFunction_GET_SELF(f)
                if rule.arithmetic is self.arithmetic and value_of(rule.known, x.x, &z.x):
                    if x.kind == STILL_NUMBER or slope_of(rule.known, x.x, z.x, &slope):
                        if x.kind == MOVING_NUMBER:
                            self.arithmetic._of_function(&z, x, rule.known, slope)
                        self._let_go(function)
                        function.object, function.x, function.at, function.kind = NULL, z.x, z.at, x.kind
                        return 0
        made = f(self._object(x))
        self._replace(function, <PyObject*> made)
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
