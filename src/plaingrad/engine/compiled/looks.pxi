# -- looks at types, in any mode ----------------------------------------------------------------------------------------

cdef void* hash_of_classes = PyType_Type.tp_hash
cdef void* hash_of_tuples = type_of(()).tp_hash
cdef PyTypeObject* type_of_members = <PyTypeObject*> <PyObject*> EnumMember
cdef object TYPE = type


cdef inline int is_in(object classes, object cls) except -1:
    """Whether a class is among `classes`; one that hashes in its own way is not looked for."""
    return type_of(cls).tp_hash == hash_of_classes and PySet_Contains(classes, cls)


cdef int64_t epoch = 1  # counts how often classes have left `adopt.known`


def classes_dropped():
    """Classes have left `adopt.known` or `adopt.settled`: what was seen there is not believed any more."""
    global epoch
    epoch += 1


cdef object UFUNC = np.ufunc, ARRAY_FUNCTION = type(np.sum)


cdef bint lasts(object f, object instead) except -1:
    """Whether what to call instead of `f` is so in the next derivative at this level, and holds no reference to that."""
    cdef PyObject* owner
    if type(f) is TYPE:
        if has_feature(<PyTypeObject*> <PyObject*> f, Py_TPFLAGS_HEAPTYPE):
            return False
    elif PyCFunction_Check(f):
        owner = PyCFunction_GET_SELF(f)
        if owner == NULL or not PyModule_CheckExact(<object> owner):
            return False
    elif type(f) is UFUNC or type(f) is ARRAY_FUNCTION:
        return is_free(instead)
    else:
        return False
    return instead is f or is_free(instead)


cdef bint is_free(object instead) except -1:
    """Whether what is called instead of something has no reference to the level, once general forms are let go of."""
    cdef object owner
    while PyCFunction_Check(instead) and PyCFunction_GET_SELF(instead) != NULL:
        owner = <object> PyCFunction_GET_SELF(instead)
        if type(owner) is InspectingCall:
            return True
        if type(owner) is PlainCall:
            return (<PlainCall> owner).lasts
        if type(owner) is Later:
            (<Later> owner).made = None
            return True
        if isinstance(owner, ArrayRule):
            instead = (<ArrayRule> owner).general
        elif isinstance(owner, ScalarRule):
            instead = (<ScalarRule> owner).general
        elif type(owner) is QuietCall:
            instead = (<QuietCall> owner).general
        elif isinstance(owner, FloatMaker):
            instead = (<FloatMaker> owner).general
        elif type(owner) is ComplexRule:
            instead = (<ComplexRule> owner).general
        elif type(owner) is SumRule:
            instead = (<SumRule> owner).general
        elif isinstance(owner, PairRule):
            instead = (<PairRule> owner).general
        else:
            return False
    return False


cdef int forget_methods(dict methods) except -1:
    """As `forget`, of what was decided for C methods, by class and name."""
    cdef list classes, gone
    cdef dict known
    cdef Py_ssize_t k
    if not methods:
        return 0
    classes, gone = [], []  # made before the loops: making one may collect garbage, and that may change the tables
    for cls, names in methods.items():
        if type(cls) is not TYPE or has_feature(<PyTypeObject*> <PyObject*> cls, Py_TPFLAGS_HEAPTYPE):
            classes.append(cls)
            continue
        known = names
        for name, decision in known.items():
            if decision is not None and not is_free(decision):
                gone.append(known)
                gone.append(name)
    for cls in classes:
        methods.pop(cls, None)
    for k in range(0, len(gone), 2):
        (<dict> gone[k]).pop(gone[k + 1], None)
    return 0


cdef enum:
    METHODS = 3, BOUND = 5  # where these are in `Calls.seen`


