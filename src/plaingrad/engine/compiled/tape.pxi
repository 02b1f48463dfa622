# -- the tape -----------------------------------------------------------------------------------------------------------

cdef struct Entry:
    int32_t output
    int32_t input
    double partial  # of an entry with objects: where they are


cdef union Cell:
    double number
    uint64_t bits

# Signalling nans, which no arithmetic gives.
cdef uint64_t NOTHING = 0x7FF4C0FFEE5EED01, OBJECT = 0x7FF4C0FFEE5EED02, COMPLEX_CELL = 0x7FF4C0FFEE5EED03

cdef enum:
    KEPT_ENTRIES = 65536  # of which a tape keeps the memory for the next derivative, and that of so many cotangents
    FEW_CELLS = 64


cdef inline void put_number(Cell* cell, double x) noexcept:
    cell.number = x
    if cell.bits == NOTHING or is_no_number(cell):
        cell.bits |= 0x0008000000000000  # a user's nan of these very bits


cdef class Tape:
    """The tape as columns of C: (output index, input index, partial derivative), 16 bytes an entry.

    Entries that carry objects (steps, partial derivatives that are no floats) have them in a list beside it. To Python
    it is the flat list of triples that `memory.tape` describes.
    """

    cdef Entry* entries
    cdef Py_ssize_t count, room
    cdef list objects
    cdef ArrayPusher outer  # see `PairRecorder`
    cdef dict layouts  # region -> an array with the layout of its memory, whose elements mean nothing
    cdef bint is_shared  # tasks of several threads have recorded: see `Stretches`
    cdef unsigned long thread  # that has recorded last
    cdef dict tasks  # thread -> the stretch that it records
    cdef list marks  # (place, stretch, thread) where another stretch goes on
    cdef int stretches
    cdef bint has_complex, was_extended  # with entries of complex numbers; by others than the core
    cdef Cell* spare  # memory for cotangents
    cdef Py_ssize_t spare_room

    def __cinit__(self):
        self.objects = []
        self.layouts = {}
        self.tasks = {}
        self.marks = []

    def __dealloc__(self):
        PyMem_RawFree(self.entries)
        PyMem_RawFree(self.spare)

    cdef inline int push(self, int64_t output, int64_t input, double partial) except -1:
        cdef Entry* entry
        if self.is_shared and PyThread_get_thread_ident() != self.thread:
            self._mark()
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

    cdef int _mark(self) except -1:
        """Another stretch goes on from here."""
        cdef unsigned long thread = PyThread_get_thread_ident()
        stretch = self.tasks.get(thread, 0)
        while True:  # a collection of garbage may let other threads in while the mark is made
            mark = self.count, stretch, thread
            if self.count == <Py_ssize_t> mark[0]:
                break
        self.marks.append(mark)
        self.thread = thread
        return 0

    def enter(self):
        """What this thread records from now on is a stretch of its own; what `leave` is to be given."""
        cdef dict tasks = self.tasks
        self.is_shared = True
        self.thread = 0
        self.stretches += 1
        thread = PyThread_get_thread_ident()
        before = tasks.get(thread, 0)
        tasks[thread] = self.stretches
        return tasks, before

    def leave(self, entered):
        """The task is over; the tape may have been cleared meanwhile."""
        entered[0][PyThread_get_thread_ident()] = entered[1]
        self.thread = 0

    def has_stretches(self):
        """Whether tasks of several threads have recorded."""
        return self.is_shared and len(self.marks) > 0

    def trim(self):
        """Give back the room for entries that will not come, before the way back needs its own."""
        cdef Py_ssize_t room = self.count + 64
        cdef Entry* entries
        if self.room > room + (self.count >> 6):
            entries = <Entry*> PyMem_RawRealloc(self.entries, room * sizeof(Entry))
            if entries != NULL:
                self.entries = entries
                self.room = room

    cdef int push_pair(self, int64_t output, int64_t input, double partial, double partial_dot) except -1:
        """As `push`, of a partial derivative with a tangent at the level around."""
        self.push(output, input, partial)
        if partial_dot != 0.0:
            self.push(output, DOT, partial_dot)
        return 0

    cdef int push_complex(self, int64_t output, int64_t input, int32_t kind, double re, double im) except -1:
        """As `push`, where one of the numbers is complex."""
        if self.count + 2 > self.room:
            self._grow()  # or neither of them is there
        self.has_complex = True
        self.push(output, input, re)
        return self.push(output, kind, im)

    cdef int _push_object(self, output, input, what) except -1:
        cdef Py_ssize_t at = len(self.objects)
        cdef int64_t code = input
        if code >= 0:
            self.objects.append((input, what))
            code = ODD
        else:
            self.objects.append((output, what))
        return self.push(output if code == ODD else -1, code, <double> at)

    cdef double _moves(self, object slope):
        """The tangent of a partial derivative at the level around."""
        cdef Place* at = NULL if self.outer is None else self.outer.table.find(<PyObject*> slope)
        return 0.0 if at == NULL else at.dot

    def extend(self, triples):
        """Append entries, given one after another: output, input, partial derivative, or as `memory.tape` says."""
        cdef Py_ssize_t k
        cdef tuple given = triples if type(triples) is tuple else tuple(triples)
        self.was_extended = True
        for k in range(0, len(given), 3):
            i, what = given[k + 1], given[k + 2]
            if i >= 0 and (PyFloat_CheckExact(what) or type(what) is NUMBER64):
                self.push_pair(given[k], i, PyFloat_AS_DOUBLE(what), self._moves(what))
            elif i >= 0 and PyLong_CheckExact(what):
                self.push(given[k], i, PyLong_AsDouble(what))
            else:
                self._push_object(given[k], i, what)

    cdef tuple _triple(self, Py_ssize_t k):
        cdef Entry* e = &self.entries[k]
        if e.input >= 0:
            if k + 1 < self.count and is_complex_kind(self.entries[k + 1].input):
                slope = complex_partial(self.entries[k + 1].input, e.partial, self.entries[k + 1].partial)
                if self.entries[k + 1].input == OF_REAL:
                    return (e.output, e.input, slope), CALLED, steps.real_part_back
                return e.output, e.input, slope
            slope = PyFloat_FromDouble(e.partial)
            if k + 1 < self.count and self.entries[k + 1].input == DOT and self.outer.level.calls.open:
                self.outer._file(slope, self.entries[k + 1].partial)
            return e.output, e.input, slope
        if e.input == DOT or is_complex_kind(e.input):
            return (), CALLED, steps.nothing
        if e.input == READ or e.input == WRITE:
            return self._element_triple(e)
        if e.input == ARRAY:
            return (<ArrayStep> self.objects[<Py_ssize_t> e.partial]).triple()
        first, what = self.objects[<Py_ssize_t> e.partial]
        if e.input == ODD:
            return e.output, first, what
        return first, e.input, what

    cdef int push_element(self, int64_t output, int kind, int64_t region, int64_t offset) except -1:
        """An element was read, or a number written: where it is in its region, in elements from the first in memory."""
        cdef int32_t* place
        self.push(output, kind, 0.0)
        place = <int32_t*> &self.entries[self.count - 1].partial
        place[0], place[1] = <int32_t> region, <int32_t> offset
        return 0

    def layout(self, region):
        """What stands for the layout of `region`; None where no element of it was read or written."""
        return self.layouts.get(region)

    cdef tuple _element_triple(self, Entry* e):
        cdef int32_t* place = <int32_t*> &e.partial
        owner = self.layouts[place[0]]
        key = np.unravel_index(place[1], owner.shape, "C" if owner.flags.c_contiguous else "F")
        key = tuple([int(k) for k in key])
        if e.input == READ:
            return (e.output, place[0], owner, key), CALLED, steps.read_number_back
        return (place[0], owner, key, None if e.output < 0 else e.output), CALLED, steps.write_number_back

    cdef int _element_back(self, object shadow, Bars bars, set owned, Entry* e, Walk* last) except -1:
        """Of an element that was read or written; `last` is the region before, if nothing else came in between."""
        cdef int32_t* place = <int32_t*> &e.partial
        cdef int64_t i = place[0]
        cdef double* x_bar
        if bars.cells[e.output if e.input == READ else i].bits == NOTHING:
            return 0
        if last.data == NULL or last.strides[0] != i:
            last.data = elements_of(bars, owned, self.layouts, i)
            last.strides[0] = i
        if last.data == NULL or (e.input == READ and bars.cells[e.output].bits == OBJECT):
            args, _, what = self._element_triple(e)
            what(shadow, *args)
            return 0
        x_bar = <double*> last.data + place[1]
        if e.input == READ:
            x_bar[0] += bars.cells[e.output].number
            return 0
        if e.output >= 0:
            add_number(bars, e.output, x_bar[0])
        x_bar[0] = 0.0
        return 0

    def census(self):
        """How many entries are of numbers, of elements of arrays, and with objects."""
        cdef Py_ssize_t k, numbers = 0, elements = 0
        for k in range(self.count):
            if self.entries[k].input >= 0:
                numbers += 1
            elif self.entries[k].input == READ or self.entries[k].input == WRITE:
                elements += 1
        return numbers, elements, len(self.objects)

    def is_of_numbers(self):
        """Whether the way back enters neither Python nor NumPy."""
        return len(self.objects) == 0 and not (self.has_complex and self.was_extended)

    def __len__(self):
        return 3 * self.count

    def __iter__(self):
        cdef Py_ssize_t k
        for k in range(self.count):
            yield from self._triple(k)

    def __reversed__(self):
        yield from self.reversed_from(3 * self.count)

    def reversed_from(self, Py_ssize_t end):
        """The list of triples before place `end`, last first."""
        cdef Py_ssize_t k = end // 3
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

    def held(self, start):
        """What the entries from `start`, a place in the list of triples, refer to, as often as they do."""
        cdef Py_ssize_t k
        found = []
        for k in range(start // 3, self.count):
            if self.entries[k].input < 0 and self.entries[k].input not in (READ, WRITE, DOT, OF_COMPLEX, OF_REAL, TO_REAL):
                what = self.objects[<Py_ssize_t> self.entries[k].partial]
                if type(what) is ArrayStep:
                    (<ArrayStep> what).held_in(found)
                else:
                    found.extend(what)
        return found

    def clear(self):
        """Let go of everything."""
        if self.room > KEPT_ENTRIES:
            PyMem_RawFree(self.entries)
            self.entries = NULL
            self.room = 0
        self.count = 0
        self.has_complex = self.was_extended = False
        self.objects.clear()
        self.layouts.clear()
        if self.is_shared:
            self.is_shared = False
            self.tasks = {}
            self.marks = []
            self.stretches = 0

    cdef Cell* _take_cells(self, Py_ssize_t* size) except NULL:
        """Memory for so many cotangents: what was kept, if it is enough; `size` is what there is room for."""
        cdef Cell* cells = self.spare
        self.spare = NULL
        if cells != NULL and self.spare_room >= size[0]:
            size[0] = self.spare_room
            return cells
        PyMem_RawFree(cells)
        if size[0] <= KEPT_ENTRIES:
            size[0] += size[0] >> 3
        cells = <Cell*> PyMem_RawMalloc(size[0] * sizeof(Cell))
        if cells == NULL:
            raise MemoryError
        return cells

    cdef void _give_cells(self, Cell* cells, Py_ssize_t room) noexcept:
        """Keep the memory; another derivative may have come between, and have given its own back."""
        if room <= KEPT_ENTRIES and self.spare == NULL:
            self.spare, self.spare_room = cells, room
        else:
            PyMem_RawFree(cells)

    cdef tuple gradients(self, int64_t y, Py_ssize_t size, Py_ssize_t count, double y_bar=1.0):
        """`y_bar` times the derivatives of number `y` by the first `count` of `size`, on a tape of numbers; else None.

        Inside forward mode they are filed there, with their tangents.
        """
        cdef Cell few[FEW_CELLS]
        cdef double few_dots[FEW_CELLS]
        cdef Cell* cells = few
        cdef double* dots = NULL if self.outer is None else few_dots
        cdef uint64_t nothing = NOTHING
        cdef Py_ssize_t k, room = size
        if size > FEW_CELLS:
            if self.room > KEPT_ENTRIES:
                self.trim()
            cells = self._take_cells(&room)
            if dots != NULL:
                dots = <double*> PyMem_RawMalloc(size * sizeof(double))
                if dots == NULL:
                    self._give_cells(cells, room)
                    raise MemoryError
        try:
            for k in range(size):
                cells[k].bits = nothing
            if y >= 0:
                put_number(&cells[y], y_bar)
            if dots == NULL:
                if not self._numbers_back(cells):
                    return None
            else:
                memset(dots, 0, size * sizeof(double))
                if not self._back(cells, dots):
                    return None
            found = []
            for k in range(count):
                bar = PyFloat_FromDouble(0.0 if cells[k].bits == nothing else cells[k].number)
                if dots != NULL and dots[k] != 0.0:
                    self.outer._file(bar, dots[k])
                found.append(bar)
            return tuple(found)
        finally:
            if cells != few:
                self._give_cells(cells, room)
                PyMem_RawFree(NULL if dots == few_dots else dots)

    cdef bint _numbers_back(self, Cell* cells) except -1:
        """Carry cotangents of numbers back; False where something else is on the tape."""
        # What arithmetic gives is no signalling nan: it is put into a cell as it is.
        cdef Entry* entries
        cdef Entry* e
        cdef Cell* x
        cdef Cell* z
        cdef uint64_t nothing = NOTHING
        cdef Py_ssize_t k = self.count, stop
        cdef double x_bar
        while k > 0:
            entries = self.entries
            stop = k - 0x10000 if k > 0x10000 else 0
            if stop > 0 and is_complex_kind(entries[stop].input):
                stop -= 1  # what belongs to it
            while k > stop:
                k -= 1
                e = &entries[k]
                if e.input < 0:
                    if is_complex_kind(e.input) and k > stop:
                        k -= 1
                        if complex_back(cells, e.output, entries[k].input, e.input, entries[k].partial, e.partial):
                            continue
                    return False
                z = &cells[e.output]
                if z.bits != nothing:
                    x_bar = z.number * e.partial
                    x = &cells[e.input]
                    x.number = x_bar if x.bits == nothing else x.number + x_bar
            PyErr_CheckSignals()
        return True

    cdef bint _back(self, Cell* cells, double* dots) except -1:
        """The same of cotangents with tangents, `dots`."""
        cdef Entry* e
        cdef Py_ssize_t k = self.count
        cdef double z_bar, x_dot, partial_dot = 0.0
        while k > 0:
            k -= 1
            if k & 0xFFFF == 0:
                PyErr_CheckSignals()
            e = &self.entries[k]
            if e.input == DOT:
                partial_dot = e.partial
                continue
            if e.input < 0:
                return False
            if cells[e.output].bits != NOTHING:
                z_bar = cells[e.output].number
                x_dot = z_bar * partial_dot if partial_dot != 0.0 else 0.0
                if dots[e.output] != 0.0:  # else 0 times an infinite slope
                    x_dot += dots[e.output] * e.partial
                dots[e.input] += x_dot
                z_bar = z_bar * e.partial
                cells[e.input].number = z_bar if cells[e.input].bits == NOTHING else cells[e.input].number + z_bar
            partial_dot = 0.0
        return True

    def reverse(self, shadow, undone, Py_ssize_t start=0, Py_ssize_t end=-1):
        """Carry the cotangents in `shadow` back; `memory.tape.reverse` for cotangents in `Bars`.

        From before entry `end`, below 0 the last one, to entry `start`.
        """
        cdef Bars bars = shadow.bars
        cdef Cell* cells = bars.cells
        cdef Entry here  # by value: another thread may make the tape grow while a step runs
        cdef Entry* e
        cdef Py_ssize_t k = self.count if end < 0 else end
        cdef int32_t i
        cdef double x_bar, im
        cdef set owned
        cdef Walk last
        bars.belong(shadow)
        owned = bars.owned
        last.data = NULL
        while k > start:
            k -= 1
            if k & 0xFFFF == 0:
                PyErr_CheckSignals()
            e = &self.entries[k]
            i = e.input
            if i >= 0:
                if cells[e.output].bits == NOTHING:
                    continue
                if not is_no_number(&cells[e.output]) and not is_no_number(&cells[i]):
                    x_bar = cells[e.output].number * e.partial  # which is no signalling nan
                    cells[i].number = x_bar if cells[i].bits == NOTHING else cells[i].number + x_bar
                else:
                    bars.add(i, bars[e.output] * e.partial)
                continue
            here = e[0]
            e = &here
            if i == READ or i == WRITE:
                self._element_back(shadow, bars, owned, e, &last)
                continue
            last.data = NULL
            if i == DOT:
                continue
            if is_complex_kind(i):
                im = here.partial
                k -= 1
                here = self.entries[k]
                if not complex_back(cells, here.output, here.input, i, here.partial, im):
                    z_bar = bars[here.output] * complex_partial(i, here.partial, im)
                    bars.add(here.input, z_bar.real if i == OF_REAL else z_bar)
                continue
            if i == ARRAY:
                (<ArrayStep> self.objects[<Py_ssize_t> e.partial]).back(shadow, bars, undone)
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

cdef class Bars:
    """Cotangents by index, None where nothing arrived: numbers as memory of C, what is no float in a dictionary."""

    cdef Cell* cells
    cdef Py_ssize_t room
    cdef dict others
    cdef set owned  # those of the `Shadow` that it belongs to
    cdef dict laid

    def __cinit__(self, Py_ssize_t room, *more):
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

    cdef int belong(self, object shadow) except -1:
        """It has the cotangents of `shadow`."""
        self.owned, self.laid = shadow.owned, shadow.laid
        return 0

    cdef inline void _put(self, Py_ssize_t k, double x) noexcept:
        put_number(&self.cells[k], x)

    def __len__(self):
        return self.room

    def __getitem__(self, Py_ssize_t k):
        if k < 0 or k >= self.room:
            raise IndexError(k)
        if self.cells[k].bits == NOTHING:
            return None
        if self.cells[k].bits == OBJECT:
            return self.others[k]
        if self.cells[k].bits == COMPLEX_CELL:
            return PyComplex_FromDoubles(self.cells[k + 1].number, self.cells[k + 2].number)
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

    def floats(self, Py_ssize_t first, Py_ssize_t n):
        """The cotangents of `n` floats from index `first`, zero where nothing arrived."""
        cdef Py_ssize_t k
        cdef list found = []
        for k in range(first, first + n):
            if self.cells[k].bits == NOTHING:
                found.append(0.0)
            elif is_no_number(&self.cells[k]):
                bar = self[k]
                found.append(float(bar) if type(bar) is int or isinstance(bar, np.floating) else bar)
            else:
                found.append(PyFloat_FromDouble(self.cells[k].number))
        return found

    def are_floats(self, Py_ssize_t first, Py_ssize_t n):
        """Whether no cotangent from index `first` is another object than a float."""
        cdef Py_ssize_t k
        for k in range(first, first + n):
            if is_no_number(&self.cells[k]) and not PyFloat_CheckExact(self[k]):
                return False
        return True

    cdef int add(self, Py_ssize_t k, x_bar) except -1:
        before = self[k]
        self[k] = x_bar if before is None else before + x_bar
        return 0
