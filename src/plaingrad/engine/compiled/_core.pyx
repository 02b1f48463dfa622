# cython: language_level=3, binding=False, embedsignature=False, freethreading_compatible=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False, always_allow_keywords=False
"""The hooks that run most, compiled: table, tape and reverse pass as memory of C, and the looks at types before a
native operation.

`Recorder` does what `fusion.hot_hooks` does in reverse mode where no derivative is taken further out, with the same
results. `Looks` does what the methods of a level and of its call decision do first, in any mode:
where they find something that needs work, the Python forms go on.

One thread at a time runs here: every method is one step for the interpreter unless it calls Python code, and what it
has filed is whole before it does. Signals are answered between instructions of Python, so none arrives inside.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.math cimport cos, sin, pow as c_pow
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t

import math
import operator
from types import FunctionType, GeneratorType

import numpy as np

cdef extern from "Python.h":
    bint PyFloat_CheckExact(object)
    double PyFloat_AS_DOUBLE(object)
    object PyFloat_FromDouble(double)
    bint PyLong_CheckExact(object)
    double PyLong_AsDouble(object) except? -1.0
    object PyLong_FromVoidPtr(void*)
    void* PyLong_AsVoidPtr(object) except? NULL
    Py_ssize_t Py_REFCNT(PyObject*)
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)
    object PyNumber_Add(object, object)
    object PyNumber_Subtract(object, object)
    object PyNumber_Multiply(object, object)
    object PyNumber_TrueDivide(object, object)
    object PyNumber_Power(object, object, object)
    object PyNumber_InPlaceAdd(object, object)
    object PyObject_GetItem(object, object)
    int PyObject_SetItem(object, object, object) except -1
    object PyObject_GetAttr(object, object)
    int PyObject_SetAttr(object, object, object) except -1
    object PyObject_RichCompare(object, object, int)
    object PyMethod_New(object, object)
    PyObject* PyModule_GetDict(object) except NULL
    unsigned int PyUnicode_READ_CHAR(object, Py_ssize_t)
    PyObject* PyFunction_GET_CODE(object)
    PyObject* PyFunction_GET_DEFAULTS(object)
    PyObject* PyFunction_GET_KW_DEFAULTS(object)
    PyObject* PyMethod_GET_FUNCTION(object)
    PyObject* PyMethod_GET_SELF(object)
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    int PySet_Contains(object, object) except -1
    bint PyList_CheckExact(object)
    bint PyTuple_CheckExact(object)
    bint PyDict_CheckExact(object)
    bint PyFunction_Check(object)
    bint PyMethod_Check(object)
    bint PyModule_CheckExact(object)
    bint PyUnicode_CheckExact(object)
    unsigned long Py_TPFLAGS_HEAPTYPE
    int PyErr_CheckSignals() except -1
    ctypedef struct PyTypeObject:
        void* tp_hash
    PyTypeObject PyType_Type
    int Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE

cdef extern from *:
    PyTypeObject* type_of "Py_TYPE"(object)
    bint has_feature "PyType_HasFeature"(PyTypeObject*, unsigned long)

cdef object NUMBER64 = np.float64
cdef object NDARRAY = np.ndarray
cdef Py_ssize_t SWEEP_NUMBERS = 1000  # numbers filed between two looks for dead ones
cdef int STEP = -1, CALLED = -2, PAIRED = -3  # as in `memory.tape`
cdef int ODD = -4  # of an entry whose partial derivative is no float
cdef int READ = -5, WRITE = -6  # of an element of an array: `memory.tape.read_number_back`, `write_number_back`
cdef object FLOAT64 = np.dtype(float)

cdef object read_back = None, write_back = None


def set_steps(read, write):
    """The steps of elements read and written, as Python sees them on a tape."""
    global read_back, write_back
    read_back, write_back = read, write

VERSION = 1  # what the Python side expects; see `engine.compiled`


# -- the table: active numbers and their indices ------------------------------------------------------------------------

cdef union Place:
    int64_t index
    double dot


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

    def __cinit__(self, bint holds_dots):
        self.others = {}
        self.holds_dots = holds_dots
        self._make(6)

    def __dealloc__(self):
        self._drop(self.slots, self.room)

    cdef int _make(self, int bits) except -1:
        cdef Py_ssize_t room = <Py_ssize_t> 1 << bits
        cdef Slot* slots = <Slot*> PyMem_RawCalloc(room, sizeof(Slot))
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
        while self.slots[k].key != key and self.slots[k].key != NULL:
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
            self._rebuild(64 - self.shift + 2, False)
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
            Py_DECREF(old[k].key)
        PyMem_RawFree(old)
        return 0

    cdef Py_ssize_t sweep(self) except -1:
        """Let go of the numbers that only the table refers to; how many stay."""
        cdef Py_ssize_t k, alive = 0
        cdef int bits = 6
        for k in range(self.room):
            if self.slots[k].key != NULL and Py_REFCNT(self.slots[k].key) != 1:
                alive += 1
        while (<Py_ssize_t> 1 << bits) < 2 * (alive + SWEEP_NUMBERS + (alive >> 1)):
            bits += 1
        self._rebuild(bits, True)
        return self.used

    cdef int _remove(self, Py_ssize_t k) except -1:
        cdef PyObject* key = self.slots[k].key
        cdef Py_ssize_t mask = self.room - 1, hole = k, home
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
        cdef Py_ssize_t room = self.room
        self._make(6)
        self._drop(old, room)
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


# -- the tape -----------------------------------------------------------------------------------------------------------

cdef struct Entry:
    int32_t output
    int32_t input
    double partial  # of an entry with objects: where they are


cdef class Tape:
    """The tape as columns of C: (output index, input index, partial derivative), 16 bytes an entry.

    Entries that carry objects (steps, partial derivatives that are no floats) have them in a list beside it. To Python
    it is the flat list of triples that `memory.tape` describes.
    """

    cdef Entry* entries
    cdef Py_ssize_t count, room
    cdef list objects

    def __cinit__(self):
        self.objects = []

    def __dealloc__(self):
        PyMem_RawFree(self.entries)

    cdef inline int push(self, int64_t output, int64_t input, double partial) except -1:
        cdef Entry* entry
        if self.count == self.room:
            self._grow()
        entry = &self.entries[self.count]
        entry.output = <int32_t> output
        entry.input = <int32_t> input
        entry.partial = partial
        self.count += 1
        return 0

    cdef int _grow(self) except -1:
        cdef Py_ssize_t room = self.room + (self.room >> 1) + 64
        cdef Entry* entries
        if room > 0x7FFFFFFF:
            room = 0x7FFFFFFF
            if self.room == room:
                raise MemoryError("a tape holds at most 2**31 operations; see `plaingrad.checkpoint`")
        entries = <Entry*> PyMem_RawRealloc(self.entries, room * sizeof(Entry))
        if entries == NULL:
            raise MemoryError
        self.entries = entries
        self.room = room
        return 0

    cdef int _push_object(self, output, input, what) except -1:
        cdef Py_ssize_t at = len(self.objects)
        cdef int64_t code = input
        if code >= 0:
            self.objects.append((input, what))
            code = ODD
        else:
            self.objects.append((output, what))
        return self.push(output if code == ODD else -1, code, <double> at)

    def extend(self, triples):
        """Append entries, given one after another: output, input, partial derivative, or as `memory.tape` says."""
        cdef Py_ssize_t k
        cdef tuple given = triples if type(triples) is tuple else tuple(triples)
        for k in range(0, len(given), 3):
            i, what = given[k + 1], given[k + 2]
            if i >= 0 and (PyFloat_CheckExact(what) or type(what) is NUMBER64):
                self.push(given[k], i, PyFloat_AS_DOUBLE(what))
            elif i >= 0 and PyLong_CheckExact(what):
                self.push(given[k], i, PyLong_AsDouble(what))
            else:
                self._push_object(given[k], i, what)

    cdef tuple _triple(self, Py_ssize_t k):
        cdef Entry* e = &self.entries[k]
        if e.input >= 0:
            return e.output, e.input, e.partial
        if e.input == READ:
            a, place, i = self.objects[<Py_ssize_t> e.partial]
            return (e.output, i, a, place), CALLED, read_back
        if e.input == WRITE:
            a, place, i = self.objects[<Py_ssize_t> e.partial]
            return (i, a, place, None if e.output < 0 else e.output), CALLED, write_back
        first, what = self.objects[<Py_ssize_t> e.partial]
        if e.input == ODD:
            return e.output, first, what
        return first, e.input, what

    cdef int push_element(self, int64_t output, int kind, object a, object k, object i) except -1:
        self.objects.append((a, k, i))
        return self.push(output, kind, <double> (len(self.objects) - 1))

    cdef int _read_back(self, object shadow, Bars bars, Entry* e) except -1:
        cdef int32_t n = e.output
        if bars.cells[n].bits == NOTHING:
            return 0
        a, k, i = self.objects[<Py_ssize_t> e.partial]
        a_bar = element_bars(shadow, bars, i, a)
        PyObject_SetItem(a_bar, k, PyNumber_Add(PyObject_GetItem(a_bar, k), bars[n]))
        return 0

    cdef int _write_back(self, object shadow, Bars bars, Entry* e) except -1:
        cdef int64_t j = e.output
        cdef int64_t at
        a, k, i = self.objects[<Py_ssize_t> e.partial]
        at = i
        if bars.cells[at].bits == NOTHING:
            return 0
        a_bar = element_bars(shadow, bars, i, a)
        if j >= 0:
            bars.add(j, float(PyObject_GetItem(a_bar, k)))
        PyObject_SetItem(a_bar, k, 0.0)
        return 0

    def __len__(self):
        return 3 * self.count

    def __iter__(self):
        cdef Py_ssize_t k
        for k in range(self.count):
            yield from self._triple(k)

    def __reversed__(self):
        cdef Py_ssize_t k = self.count
        while k > 0:
            k -= 1
            o, i, what = self._triple(k)
            yield what
            yield i
            yield o

    def __getitem__(self, places):
        """Part of the list of triples."""
        cdef Py_ssize_t k
        start, stop, step = places.indices(3 * self.count)
        return [self._triple(k // 3)[k % 3] for k in range(start, stop, step)]

    def clear(self):
        """Let go of everything."""
        PyMem_RawFree(self.entries)
        self.entries = NULL
        self.count = self.room = 0
        self.objects.clear()

    def reverse(self, shadow, undone):
        """Carry the cotangents in `shadow` back; `memory.tape.reverse` for cotangents in `Bars`."""
        cdef Bars bars = shadow.bars
        cdef Cell* cells = bars.cells
        cdef Entry* e
        cdef Py_ssize_t k = self.count
        cdef int32_t i
        cdef double x_bar
        while k > 0:
            k -= 1
            if k & 0xFFFF == 0:
                PyErr_CheckSignals()
            e = &self.entries[k]
            i = e.input
            if i >= 0:
                if cells[e.output].bits == NOTHING:
                    continue
                if cells[e.output].bits != OBJECT and cells[i].bits != OBJECT:
                    x_bar = cells[e.output].number * e.partial
                    bars._put(i, x_bar if cells[i].bits == NOTHING else cells[i].number + x_bar)
                else:
                    bars.add(i, bars[e.output] * e.partial)
                continue
            if i == READ:
                self._read_back(shadow, bars, e)
                continue
            if i == WRITE:
                self._write_back(shadow, bars, e)
                continue
            first, what = self.objects[<Py_ssize_t> e.partial]
            if i == ODD:
                z_bar = bars[e.output]
                if z_bar is not None:
                    bars.add(first, z_bar * what)
            elif i == CALLED:
                what(shadow, *first)
            elif i == STEP:
                what.back(shadow, undone)
            else:
                paired = what.paired
                paired.plain(shadow, *first[: paired.count])


# -- cotangents ---------------------------------------------------------------------------------------------------------

cdef union Cell:
    double number
    uint64_t bits

# Two signalling nans, which no arithmetic gives.
cdef uint64_t NOTHING = 0x7FF4C0FFEE5EED01, OBJECT = 0x7FF4C0FFEE5EED02


cdef class Bars:
    """Cotangents by index, None where nothing arrived: numbers as memory of C, what is no float in a dictionary."""

    cdef Cell* cells
    cdef Py_ssize_t room
    cdef dict others

    def __cinit__(self, Py_ssize_t room):
        cdef Py_ssize_t k
        self.room = room
        self.others = {}
        self.cells = <Cell*> PyMem_RawCalloc(room + 1, sizeof(Cell))
        if self.cells == NULL:
            raise MemoryError
        for k in range(room):
            self.cells[k].bits = NOTHING

    def __dealloc__(self):
        PyMem_RawFree(self.cells)

    cdef inline void _put(self, Py_ssize_t k, double x) noexcept:
        self.cells[k].number = x
        if self.cells[k].bits == NOTHING or self.cells[k].bits == OBJECT:
            self.cells[k].bits |= 0x0008000000000000  # a user's nan of these very bits

    def __len__(self):
        return self.room

    def __getitem__(self, Py_ssize_t k):
        if k < 0 or k >= self.room:
            raise IndexError(k)
        if self.cells[k].bits == NOTHING:
            return None
        if self.cells[k].bits == OBJECT:
            return self.others[k]
        return PyFloat_FromDouble(self.cells[k].number)

    def __setitem__(self, Py_ssize_t k, x):
        if k < 0 or k >= self.room:
            raise IndexError(k)
        if self.cells[k].bits == OBJECT:
            del self.others[k]
            self.cells[k].bits = NOTHING
        if x is None:
            self.cells[k].bits = NOTHING
        elif PyFloat_CheckExact(x):
            self._put(k, PyFloat_AS_DOUBLE(x))
        else:
            self.others[k] = x
            self.cells[k].bits = OBJECT

    cdef int add(self, Py_ssize_t k, x_bar) except -1:
        before = self[k]
        self[k] = x_bar if before is None else before + x_bar
        return 0


cdef object element_bars(object shadow, Bars bars, object i, object a):
    """The cotangent of array `a` in region `i` as memory that may be written."""
    cdef Py_ssize_t at = i
    if a.base is None and bars.cells[at].bits == OBJECT and PySet_Contains(shadow.owned, i):
        return bars.others[at]
    return shadow.writable(i, a)


# -- reverse mode -------------------------------------------------------------------------------------------------------

cdef enum:
    ADD, SUB, MUL, DIV

cdef tuple GENERAL = ("general_add", "general_sub", "general_mul", "general_truediv")
cdef tuple GENERAL_IN_PLACE = ("general_iadd", "general_isub", "general_imul", "general_itruediv")


cdef inline bint is_real(object x):
    return PyFloat_CheckExact(x) or type(x) is NUMBER64 or PyLong_CheckExact(x)


cdef inline double real(object x) except? -1.0:
    return PyLong_AsDouble(x) if PyLong_CheckExact(x) else PyFloat_AS_DOUBLE(x)


cdef class Arithmetic:
    """The hooks of arithmetic on floats. What is noted of a result is left to the modes."""

    cdef Table table
    cdef object level
    cdef int64_t n, limit
    cdef bint is_left  # the level goes on with the Python forms

    def __init__(self, level):
        self.level = level
        self.n = -1
        self.limit = SWEEP_NUMBERS

    @property
    def index(self):
        """The table."""
        return self.table

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        """File z = x op y, of which one or both operands are active."""
        raise NotImplementedError

    cdef int _along(self, object z, double slope, Place* a) except -1:
        """File z, a function of one active number, with its slope there."""
        raise NotImplementedError

    cdef inline int _make_room(self) except -1:
        """Sweep, if it is time; other threads may run meanwhile."""
        if self.n >= self.limit:
            self.limit = self.n + max(SWEEP_NUMBERS, self.level._sweep_numbers())
        return 0

    cdef inline Place* _filed(self, object z) except NULL:
        cdef Place* at = self.table.put(<PyObject*> z)
        self.n += 1
        return at

    def sweep(self):
        """Let go of the numbers that only the table refers to; how many stay."""
        return self.table.sweep()

    cdef inline object _binary(self, object a, object b, int op, bint in_place):
        cdef double x, y
        cdef Place* i
        cdef Place* j
        cdef object z
        if PyFloat_CheckExact(a):
            x = PyFloat_AS_DOUBLE(a)
            if PyFloat_CheckExact(b):
                y = PyFloat_AS_DOUBLE(b)
            elif PyLong_CheckExact(b):
                y = PyLong_AsDouble(b)
            else:
                return self._other(a, b, op, in_place)
        elif PyLong_CheckExact(a):
            if PyFloat_CheckExact(b):
                x = PyLong_AsDouble(a)
                y = PyFloat_AS_DOUBLE(b)
            elif PyLong_CheckExact(b):
                return whole(a, b, op)
            else:
                return self._other(a, b, op, in_place)
        else:
            return self._other(a, b, op, in_place)
        if op == ADD:
            z = PyFloat_FromDouble(x + y)
        elif op == SUB:
            z = PyFloat_FromDouble(x - y)
        elif op == MUL:
            z = PyFloat_FromDouble(x * y)
        elif y == 0.0:
            return PyNumber_TrueDivide(a, b)  # which raises
        else:
            z = PyFloat_FromDouble(x / y)
        i = self.table.find(<PyObject*> a)
        j = self.table.find(<PyObject*> b)
        if i != NULL or j != NULL:
            self._note(z, x, y, PyFloat_AS_DOUBLE(z), i, j, op)
        return z

    cdef object _other(self, object a, object b, int op, bint in_place):
        """NumPy's float64 among the operands; all else goes the general way."""
        cdef Place* i
        cdef Place* j
        cdef double y
        if is_real(a) and is_real(b):
            y = real(b)
            z = whole(a, b, op) if op != DIV or y != 0.0 else None
            if PyFloat_CheckExact(z) or type(z) is NUMBER64:
                i = self.table.find(<PyObject*> a)
                j = self.table.find(<PyObject*> b)
                if i != NULL or j != NULL:
                    self._note(z, real(a), y, PyFloat_AS_DOUBLE(z), i, j, op)
                return z
        return getattr(self.level, (GENERAL_IN_PLACE if in_place else GENERAL)[op])(a, b)

    def add(self, a, b):
        """a + b."""
        return self._binary(a, b, ADD, False)

    def iadd(self, a, b):
        """a += b."""
        return self._binary(a, b, ADD, True)

    def sub(self, a, b):
        """a - b."""
        return self._binary(a, b, SUB, False)

    def isub(self, a, b):
        """a -= b."""
        return self._binary(a, b, SUB, True)

    def mul(self, a, b):
        """a * b."""
        return self._binary(a, b, MUL, False)

    def imul(self, a, b):
        """a *= b."""
        return self._binary(a, b, MUL, True)

    def truediv(self, a, b):
        """a / b."""
        return self._binary(a, b, DIV, False)

    def itruediv(self, a, b):
        """a /= b."""
        return self._binary(a, b, DIV, True)

    cdef object _power(self, object a, object b, str general):
        cdef Place* i
        cdef double x, e
        if (PyFloat_CheckExact(a) and (PyLong_CheckExact(b) or PyFloat_CheckExact(b))) or (
            type(a) is NUMBER64 and PyLong_CheckExact(b) and b == 2
        ):
            if b >= 1 and self.table.find(<PyObject*> b) == NULL:
                z = PyNumber_Power(a, b, None)
                i = self.table.find(<PyObject*> a)
                if i == NULL:
                    return z
                if PyFloat_CheckExact(z) or type(a) is NUMBER64:
                    x = PyFloat_AS_DOUBLE(a)
                    e = real(b)
                    self._along(z, 2.0 * x if e == 2.0 else e * c_pow(x, e - 1.0), i)
                    return z
        return getattr(self.level, general)(a, b)

    def pow(self, a, b):
        """a ** b."""
        return self._power(a, b, "general_pow")

    def ipow(self, a, b):
        """a **= b."""
        return self._power(a, b, "general_ipow")

    def neg(self, a):
        """-a."""
        cdef Place* i
        if not PyFloat_CheckExact(a):
            return self.level.general_neg(a)
        z = PyFloat_FromDouble(-PyFloat_AS_DOUBLE(a))
        i = self.table.find(<PyObject*> a)
        if i != NULL:
            self._along(z, -1.0, i)
        return z

    cdef int _note_sum(self, object z, object values) except -1:
        """File z, the sum of `values`, a list or tuple of floats and ints, if one of them is active."""
        raise NotImplementedError

    def sum(self, general):
        """What to call instead of `sum`."""
        return SumRule(self, general).call

    def unary(self, f, partial, m, general):
        """What to call instead of `f`, a function of one float with slope partial(m, x, z)."""
        return ScalarRule(self, f, partial, m, general).call

    def hooks(self):
        """All hooks, by name."""
        names = ("add", "iadd", "sub", "isub", "mul", "imul", "truediv", "itruediv", "pow", "ipow", "neg")
        return {name: getattr(self, name) for name in (*names, "unary")}

    def leave(self, dict index, list alive, dict attributes):
        """The level goes on with the Python forms; what others still hold of these gives way to them.

        All of it is one step: the table is put into `index` and `alive`, and `attributes` are those of the level.
        """
        cdef Py_ssize_t k
        cdef Table table = self.table
        if self.is_left:  # by another thread
            return
        index.update(table.others)
        alive.extend(self.level.alive)
        for k in range(table.room):
            if table.slots[k].key != NULL:
                index[PyLong_FromVoidPtr(table.slots[k].key)] = table._said(&table.slots[k].at)
                alive.append(<object> table.slots[k].key)
        for name, value in attributes.items():
            PyObject_SetAttr(self.level, name, value)
        self.is_left = True