def forget(tuple seen):
    """Let go of what the call decision of a level has seen, but for what `Calls` says that it lasts."""
    cdef DecidedFunctions functions = seen[0]
    cdef DecidedCallables prepared = seen[1]
    cdef Py_ssize_t k
    cdef list gone = []
    for key, entry in functions.held.items():
        if not (<tuple> entry)[5]:
            gone.append(key)
    for key in gone:
        functions.pop(key)
    if prepared.held:
        gone = []
        for key, instead in prepared.held.items():
            if not lasts(key, instead):
                gone.append(key)
        for key in gone:
            prepared.pop(key)
    for k in range(2, len(seen)):
        if k == METHODS or k == BOUND:
            forget_methods(seen[k])
        elif seen[k]:
            seen[k].clear()


cdef inline PyObject* in_module(object o, object name) except? NULL:
    """What module `o` itself has under `name`, borrowed; NULL if that is nothing, or found in another way."""
    if not PyModule_CheckExact(o) or PyUnicode_READ_CHAR(name, 0) == 95:  # an underscore
        return NULL
    return PyDict_GetItemWithError(<object> PyModule_GetDict(o), name)


cdef int look(Seen* seen, object classes, object cls) except -1:
    cdef int64_t then = epoch
    if not is_in(classes, cls):
        return False
    seen.cls = <void*> <PyObject*> cls
    seen.epoch = then
    return True


cdef inline PyObject* entry_at(object o, object k) noexcept:
    """Entry `k`, a whole number, of a list or tuple; NULL if there is none."""
    cdef int overflow
    cdef Py_ssize_t n = Py_SIZE(o)
    cdef long long at = PyLong_AsLongLongAndOverflow(k, &overflow)
    if at < 0:
        at += n
    if overflow or at < 0 or at >= n:
        return NULL
    return <PyObject*> PyList_GET_ITEM(o, at) if PyList_CheckExact(o) else <PyObject*> PyTuple_GET_ITEM(o, at)


