# -- the table: active numbers and their indices ------------------------------------------------------------------------

cdef enum:
    MOST_KEPT_SLOTS = 4096  # of which a table keeps the memory


cdef union Place:
    int64_t index
    double dot
    double* column


cdef struct Slot:
    PyObject* key
    Place at


cdef class Table:
    """Where the derivatives of active objects are, by identity: indices, or in forward mode the tangents themselves.

    It behaves as a dictionary from `id(x)`.

    Numbers that the hooks file stand in open addressing by their address, and the table keeps them alive. What is
    entered under a bare identity (memory, numbers of users' classes) stands in a dictionary, and others keep it alive.
    """

    cdef Slot* slots
    cdef Py_ssize_t room, used
    cdef int shift
    cdef dict others
    cdef bint holds_dots
    cdef Columns columns  # of a table that holds columns of tangents; else None
    cdef Slot* spare  # memory for the next table of `spare_room` slots
    cdef Py_ssize_t spare_room
    cdef bint is_long  # it was swept in this derivative

    def __cinit__(self, bint holds_dots):
        self.others = {}
        self.holds_dots = holds_dots
        self._make(6)

    def __dealloc__(self):
        self._drop(self.slots, self.room)
        PyMem_RawFree(self.spare)

    cdef int _make(self, int bits) except -1:
        cdef Py_ssize_t room = <Py_ssize_t> 1 << bits
        cdef Slot* slots = self.spare
        if slots != NULL and self.spare_room == room:
            self.spare = NULL
            memset(slots, 0, room * sizeof(Slot))
        else:
            slots = <Slot*> PyMem_RawCalloc(room, sizeof(Slot))
        if slots == NULL:
            raise MemoryError
        self.slots = slots
        self.room = room
        self.shift = 64 - bits
        self.used = 0
        return 0

    cdef void _drop(self, Slot* slots, Py_ssize_t room) noexcept:
        cdef Py_ssize_t k
        if slots != NULL:
            for k in range(room):
                if slots[k].key != NULL:
                    Py_DECREF(slots[k].key)
            PyMem_RawFree(slots)

    cdef inline Py_ssize_t _place(self, PyObject* key) noexcept:
        """Where `key` is, or the empty slot where it would be."""
        cdef Py_ssize_t k = <Py_ssize_t> ((<uint64_t> <uintptr_t> key * <uint64_t> 0x9E3779B97F4A7C15) >> self.shift)
        cdef Py_ssize_t mask = self.room - 1
        cdef Slot* slots = self.slots
        while slots[k].key != key and slots[k].key != NULL:
            k = (k + 1) & mask
        return k

    cdef inline Place* find(self, PyObject* key) noexcept:
        """Where the derivative of a number is; NULL if it is not active."""
        cdef Slot* slot = &self.slots[self._place(key)]
        return NULL if slot.key == NULL else &slot.at

    cdef Place* put(self, PyObject* key) except NULL:
        """File a number, which is kept alive; where its derivative is to be put."""
        cdef Slot* slot
        if 2 * self.used >= self.room:
            self._rebuild(64 - self.shift + (2 if self.room < 1024 else 1), False)
        slot = &self.slots[self._place(key)]
        if slot.key == NULL:
            Py_INCREF(key)
            slot.key = key
            self.used += 1
        return &slot.at

    cdef int _rebuild(self, int bits, bint without_dead) except -1:
        """A table of 2**bits slots; what nothing else refers to is left out and let go."""
        cdef Slot* old = self.slots
        cdef Py_ssize_t room = self.room, k, dead = 0
        self._make(bits)
        for k in range(room):
            if old[k].key != NULL:
                if without_dead and Py_REFCNT(old[k].key) == 1:
                    old[dead] = old[k]
                    dead += 1
                else:
                    self.slots[self._place(old[k].key)] = old[k]
                    self.used += 1
        for k in range(dead):
            if self.columns is not None:
                self.columns.give(old[k].at.column)
            Py_DECREF(old[k].key)
        if room == self.room and room <= MOST_KEPT_SLOTS:
            PyMem_RawFree(self.spare)
            self.spare, self.spare_room = old, room
        else:
            PyMem_RawFree(old)
        return 0

    cdef Py_ssize_t sweep(self) except -1:
        """Let go of the numbers that only the table refers to; how many stay."""
        cdef int bits = 6
        self.is_long = True
        self._rebuild(64 - self.shift, True)
        while (<Py_ssize_t> 1 << bits) < 2 * (self.used + SWEEP_NUMBERS + (self.used >> 1)):
            bits += 1
        if (<Py_ssize_t> 2 << bits) < self.room:
            self._rebuild(bits, False)
        return self.used

    cdef int _remove(self, Py_ssize_t k) except -1:
        cdef PyObject* key = self.slots[k].key
        cdef Py_ssize_t mask = self.room - 1, hole = k, home
        if self.columns is not None:
            self.columns.give(self.slots[k].at.column)
        k = (k + 1) & mask
        while self.slots[k].key != NULL:
            home = <Py_ssize_t> (
                (<uint64_t> <uintptr_t> self.slots[k].key * <uint64_t> 0x9E3779B97F4A7C15) >> self.shift
            )
            if ((k - home) & mask) >= ((k - hole) & mask):
                self.slots[hole] = self.slots[k]
                hole = k
            k = (k + 1) & mask
        self.slots[hole].key = NULL
        self.used -= 1
        Py_DECREF(key)
        return 0

    # As a dictionary

    cdef inline object _said(self, Place* at):
        if self.columns is not None:
            return self.columns.said(at.column)
        return PyFloat_FromDouble(at.dot) if self.holds_dots else at.index

    def get(self, key, default=None):
        """What stands under an identity."""
        cdef Place* at = self.find(<PyObject*> PyLong_AsVoidPtr(key))
        return self.others.get(key, default) if at == NULL else self._said(at)

    def __getitem__(self, key):
        cdef Place* at = self.find(<PyObject*> PyLong_AsVoidPtr(key))
        return self.others[key] if at == NULL else self._said(at)

    def __contains__(self, key):
        return self.find(<PyObject*> PyLong_AsVoidPtr(key)) != NULL or key in self.others

    def __setitem__(self, key, value):
        cdef Place* at = self.find(<PyObject*> PyLong_AsVoidPtr(key))
        if at == NULL:
            self.others[key] = value
        elif self.columns is not None:
            self.columns.heard(at.column, value)
        elif self.holds_dots:
            at.dot = value
        else:
            at.index = value

    def __delitem__(self, key):
        cdef Py_ssize_t k = self._place(<PyObject*> PyLong_AsVoidPtr(key))
        if self.slots[k].key != NULL:
            self._remove(k)
        else:
            del self.others[key]

    def pop(self, key, default=None):
        """Take an identity out; its index."""
        found = self.get(key, default)
        if key in self:
            del self[key]
        return found

    def __len__(self):
        return self.used + len(self.others)

    def clear(self):
        """Let go of everything."""
        cdef Slot* old = self.slots
        cdef PyObject* key
        cdef Py_ssize_t room = self.room, k
        if self.columns is None and (room == 64 or (room <= MOST_KEPT_SLOTS and (self.is_long or 16 * self.used >= room))):
            if self.used:
                self.used = 0
                for k in range(room):
                    if old[k].key != NULL:
                        key = old[k].key
                        old[k].key = NULL
                        Py_DECREF(key)
        elif self.used or room > 64:
            self._make(6)
            if self.columns is not None:
                for k in range(room):
                    if old[k].key != NULL:
                        self.columns.give(old[k].at.column)
            self._drop(old, room)
        self.is_long = False
        if self.others:
            self.others.clear()

    def finds_any(self, values):
        """Whether one of `values`, a list or tuple, is in it."""
        cdef dict others = self.others
        for x in values:
            if self.find(<PyObject*> x) != NULL:
                return True
            if others and PyLong_FromVoidPtr(<void*> <PyObject*> x) in others:
                return True
        return False

    def numbers(self):
        """The numbers that the table keeps alive."""
        cdef Py_ssize_t k
        found = []
        for k in range(self.room):
            if self.slots[k].key != NULL:
                found.append(<object> self.slots[k].key)
        return found
