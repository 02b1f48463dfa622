# -- tapes that outlive their level --------------------------------------------------------------------------------------

@cython.final
cdef class TakenTape:
    """A tape of real numbers that was taken from its level, for a pullback; the next derivative may have the level.

    Attributes:
        tape: the entries.
        y: the index of the value; below 0 if it does not depend on the arguments.
        size: how many indices there are.
        fresh: the floats that stood in for those of the arguments, which have the first indices.
        shapes: of the differentiated arguments.
    """

    cdef readonly Tape tape
    cdef readonly int64_t y
    cdef readonly Py_ssize_t size
    cdef readonly list fresh, shapes

    def pull(self, double y_bar):
        """The cotangents of the arguments for that of the value. It may be called again, from any thread."""
        cdef tuple bars = self.tape.gradients(self.y, self.size, len(self.fresh), y_bar)
        return tuple([None if shape is None else (<Shape> shape).gradient(bars) for shape in self.shapes])


cdef TakenTape taken(Tape tape, int64_t y, Py_ssize_t size, list fresh, list shapes):
    """The entries of `tape` for a pullback from number `y`; None, and nothing is taken, if not all are of real numbers."""
    cdef Py_ssize_t k
    cdef TakenTape made
    cdef Tape own
    if tape.outer is not None or tape.is_shared or tape.has_complex or tape.objects:
        return None
    for k in range(tape.count):
        if tape.entries[k].input < 0:
            return None
    made, own = TakenTape.__new__(TakenTape), Tape()
    made.tape, made.y, made.size, made.fresh, made.shapes = own, y, size, fresh, shapes
    if tape.count > KEPT_ENTRIES:
        own.entries, own.count, own.room = tape.entries, tape.count, tape.room
        tape.entries, tape.count, tape.room = NULL, 0, 0
        own.trim()
    elif tape.count > 0:
        own.entries = <Entry*> PyMem_RawMalloc(tape.count * sizeof(Entry))
        if own.entries == NULL:
            raise MemoryError
        memcpy(own.entries, tape.entries, tape.count * sizeof(Entry))
        own.count = own.room = tape.count
    return made