@cython.final
cdef class Looks:
    """What a level does with attributes, methods, items, comparisons and callables that need nothing but a look."""

    cdef Seen seen_settled[64]
    cdef DecidedFunctions functions
    cdef DecidedCallables prepared
    cdef dict methods, stores, bound
    cdef object settled, cacheable
    cdef set callables
    cdef object texts  # where the digits of numbers are, hashes of which keys may be
    cdef Arithmetic recorder  # of a level that has one; else None
    cdef object slow_set_attr, slow_prep, slow_function, slow_attr, slow_method, slow_getitem, slow_setitem, slow_iterable, slow_contains, slow_meet, slow_meet_all
    cdef tuple slow_comparisons
    cdef bint code_is_watched

    def __init__(self, functions, prepared, methods, stores, settled, cacheable, code_is_watched, slow):
        self.functions, self.prepared, self.methods, self.stores = functions, prepared, methods, stores
        self.slow_set_attr = slow["set_attr"]
        self.callables, self.bound = slow["callables"], slow["bound"]
        self.recorder, self.texts = slow["recorder"], slow["texts"]
        self.settled, self.cacheable = settled, cacheable
        self.code_is_watched = code_is_watched
        self.slow_prep, self.slow_function = slow["prep"], slow["function"]
        self.slow_attr, self.slow_method = slow["attr"], slow["method"]
        self.slow_getitem, self.slow_setitem = slow["getitem"], slow["setitem"]
        self.slow_iterable, self.slow_contains = slow["iterable"], slow["contains"]
        self.slow_meet, self.slow_meet_all = slow["meet"], slow["meet_all"]
        self.slow_comparisons = slow["comparisons"]

    cdef inline int _is_settled(self, object o) except -1:
        """Whether attributes of `o` are read natively."""
        cdef void* cls = <void*> type_of(o)
        cdef Seen* seen = &self.seen_settled[(<uintptr_t> cls >> 5) & 63]
        return (seen.cls == cls and seen.epoch == epoch) or look(seen, self.settled, type(o))

    cpdef object prep(self, f):
        """What to call instead of `f`."""
        cdef PyObject* found
        cdef Decision* place
        if PyFunction_Check(f) and type(f) is FunctionType:
            place = self.functions.find(f)
            if (
                place != NULL
                and (self.code_is_watched or place.code == PyFunction_GET_CODE(f))
                and place.defaults == PyFunction_GET_DEFAULTS(f)
                and place.keyword_defaults == PyFunction_GET_KW_DEFAULTS(f)
            ):
                return <object> place.instead
            if self.recorder is not None:
                made = anew(self.functions, f, self.recorder.level.form)
                if made is not None:
                    return made
            return self.slow_function(f)
        if PyMethod_Check(f):
            return PyMethod_New(self.prep(<object> PyMethod_GET_FUNCTION(f)), <object> PyMethod_GET_SELF(f))
        found = self.prepared.placed(<PyObject*> f)
        if found != NULL:
            return <object> found
        if is_in(self.cacheable, type(f)) and (type(f) is not TYPE or type_of(f).tp_hash == hash_of_classes):
            found = self.prepared.find(f)
            if found != NULL and <object> found is not None:
                return <object> found
            found = self._of_c_method(f)
            if found != NULL:
                return f if <object> found is None else PyMethod_New(<object> found, <object> PyCFunction_GET_SELF(f))
        if is_in(self.callables, type(f)):
            return f
        return self.slow_prep(f)

    cdef PyObject* _of_c_method(self, object f) except? NULL:
        """What was decided for a C method bound to an object: None, or what to call with the object first."""
        cdef PyObject* found
        cdef PyObject* owner
        if not PyCFunction_CheckExact(f):
            return NULL
        owner = PyCFunction_GET_SELF(f)
        if owner == NULL or type_of(type(<object> owner)).tp_hash != hash_of_classes:
            return NULL
        found = PyDict_GetItemWithError(self.bound, type(<object> owner))
        return NULL if found == NULL else PyDict_GetItemWithError(<object> found, f.__name__)

    cpdef object attr(self, o, name):
        """o.name."""
        cdef PyObject* found = in_module(o, name)
        if found != NULL:
            return <object> found
        if self._is_settled(o):
            return PyObject_GetAttr(o, name)
        if PyComplex_CheckExact(o) and self.recorder is not None:
            z = self.recorder._part(o, name)
            if z is not None:
                return z
        return self.slow_attr(o, name)

    cpdef object set_attr(self, v, o, name):
        """o.name = v."""
        cdef PyObject* known
        if type_of(type(o)).tp_hash == hash_of_classes:
            known = PyDict_GetItemWithError(self.stores, type(o))
            if known != NULL and PySet_Contains(<object> known, name):
                PyObject_SetAttr(o, name, v)
                return
        self.slow_set_attr(v, o, name)

    cpdef object method(self, o, name):
        """o.name, to be called."""
        cdef object t = type(o)
        cdef PyObject* decision
        cdef PyObject* known = in_module(o, name)
        if known != NULL:
            return self.prep(<object> known)
        if has_feature(type_of(o), Py_TPFLAGS_HEAPTYPE) and self._is_settled(o) and not PyType_Check(o):
            return self._method_of_class(o, name)
        if t is TYPE and not has_feature(<PyTypeObject*> <PyObject*> o, Py_TPFLAGS_HEAPTYPE):
            return self.prep(PyObject_GetAttr(o, name))  # `object.__setattr__`, `dict.fromkeys`
        if PyModule_CheckExact(o):
            return self.prep(self.slow_attr(o, name))
        if type_of(t).tp_hash == hash_of_classes:
            known = PyDict_GetItemWithError(self.methods, t)
            if known != NULL:
                decision = PyDict_GetItemWithError(<object> known, name)
                if decision != NULL:
                    if <object> decision is None:
                        return PyObject_GetAttr(o, name)
                    return PyMethod_New(<object> decision, o)
        return self.slow_method(o, name)

    cdef object _method_of_class(self, object o, object name):
        """The method of an object whose attributes are read natively: one is made, of what is called instead."""
        cdef PyObject* found = NULL
        cdef bint is_unbound = _PyObject_GetMethod(<PyObject*> o, <PyObject*> name, &found)
        f = <object> found
        Py_DECREF(found)
        if not is_unbound:
            return self.prep(f)
        return PyMethod_New(self.prep(f), o) if type(f) is FunctionType else self.prep(PyObject_GetAttr(o, name))

    cpdef object getitem(self, o, k):
        """o[k]."""
        cdef PyObject* entry
        if PyLong_CheckExact(k) and (PyList_CheckExact(o) or PyTuple_CheckExact(o)):
            entry = entry_at(o, k)
            return <object> entry if entry != NULL else PyObject_GetItem(o, k)  # which raises
        if not is_met_whole(k):
            return self.slow_getitem(o, k)
        if PyList_CheckExact(o) or PyTuple_CheckExact(o):
            return PyObject_GetItem(o, k)
        if PyDict_Check(o) and may_depend(k, self.texts):
            return self.slow_getitem(o, k)
        if PyDict_CheckExact(o):
            return PyObject_GetItem(o, k)
        if self.recorder is not None and type(o) is NDARRAY:
            z = self.recorder._read(o, k)
            if z is not None:
                return z
        if type(o) is PairBars or natively(o, k, GET_ITEM, False) == 1:
            return PyObject_GetItem(o, k)
        return self.slow_getitem(o, k)

    def contains(self, x, o):
        """x in o."""
        if PyDict_CheckExact(o) or PyAnySet_CheckExact(o):
            if is_met_whole(x):
                return PySequence_Contains(o, x) == 1
        elif PyUnicode_CheckExact(o) and PyUnicode_CheckExact(x):
            return PySequence_Contains(o, x) == 1
        elif (PyList_CheckExact(o) or PyTuple_CheckExact(o)) and is_met_whole(x) and is_met_whole(o):
            return PySequence_Contains(o, x) == 1
        return self.slow_contains(x, o)

    cpdef object setitem(self, v, o, k):
        """o[k] = v."""
        if not is_met_whole(k):
            self.slow_setitem(v, o, k)
            return
        if PyDict_Check(o) and PyDict_Size(self.texts):
            self.slow_setitem(v, o, k)
            return
        if PyList_CheckExact(o) or PyDict_CheckExact(o):
            PyObject_SetItem(o, k, v)
            return
        if self.recorder is not None and type(o) is NDARRAY:
            if self.recorder._write(v, o, k):
                return
        if type(o) is PairBars or natively(o, k, SET_ITEM, False) == 1:
            PyObject_SetItem(o, k, v)
            return
        self.slow_setitem(v, o, k)

    def meet(self, o):
        """`o` itself, whose class C code may enter then."""
        return o if is_met(o) and not PyType_Check(o) else self.slow_meet(o)

    def meet_all(self, o):
        """The same, with what is in it."""
        return o if is_met_whole(o) else self.slow_meet_all(o)

    def iterable(self, o):
        """What to go through instead of `o`."""
        cdef object t = type(o)
        if PyList_CheckExact(o) or PyTuple_CheckExact(o) or t is range or PyDict_CheckExact(o) or t is str:
            return o
        return self.slow_iterable(o)

    cdef inline object _compare(self, object a, object b, int op, int place):
        if is_met_whole(a) and is_met_whole(b):
            return PyObject_RichCompare(a, b, op)
        return self.slow_comparisons[place](a, b)

    def lt(self, a, b):
        """a < b."""
        return self._compare(a, b, Py_LT, 0)

    def le(self, a, b):
        """a <= b."""
        return self._compare(a, b, Py_LE, 1)

    def eq(self, a, b):
        """a == b."""
        return self._compare(a, b, Py_EQ, 2)

    def ne(self, a, b):
        """a != b."""
        return self._compare(a, b, Py_NE, 3)

    def gt(self, a, b):
        """a > b."""
        return self._compare(a, b, Py_GT, 4)

    def ge(self, a, b):
        """a >= b."""
        return self._compare(a, b, Py_GE, 5)


