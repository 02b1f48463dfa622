# -- a tape that several threads have recorded ------------------------------------------------------------------------------

cdef enum:
    NOBODY = -1
    SEVERAL = -2


def bars_without_contents(Py_ssize_t room):
    """`Bars` whose cells mean nothing until `Stretches` clears those that a stretch meets: memory for the others is never touched."""
    cdef Bars bars = Bars(0)
    PyMem_RawFree(bars.cells)
    bars.room = 0
    bars.cells = <Cell*> PyMem_RawMalloc((room + 1) * sizeof(Cell))
    if bars.cells == NULL:
        raise MemoryError
    bars.room = room
    return bars


cdef class Stretches:
    """Which pieces of a tape may be gone back over side by side.

    A stretch is what one task has recorded; stretch 0 is all else. A piece is a run of entries of one stretch. One scan
    over the tape finds, for each index, the entry that made or changed it last, and for each piece the later ones that
    are to be gone back over before it: the next one of its stretch, and those of others that read what it has made.

    Attributes:
        pieces: (first entry, end, stretch).
        needs: for each piece, the set of pieces that come before it on the way back.
        readers: index -> {stretch: what it reads}, of other stretches than the index belongs to.
        made: index -> (piece, entry) of each of these.
        ends: index -> {stretch: what it reads}, of arguments: they belong to stretch 0, and are made before the tape.
        owners: index -> the array whose memory it is, of arguments of which views are read.
        sources: for each stretch, those whose results it reads, in the order of its own entries.
        is_heavy: tasks with entries that are more than a number's.
        threads: how many threads have recorded tasks.
    """

    cdef Tape tape
    cdef Py_ssize_t room, at
    cdef int32_t* last_change
    cdef int32_t* place  # the piece with the last change
    cdef int32_t* seen  # the stretch that has met an index, NOBODY or SEVERAL
    cdef char* first_meets  # whether stretch 0 has
    cdef readonly list pieces, needs, bars
    cdef readonly dict readers, made, ends, sources, owners
    cdef readonly set is_heavy
    cdef readonly int threads
    cdef int piece, stretch
    cdef Bars own  # of the stretch in hand
    cdef list owner  # piece -> stretch

    def __cinit__(self, Tape tape, Py_ssize_t room):
        cdef Py_ssize_t k
        self.tape = tape
        self.room = room
        self.last_change = <int32_t*> PyMem_RawMalloc((room + 1) * sizeof(int32_t))
        self.place = <int32_t*> PyMem_RawMalloc((room + 1) * sizeof(int32_t))
        self.seen = <int32_t*> PyMem_RawMalloc((room + 1) * sizeof(int32_t))
        self.first_meets = <char*> PyMem_RawCalloc(room + 1, 1)
        if self.last_change == NULL or self.place == NULL or self.seen == NULL or self.first_meets == NULL:
            raise MemoryError
        for k in range(room + 1):
            self.last_change[k] = self.place[k] = self.seen[k] = NOBODY
        self.pieces, self.needs, self.owner = [], [], []
        self.readers, self.made, self.ends, self.sources, self.owners = {}, {}, {}, {}, {}
        self.is_heavy = set()

    def __dealloc__(self):
        PyMem_RawFree(self.last_change)
        PyMem_RawFree(self.place)
        PyMem_RawFree(self.seen)
        PyMem_RawFree(self.first_meets)

    def scan(self, Bars seeded, most):
        """False where the way back is to be that of one thread. `most` is how many stretches there may be."""
        cdef Py_ssize_t k, first, end
        cdef int n
        cdef bint orders
        cdef int barrier = -1
        cdef Entry e
        self.bars = [None] * (self.tape.stretches + 1)
        self.bars[0] = seeded
        marks = list(self.tape.marks)
        self.threads = len({mark[2] for mark in marks if mark[1]})
        places = [0, *[mark[0] for mark in marks], self.tape.count]
        stretches = [0, *[mark[1] for mark in marks]]
        met = {}
        for n in range(len(stretches)):
            first, end = places[n], places[n + 1]
            if first >= end:
                continue
            last = self.pieces.pop() if self.pieces else None
            if last is not None and last[2] == stretches[n]:
                first = last[0]
            elif last is not None:
                self.pieces.append(last)
            self.pieces.append((first, end, stretches[n]))
        for n in range(len(self.pieces)):
            first, end, self.stretch = self.pieces[n]
            self.piece = n
            self.owner.append(self.stretch)
            self.needs.append(set())
            if self.bars[self.stretch] is None:
                if len(met) >= most:
                    return False
                self.bars[self.stretch] = bars_without_contents(self.room)
            self.own = self.bars[self.stretch]
            if self.stretch in met:
                self.needs[<int> met[self.stretch]].add(n)
            met[self.stretch] = n
            orders = False
            for k in range(first, end):
                self.at = k
                e = self.tape.entries[k]  # a thread that outlives the function may make the tape grow meanwhile
                if not self._entry(&e, &orders):
                    return False
            if barrier >= 0:
                self.needs[barrier].add(n)
            if orders:  # memory changes back here: everybody sees it before or after
                for k in range(0 if barrier < 0 else barrier, n):
                    self.needs[k].add(n)
                barrier = n
        self._add_seeds(seeded)
        for index in self.readers:
            k = index
            self.made[index] = self.place[k], self.last_change[k]
        return True

    cdef int _add_seeds(self, Bars seeded) except -1:
        cdef Py_ssize_t k
        for k in range(self.room):
            if seeded.cells[k].bits != NOTHING and self.place[k] >= 0 and self.owner[self.place[k]] != 0:
                self.readers.setdefault(k, {})[0] = None
        return 0

    cdef bint _entry(self, Entry* e, bint* orders) except -1:
        cdef int64_t i = e.input
        cdef ArrayStep step
        cdef int32_t* place
        if i >= 0:
            return self._read(i, None) and self._change(e.output, True)
        if self.stretch != 0:
            self.is_heavy.add(self.stretch)
        if i == ARRAY:
            return self._array_step(self.tape.objects[<Py_ssize_t> e.partial])
        if i == READ or i == WRITE:
            place = <int32_t*> &e.partial
            if i == READ:
                return self._read(place[0], (place[1], place[1] + 1)) and self._change(e.output, True)
            return (e.output < 0 or self._read(e.output, None)) and self._change(place[0], False)
        if i == DOT or is_complex_kind(i):
            return False
        first, what = self.tape.objects[<Py_ssize_t> e.partial]
        if i == ODD:
            return self._read(first, None) and self._change(e.output, True)
        found = steps.met_by(e.input, first, what)
        if found is None:
            return False
        made, changed, read, undoes = found
        for index, x in read:
            if not self._read(index, x):
                return False
        for index in made:
            if not self._change(index, True):
                return False
        for index in changed:
            if not self._change(index, False):
                return False
        if undoes:
            orders[0] = True
        return True

    cdef bint _array_step(self, ArrayStep step) except -1:
        cdef Mapped m
        if step.op == GATHERED:
            for index in <tuple> step.more:
                if index >= 0 and not self._read(index, None):
                    return False
        elif step.op == MAPPED:
            m = step.more
            for index, x in zip(m.indices, m.operands, strict=True):
                if index is not None and index >= 0 and not self._read(index, x):
                    return False
        elif not is_change(step.op) and step.i >= 0 and not self._read(step.i, step.a):
            return False
        if step.op != GATHERED and step.op != MAPPED and step.j >= 0 and not self._read(step.j, step.b):
            return False
        return self._change(step.i, False) if is_change(step.op) else self._change(step.n, True)

    cdef inline int _meet(self, int64_t i) noexcept:
        """The stretch in hand has a cotangent for index `i`."""
        if self.stretch != 0:
            self.own.cells[i].bits = NOTHING
        else:
            self.first_meets[i] = True
        return 0

    def meets_first(self, Py_ssize_t i):
        """Whether stretch 0 has anything to do with index `i`."""
        return self.first_meets[i] != 0 or (<Bars> self.bars[0]).cells[i].bits != NOTHING

    cdef bint _read(self, int64_t i, object x) except -1:
        """An entry reads index `i`: operand `x`, None for all of it, or (first, end) in elements of the region."""
        cdef int32_t at
        cdef int owner
        if i >= self.room:  # of such a thread
            return False
        at = self.place[i]
        owner = 0 if at < 0 else <int> self.owner[at]
        self._meet(i)
        if owner != self.stretch:
            if at >= 0:
                (<set> self.needs[at]).add(self.piece)
                self.sources.setdefault(self.stretch, {}).setdefault(owner)
            self._note(self.ends if at < 0 else self.readers, i, x)
            if at < 0 and cnp.PyArray_CheckExact(x) and i not in self.owners:
                self.owners[i] = steps.owner_of(x)
        if self.seen[i] == NOBODY:
            self.seen[i] = self.stretch
        elif self.seen[i] != self.stretch:
            self.seen[i] = SEVERAL
        return True

    cdef int _note(self, dict places, int64_t i, object x) except -1:
        cdef dict of_index = places.setdefault(i, {})
        span = x if type(x) is tuple else steps.span_of(x)
        if self.stretch not in of_index:
            of_index[self.stretch] = span
        else:
            before = of_index[self.stretch]
            of_index[self.stretch] = (
                None if before is None or span is None else (min(before[0], span[0]), max(before[1], span[1]))
            )
        return 0

    cdef bint _change(self, int64_t i, bint is_new) except -1:
        """An entry makes index `i`, or changes its memory: False where another stretch has met it before."""
        if i >= self.room or (self.seen[i] != NOBODY and self.seen[i] != self.stretch):
            return False
        self._meet(i)
        self.seen[i] = self.stretch
        if not is_new and self.stretch != 0 and self.place[i] < 0:  # it may be an argument
            self.ends.setdefault(i, {})[self.stretch] = None
        self.place[i] = self.piece
        self.last_change[i] = <int32_t> self.at
        return True