cdef inline bint is_place(object k):
    """Whether `k` is a whole number, or a tuple of such."""
    cdef Py_ssize_t n
    if PyLong_CheckExact(k):
        return True
    if not PyTuple_CheckExact(k):
        return False
    for n in range(PyTuple_GET_SIZE(k)):
        if not PyLong_CheckExact(<object> PyTuple_GET_ITEM(k, n)):
            return False
    return True


cdef class Recorder(Arithmetic):
    """Those of a reverse level: its table gives a number an index, and its tape the partial derivatives."""

    cdef Tape tape

    def __init__(self, level):
        super().__init__(level)
        self.table = Table(False)
        self.tape = Tape()

    @property
    def entries(self):
        """The tape."""
        return self.tape

    def new_index(self):
        """The next index."""
        self.n += 1
        return self.n

    def file(self, x):
        """File the fresh number `x`, a float or NumPy's float64; its index."""
        cdef Place* at
        self._make_room()
        at = self._filed(x)
        at.index = self.n
        return at.index

    cdef object _owner(self, object a):
        """The array that has the memory of `a`, where that is seen at once; else None."""
        base = a.base
        if base is None:
            return a
        return base if type(base) is NDARRAY and base.base is None else None

    cdef object _read(self, object a, object k):
        """a[k], one number; None where that is not so, or more is to be done."""
        cdef PyObject* found
        cdef Place* at
        if not is_place(k):
            return None
        owner = self._owner(a)
        if owner is None:
            return None
        found = PyDict_GetItemWithError(self.table.others, PyLong_FromVoidPtr(<void*> <PyObject*> owner))
        if found == NULL:
            return PyObject_GetItem(a, k) if owner is a else None
        i = <object> found
        if i < 0 or a.dtype is not FLOAT64:
            return None
        self._make_room()  # first: what is read is noted before another thread may write there
        z = PyObject_GetItem(a, k)
        if type(z) is not NUMBER64:
            return None
        at = self._filed(z)
        at.index = self.n
        self.tape.push_element(at.index, READ, a, k, i)
        return z

    cdef bint _write(self, object v, object a, object k) except -1:
        """a[k] = v, a float into one element of active memory; False where that is not so, or more is to be done."""
        cdef PyObject* found
        cdef Place* j
        cdef int64_t at
        if not is_place(k) or a.dtype is not FLOAT64 or a.ndim != (len(<tuple> k) if type(k) is tuple else 1):
            return False
        owner = self._owner(a)
        if owner is None:
            return False
        key = PyLong_FromVoidPtr(<void*> <PyObject*> owner)
        found = PyDict_GetItemWithError(self.table.others, key)
        if found == NULL:
            return False
        i = <object> found
        if i < 0 or key in self.level.captured:
            return False
        twin = self.level.fresh.get(i)
        if twin is not None and not twin.written:
            return False
        PyObject_SetItem(a, k, v)
        j = self.table.find(<PyObject*> v)
        at = -1 if j == NULL else j.index
        self.tape.push_element(at, WRITE, a, k, i)
        return True

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        cdef int64_t i = -1 if a == NULL else a.index
        cdef int64_t j = -1 if b == NULL else b.index
        cdef double dx = 1.0, dy = 1.0
        cdef Place* at
        if op == SUB:
            dy = -1.0
        elif op == MUL:
            dx = y
            dy = x
        elif op == DIV:
            dx = 1.0 / y
            dy = -value / y
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        if i >= 0:
            self.tape.push(at.index, i, dx)
        if j >= 0:
            self.tape.push(at.index, j, dy)
        return 0

    cdef int _along(self, object z, double slope, Place* a) except -1:
        cdef int64_t i = a.index
        cdef Place* at
        self._make_room()
        at = self._filed(z)
        at.index = self.n
        return self.tape.push(at.index, i, slope)


    cdef int _note_sum(self, object z, object values) except -1:
        cdef Place* at
        cdef int64_t o = -1
        for x in values:
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                if o < 0:
                    self.n += 1
                    o = self.n
                self.tape.push(o, at.index, 1.0)
        if o >= 0:
            at = self.table.put(<PyObject*> z)
            at.index = o
            self._make_room()
        return 0