cdef int NO_LISTS = 0, MET_LISTS = 1, ANY_LISTS = 2


cdef bint may_depend(object k, object texts) except -1:
    """Whether a key of a dictionary may depend on the inputs, as far as its class tells; see `values.lookups`."""
    if PyUnicode_CheckExact(k) or PyLong_CheckExact(k):
        return PyDict_Size(texts) != 0
    if k is None or PyBool_Check(k):
        return False
    if PyTuple_Check(k) and type_of(k).tp_hash == hash_of_tuples:
        for part in <tuple> k:
            if may_depend(part, texts):
                return True
        return False
    if type_of(k).tp_hash == hash_of_classes or PyType_IsSubtype(type_of(k), type_of_members):  # by its identity
        return False
    return type(k) is not date and type(k) is not datetime


cdef class EntryMethod:
    """A method of dictionaries that answers with an entry, at a level."""

    cdef object method, general
    cdef object texts

    def __init__(self, method, general, texts):
        self.method, self.general, self.texts = method, general, texts

    def call(self, *args):
        """method(table, key, ...)."""
        if len(args) > 1 and is_met_whole(args[1]) and not may_depend(args[1], self.texts):
            return self.method(*args)
        return self.general(*args)

    def get(self, *args):
        """dict.get(table, key), or dict.get(table, key, default)."""
        cdef PyObject* found
        if 1 < len(args) < 4 and PyDict_CheckExact(args[0]) and is_met_whole(args[1]) and not may_depend(args[1], self.texts):
            found = PyDict_GetItemWithError(args[0], args[1])
            if found != NULL:
                return <object> found
            return args[2] if len(args) == 3 else None
        return self.general(*args)


