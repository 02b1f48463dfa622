# -- meeting classes before C code enters their special methods ---------------------------------------------------------
#
# C code compares, hashes, indexes with and iterates over what it is given, and over the entries of containers in it.

cdef struct Seen:
    void* cls  # among the classes looked for, which keep it alive
    int64_t epoch
    int holds


cdef object known_classes = frozenset()
cdef object unusual_holders = frozenset()
cdef Seen met[64]
cdef int NO_ENTRIES = 0, ENTRIES = 1, ELEMENTS = 2, UNUSUAL = 3
cdef int DEEPEST = 40
cdef object SLICE = slice


def set_known(classes, unusual):
    """The classes that need nothing more, `adopt.known`; and those whose entries only `Meeting.meet_all` finds."""
    global known_classes, unusual_holders
    known_classes, unusual_holders = classes, unusual


cdef int holds(object cls) except -1:
    """Whether instances of `cls` hold entries that C code may enter."""
    cdef PyTypeObject* t = <PyTypeObject*> <PyObject*> cls
    if cls is SLICE or cls is set or cls is frozenset:
        return ENTRIES
    if has_feature(t, Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS):
        return ENTRIES
    if PyType_IsSubtype(t, <PyTypeObject*> <PyObject*> NDARRAY):
        return ELEMENTS
    for known in unusual_holders:
        if PyType_IsSubtype(t, <PyTypeObject*> <PyObject*> known):
            return UNUSUAL
    return NO_ENTRIES


cdef inline Seen* seen_class(object o) except? NULL:
    """What was seen of the class of `o`; NULL if it has to be met."""
    cdef void* cls = <void*> type_of(o)
    cdef Seen* seen = &met[(<uintptr_t> cls >> 5) & 63]
    if seen.cls == cls and seen.epoch == epoch:
        return seen
    if not look(seen, known_classes, type(o)):
        return NULL
    seen.cls = NULL
    seen.holds = holds(type(o))
    seen.cls = cls
    return seen


cdef inline bint is_met(object o) except -1:
    """Whether the class of `o` needs nothing more."""
    return seen_class(o) != NULL


cdef inline bint is_simple(object o) noexcept:
    return PyFloat_CheckExact(o) or PyLong_CheckExact(o) or PyUnicode_CheckExact(o) or o is None


cdef inline bint is_met_whole(object o, int depth=0) except -1:
    """Whether this holds of `o` and of all entries of containers in it."""
    cdef Seen* seen
    if is_simple(o):
        return True
    seen = seen_class(o)
    if seen == NULL:
        return False
    return seen.holds == NO_ENTRIES or are_entries_met(o, seen.holds, depth)


cdef bint are_entries_met(object o, int kind, int depth) except -1:
    cdef Py_ssize_t place = 0
    cdef PyObject* key
    cdef PyObject* value
    if kind == ELEMENTS:
        return (<cnp.ndarray> o).descr.type_num != cnp.NPY_OBJECT
    if kind == UNUSUAL or depth > DEEPEST:
        return False
    if PyTuple_Check(o):
        for x in <tuple> o:
            if not is_met_whole(x, depth + 1):
                return False
    elif PyList_Check(o):
        for x in <list> o:
            if not is_met_whole(x, depth + 1):
                return False
    elif PyDict_Check(o):
        while PyDict_Next(o, &place, &key, &value):
            if not (is_met_whole(<object> key, depth + 1) and is_met_whole(<object> value, depth + 1)):
                return False
    elif PyAnySet_CheckExact(o):
        for x in o:
            if not is_met_whole(x, depth + 1):
                return False
    else:
        return is_met_whole(o.start, depth) and is_met_whole(o.stop, depth) and is_met_whole(o.step, depth)
    return True


def needs_nothing(o):
    """Whether C code may have `o`: no class in it has to be met."""
    return is_met_whole(o)


cdef class MetItems:
    """The items of an iterator; each is met before C code, which compares or hashes them, has it."""

    cdef object iterator, meet_all

    def __init__(self, iterator, meet_all):
        self.iterator, self.meet_all = iterator, meet_all

    def __iter__(self):
        return self

    def __next__(self):
        x = next(self.iterator)
        if not is_met_whole(x):
            self.meet_all(x)
        return x

    def __length_hint__(self):
        return operator.length_hint(self.iterator, 8)


cdef class InspectingCall:
    """A C function that only looks at its arguments: they are met first."""

    cdef object f, meet_all

    def __init__(self, f, meet_all):
        self.f, self.meet_all = f, meet_all

    def one(self, x, /):
        """f(x)."""
        if not is_met(x):
            self.meet_all(x)
        return self.f(x)

    def outside(self, *args):
        """The same of any number of arguments, which are not looked through."""
        for x in args:
            if not is_met(x):
                self.meet_all(x)
        return self.f(*args)

    def call(self, *args, **kwargs):
        """f(*args, **kwargs)."""
        for x in args:
            if not is_met_whole(x):
                self.meet_all(x)
        if kwargs:
            for x in kwargs.values():
                self.meet_all(x)
            return self.f(*args, **kwargs)
        return self.f(*args)

    def method(self, *args, **kwargs):
        """The same of a method whose object is not looked through."""
        cdef Py_ssize_t k
        for k in range(1, len(args)):
            if not is_met_whole(args[k]):
                self.meet_all(args[k])
        if kwargs:
            for x in kwargs.values():
                self.meet_all(x)
            return self.f(*args, **kwargs)
        return self.f(*args)
