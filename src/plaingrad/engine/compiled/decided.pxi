# -- what was decided for callables, by their addresses ------------------------------------------------------------------
#
# In front of a dictionary there are a few places, chosen by the address of what is called: a look there takes a tenth of
# a search. What leaves the dictionary leaves its place.

cdef enum:
    PLACES = 64


cdef struct Decision:
    PyObject* f
    PyObject* code  # of a function, and its defaults
    PyObject* defaults
    PyObject* keyword_defaults
    PyObject* instead


cdef inline int place_of(PyObject* f) noexcept:
    return <int> (((<uintptr_t> f >> 4) ^ (<uintptr_t> f >> 10)) & (PLACES - 1))


cdef class DecidedFunctions:
    """id(f) -> (code, defaults, kwdefaults, instead, a weak reference to f, whether that lasts), of functions.

    The functions are not kept alive: who enters one takes it out when it goes.
    """

    cdef dict held
    cdef Decision places[PLACES]

    def __init__(self):
        self.held = {}

    def __contains__(self, key):
        return key in self.held

    def get(self, key, default=None):
        """The entry of a function, by its identity."""
        return self.held.get(key, default)

    def __setitem__(self, key, tuple entry):
        self._leave(key)
        self.held[key] = entry

    def __len__(self):
        return len(self.held)

    def pop(self, key, default=None):
        """Take a function out, by its identity; its entry."""
        self._leave(key)
        return self.held.pop(key, default)

    def clear(self):
        """Let go of everything."""
        memset(self.places, 0, sizeof(self.places))
        self.held.clear()

    cdef int _leave(self, key) except -1:
        cdef PyObject* f = <PyObject*> PyLong_AsVoidPtr(key)
        cdef Decision* place = &self.places[place_of(f)]
        if place.f == f:
            place.f = NULL
        return 0

    cdef Decision* find(self, object f) except? NULL:
        """What was decided for `f`; NULL if nothing was."""
        cdef Decision* place = &self.places[place_of(<PyObject*> f)]
        cdef PyObject* found
        cdef tuple entry
        if place.f == <PyObject*> f:
            return place
        found = PyDict_GetItemWithError(self.held, PyLong_FromVoidPtr(<void*> <PyObject*> f))
        if found == NULL:
            return NULL
        entry = <tuple> <object> found
        place.code, place.instead = <PyObject*> entry[0], <PyObject*> entry[3]
        place.defaults = NULL if entry[1] is None else <PyObject*> entry[1]
        place.keyword_defaults = NULL if entry[2] is None else <PyObject*> entry[2]
        place.f = <PyObject*> f
        return place


cdef class DecidedCallables:
    """Other callables -> what to call instead, as a dictionary."""

    cdef dict held
    cdef bint has_placed
    cdef list kept  # what is in the places, which need not be the key in the dictionary that is equal to it
    cdef Decision places[PLACES]

    def __init__(self):
        self.held = {}
        self.kept = [None] * PLACES

    def __contains__(self, f):
        return f in self.held

    def get(self, f, default=None):
        """What to call instead of `f`."""
        return self.held.get(f, default)

    def __setitem__(self, f, instead):
        self._leave()
        self.held[f] = instead

    def __len__(self):
        return len(self.held)

    def pop(self, f, default=None):
        """Take `f` out; what was to be called instead."""
        self._leave()
        return self.held.pop(f, default)

    def clear(self):
        """Let go of everything."""
        self._leave()
        self.held.clear()

    cdef int _leave(self) except -1:
        if self.has_placed:
            memset(self.places, 0, sizeof(self.places))
            self.kept = [None] * PLACES
            self.has_placed = False
        return 0

    cdef PyObject* placed(self, PyObject* f) noexcept:
        """What to call instead of `f`, if that is in its place; else NULL."""
        cdef Decision* place = &self.places[place_of(f)]
        return place.instead if place.f == f else NULL

    cdef PyObject* find(self, object f) except? NULL:
        """What to call instead of `f`, which has a hash of its kind; NULL if nothing was decided."""
        cdef PyObject* found = PyDict_GetItemWithError(self.held, f)
        cdef int k = place_of(<PyObject*> f)
        if found != NULL and <object> found is not None:
            self.has_placed = True
            self.kept[k] = f
            self.places[k].f, self.places[k].instead = <PyObject*> f, found
        return found