cdef class PlainCall:
    """A C function that is called as it is with nothing but ints, text, and floats and lists if it may have them."""

    cdef object f, general
    cdef object texts  # where the digits of numbers are, which text may hold
    cdef bint floats, on_heap
    cdef int lists
    cdef object calls  # whose `made` is the iterator that `f` makes, or None
    cdef bint lasts  # `general` holds no reference to the level

    def __init__(self, f, general, texts, floats, on_heap=False, lists=NO_LISTS, calls=None, lasts=False):
        self.f, self.general, self.texts, self.floats, self.on_heap = f, general, texts, floats, on_heap
        self.lists, self.calls, self.lasts = lists, calls, lasts

    def call(self, *args, **kwargs):
        """f(*args, **kwargs)."""
        if self.on_heap and not kwargs and is_known_heap(args):
            return self.f(*args)
        if not kwargs and is_plain(args, self.floats, self.lists) and not self.texts and not self.texts.truncated:
            made = self.f(*args)
            if self.calls is not None and not PyList_CheckExact(made) and not PyTuple_CheckExact(made):
                self.calls.made = made
            return made
        return self.general(*args, **kwargs)


cdef bint is_plain(tuple values, bint floats, int lists) except -1:
    for x in values:
        if PyFloat_CheckExact(x):
            if not floats:
                return False
        elif PyLong_CheckExact(x) or PyUnicode_CheckExact(x) or x is None or PyBool_Check(x):
            continue
        elif lists != NO_LISTS and (PyList_CheckExact(x) or PyTuple_CheckExact(x)):
            if lists == MET_LISTS and not is_met_whole(x):
                return False
        elif type(x) is not date and type(x) is not datetime and type(x) is not timedelta:
            return False
    return True


cdef bint is_known_heap(tuple args) except -1:
    """Whether a heap of few entries, and what is put there, is compared by code that runs rewritten."""
    return len(args) != 0 and PyList_CheckExact(args[0]) and len(<list> args[0]) <= 64 and is_met_whole(args)