cdef class Pusher(Arithmetic):
    """Those of a forward level that carries one tangent: its table holds the tangents of numbers."""

    def __init__(self, level):
        super().__init__(level)
        self.table = Table(True)

    def file(self, x, double x_dot):
        """File the fresh number `x`, a float or NumPy's float64, with its tangent."""
        self._file(x, x_dot)

    cdef int _file(self, object x, double x_dot) except -1:
        cdef Place* at
        self._make_room()
        if self.is_left:  # by another thread, since this hook was asked for
            self.level.alive.append(x)
            self.level.index[PyLong_FromVoidPtr(<void*> <PyObject*> x)] = x_dot
            return 0
        at = self._filed(x)
        at.dot = x_dot
        return 0

    cdef int _note(self, object z, double x, double y, double value, Place* a, Place* b, int op) except -1:
        cdef double z_dot, a_dot = 0.0, b_dot = 0.0
        if a != NULL:
            a_dot = a.dot
        if b != NULL:
            b_dot = b.dot
        if b == NULL:
            z_dot = a_dot * y if op == MUL else a_dot / y if op == DIV else a_dot
        elif a == NULL:
            z_dot = b_dot if op == ADD else -b_dot if op == SUB else x * b_dot if op == MUL else -(value * b_dot / y)
        elif op == ADD:
            z_dot = a_dot + b_dot
        elif op == SUB:
            z_dot = a_dot - b_dot
        elif op == MUL:
            z_dot = a_dot * y + x * b_dot
        else:
            z_dot = (a_dot - value * b_dot) / y
        return self._file(z, z_dot)

    cdef int _along(self, object z, double slope, Place* a) except -1:
        return self._file(z, slope * a.dot)

    cdef int _note_sum(self, object z, object values) except -1:
        cdef Place* at
        cdef double z_dot = 0.0
        cdef bint active = False
        for x in values:
            at = self.table.find(<PyObject*> x)
            if at != NULL:
                z_dot += at.dot
                active = True
        return self._file(z, z_dot) if active else 0


cdef object whole(object a, object b, int op):
    if op == ADD:
        return PyNumber_Add(a, b)
    if op == SUB:
        return PyNumber_Subtract(a, b)
    if op == MUL:
        return PyNumber_Multiply(a, b)
    return PyNumber_TrueDivide(a, b)


cdef object MISSING = object()
# Functions whose slopes are computed here, as the rows of `rules.elementwise` say, while those are the rules in force.
cdef dict SLOPES = {
    math.sin: 1, math.cos: 2, math.exp: 3, math.tanh: 4, math.tan: 7, math.sqrt: 8, math.log: 9
}


cdef class ScalarRule:
    """A function of one float with a scalar rule; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object f, partial, m, general
    cdef int known

    def __init__(self, arithmetic, f, partial, m, general):
        self.arithmetic = arithmetic
        self.f, self.partial, self.m, self.general = f, partial, m, general
        own = getattr(partial, "__module__", None) == "plaingrad.rules.elementwise"
        self.known = SLOPES.get(f, 0) if own else 0

    def call(self, x, other=MISSING):
        """f(x)."""
        cdef Place* i
        cdef double v, w, slope
        cdef int known = self.known
        if not PyFloat_CheckExact(x) or other is not MISSING or self.arithmetic.is_left:
            return self.general(x) if other is MISSING else self.general(x, other)
        z = self.f(x)
        i = self.arithmetic.table.find(<PyObject*> x)
        if i == NULL:
            return z
        v = PyFloat_AS_DOUBLE(x)
        w = PyFloat_AS_DOUBLE(z) if PyFloat_CheckExact(z) else 0.0
        if known == 1:
            slope = cos(v)
        elif known == 2:
            slope = -sin(v)
        elif known == 3:
            slope = w
        elif known == 4:
            slope = 1.0 - w * w
        elif known == 7:
            slope = 1.0 + w * w
        elif known == 8 and w > 0.0:
            slope = 0.5 / w
        elif known == 9 and v != 0.0:
            slope = 1.0 / v
        else:
            slope = self.partial(self.m, x, z)
            i = self.arithmetic.table.find(<PyObject*> x)
        self.arithmetic._along(z, slope, i)
        return z


cdef class SumRule:
    """`sum` of a list or tuple of floats and ints; other arguments go the general way."""

    cdef Arithmetic arithmetic
    cdef object general

    def __init__(self, arithmetic, general):
        self.arithmetic = arithmetic
        self.general = general

    def call(self, values, start=MISSING):
        """sum(values)."""
        cdef bint plain = start is MISSING and not self.arithmetic.is_left
        if plain and (type(values) is GeneratorType or type(values) is map):
            values = list(self.arithmetic.level.iterable(values))
        if plain and (PyList_CheckExact(values) or PyTuple_CheckExact(values)):
            for x in values:
                if not PyFloat_CheckExact(x) and not PyLong_CheckExact(x):
                    break
            else:
                z = sum(values)
                if PyFloat_CheckExact(z):
                    self.arithmetic._note_sum(z, values)
                return z
        return self.general(values) if start is MISSING else self.general(values, start)


# -- looks at types, in any mode ----------------------------------------------------------------------------------------

cdef void* hash_of_classes = PyType_Type.tp_hash
cdef object TYPE = type


cdef inline int is_in(object classes, object cls) except -1:
    """Whether a class is among `classes`; one that hashes in its own way is not looked for."""
    return type_of(cls).tp_hash == hash_of_classes and PySet_Contains(classes, cls)


cdef int64_t epoch = 1  # counts how often classes have left `adopt.known`


def classes_dropped():
    """Classes have left `adopt.known` or `adopt.settled`: what was seen there is not believed any more."""
    global epoch
    epoch += 1


cdef struct Seen:
    void* cls  # among the classes looked for, which keep it alive
    int64_t epoch


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


cdef class Looks:
    """What a level does with attributes, methods, items, comparisons and callables that need nothing but a look."""

    cdef Seen seen_settled[64]
    cdef Seen seen_known[64]
    cdef dict functions, prepared, methods, stores
    cdef object settled, known, cacheable
    cdef Recorder recorder  # of a level that has one; else None
    cdef object slow_set_attr, slow_prep, slow_function, slow_attr, slow_method, slow_getitem, slow_setitem, slow_iterable
    cdef tuple slow_comparisons
    cdef bint code_is_watched

    def __init__(self, functions, prepared, methods, stores, settled, known, cacheable, code_is_watched, slow):
        self.functions, self.prepared, self.methods, self.stores = functions, prepared, methods, stores
        self.slow_set_attr = slow["set_attr"]
        self.recorder = slow["recorder"] if isinstance(slow["recorder"], Recorder) else None
        self.settled, self.known, self.cacheable = settled, known, cacheable
        self.code_is_watched = code_is_watched
        self.slow_prep, self.slow_function = slow["prep"], slow["function"]
        self.slow_attr, self.slow_method = slow["attr"], slow["method"]
        self.slow_getitem, self.slow_setitem = slow["getitem"], slow["setitem"]
        self.slow_iterable = slow["iterable"]
        self.slow_comparisons = slow["comparisons"]

    cdef inline int _is_settled(self, object o) except -1:
        """Whether attributes of `o` are read natively."""
        cdef void* cls = <void*> type_of(o)
        cdef Seen* seen = &self.seen_settled[(<uintptr_t> cls >> 5) & 63]
        return (seen.cls == cls and seen.epoch == epoch) or look(seen, self.settled, type(o))

    cdef inline int _is_known(self, object o) except -1:
        """Whether the class of `o` needs nothing more."""
        cdef void* cls = <void*> type_of(o)
        cdef Seen* seen = &self.seen_known[(<uintptr_t> cls >> 5) & 63]
        return (seen.cls == cls and seen.epoch == epoch) or look(seen, self.known, type(o))

    def prep(self, f):
        """What to call instead of `f`."""
        cdef PyObject* found
        cdef tuple entry
        if PyFunction_Check(f) and type(f) is FunctionType:
            found = PyDict_GetItemWithError(self.functions, PyLong_FromVoidPtr(<void*> <PyObject*> f))
            if found != NULL:
                entry = <tuple> <object> found
                if (
                    (self.code_is_watched or <PyObject*> entry[0] == PyFunction_GET_CODE(f))
                    and entry[1] is defaults_of(f)
                    and entry[2] is keyword_defaults_of(f)
                ):
                    return entry[3]
            return self.slow_function(f)
        if PyMethod_Check(f):
            return PyMethod_New(self.prep(<object> PyMethod_GET_FUNCTION(f)), <object> PyMethod_GET_SELF(f))
        if is_in(self.cacheable, type(f)) and (type(f) is not TYPE or type_of(f).tp_hash == hash_of_classes):
            found = PyDict_GetItemWithError(self.prepared, f)
            if found != NULL and <object> found is not None:
                return <object> found
        return self.slow_prep(f)

    def attr(self, o, name):
        """o.name."""
        cdef PyObject* found = in_module(o, name)
        if found != NULL:
            return <object> found
        if self._is_settled(o):
            return PyObject_GetAttr(o, name)
        return self.slow_attr(o, name)

    def set_attr(self, v, o, name):
        """o.name = v."""
        cdef PyObject* known
        if type_of(type(o)).tp_hash == hash_of_classes:
            known = PyDict_GetItemWithError(self.stores, type(o))
            if known != NULL and PySet_Contains(<object> known, name):
                PyObject_SetAttr(o, name, v)
                return
        self.slow_set_attr(v, o, name)

    def method(self, o, name):
        """o.name, to be called."""
        cdef object t = type(o)
        cdef PyObject* decision
        cdef PyObject* known = in_module(o, name)
        if known != NULL:
            return self.prep(<object> known)
        if self._is_settled(o) and has_feature(type_of(o), Py_TPFLAGS_HEAPTYPE) and not isinstance(o, type):
            return self.prep(PyObject_GetAttr(o, name))
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

    def getitem(self, o, k):
        """o[k]."""
        if PyList_CheckExact(o) or PyTuple_CheckExact(o) or (PyDict_CheckExact(o) and self._is_known(k)):
            return PyObject_GetItem(o, k)
        if self.recorder is not None and type(o) is NDARRAY:
            z = self.recorder._read(o, k)
            if z is not None:
                return z
        return self.slow_getitem(o, k)

    def setitem(self, v, o, k):
        """o[k] = v."""
        if PyList_CheckExact(o) or (PyDict_CheckExact(o) and self._is_known(k)):
            PyObject_SetItem(o, k, v)
            return
        if self.recorder is not None and type(o) is NDARRAY and (PyFloat_CheckExact(v) or type(v) is NUMBER64):
            if self.recorder._write(v, o, k):
                return
        self.slow_setitem(v, o, k)

    def iterable(self, o):
        """What to go through instead of `o`."""
        cdef object t = type(o)
        if PyList_CheckExact(o) or PyTuple_CheckExact(o) or t is range or PyDict_CheckExact(o) or t is str:
            return o
        return self.slow_iterable(o)

    cdef inline object _compare(self, object a, object b, int op, int place):
        if (PyFloat_CheckExact(a) or self._is_known(a)) and (
            PyFloat_CheckExact(b) or self._is_known(b)
        ):
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


cdef inline object defaults_of(object f):
    cdef PyObject* found = PyFunction_GET_DEFAULTS(f)
    return None if found == NULL else <object> found


cdef inline object keyword_defaults_of(object f):
    cdef PyObject* found = PyFunction_GET_KW_DEFAULTS(f)
    return None if found == NULL else <object> found


OURS = frozenset((Recorder, Pusher, ScalarRule, SumRule, Looks))  # of these, bound methods run as they are
