# -- derivatives of functions of numbers and arrays: a level taken, opened, closed and given back ------------------------------------
#
# What `calls.reuse`, `Level.run`, `reverse.inputs`, and `reverse.run` or `forward.push` do, for arguments that `containers_in` finds fit,
# at the outermost level, and in reverse mode inside forward mode. No signal arrives in between: Python code runs only where the function is called, and where
# classes were adopted or somebody holds the level. That code may be run again from its beginning, which is done here as
# often as exceptions may arrive; see `plaingrad.critical`.

cdef object current = None, outermost, repeated, running_threads, ended, restored
cdef dict adoption, codes_names, watching, free_levels
cdef list rule_changes
cdef Py_ssize_t times, most, sole


def set_opening(parts):
    """Where the rest is: a dictionary; see `calls.opening`."""
    global current, outermost, repeated, running_threads, ended, restored
    global adoption, codes_names, watching, free_levels, rule_changes, times, most, sole
    outermost, repeated, running_threads = parts["outermost"], parts["repeated"], parts["running_threads"]
    ended, restored = parts["ended"], parts["restored"]
    adoption, codes_names, watching = parts["adopt"], parts["codes"], parts["watch"]
    free_levels, rule_changes = parts["free"], parts["changes"]
    times, most = parts["times"], parts["most"]
    sole = parts["count"]() - counted(([object()],))
    current = parts["current"]


def counted(tuple held):
    """The count of references to the only object of a list in `held`, which nobody else has."""
    return Py_REFCNT(<PyObject*> (<list> held[0])[0])


cdef object said_by(object variable):
    """The value of a context variable that has a default."""
    cdef PyObject* value
    PyContextVar_Get(variable, NULL, &value)
    found = <object> value
    Py_DECREF(value)
    return found


cdef bint has_other_threads() except -1:
    return True if adoption["_is_watching"] else bool(running_threads())


cdef int empty(object level, Arithmetic recorder) except -1:
    """As `Level.empty`."""
    cdef Py_ssize_t k
    cdef object borrowed = level.borrowed
    for k in range(len(recorder.held)):
        if not recorder.held[k]:
            continue
        if k >= 6:  # of texts
            level.empty()
            return 0
        recorder.held[k].clear()
    if borrowed.copies is not None or borrowed.extents is not None:
        level.empty()
        return 0
    level._array_bytes, level._array_limit = 0, recorder.first_limit
    recorder.renew()
    return 0


@cython.final
cdef class Derivation:
    """One derivative at a level that is used again, taken with `begin`.

    Attributes:
        level: its level.
        given: the arguments.
        found: where the result is to be read by other code: where its cotangent goes, or its tangent.
    """

    cdef tuple entry  # of the free levels
    cdef readonly object level
    cdef list free
    cdef Py_ssize_t own  # how many references the level has to itself, and those of `entry` and of `level`
    cdef bint keeps
    cdef readonly Arguments given
    cdef readonly object found
    cdef dict open_levels

    @property
    def refusal(self):
        """As of the level: where a refusal is noted, the frame of `run` is looked for, which knows this object."""
        return self.level.refusal

    @refusal.setter
    def refusal(self, error):
        self.level.refusal = error

    cdef Py_ssize_t _held(self) except -1:
        """How many references to the level there are where nobody holds it."""
        cdef Py_ssize_t found = self.own
        for _, _, count, _ in self.level.spare:
            found += <Py_ssize_t> count
        return found

    def released(self):
        """The level, in a list, which is let go of here."""
        cdef list found = [self.level]
        self.level = self.entry = None
        return found

    cdef int _call_surely(self, object work, object first=None) except -1:
        """work(), again from its beginning where an exception arrives; that, or `first`, is raised in the end."""
        cdef Py_ssize_t k
        for k in range(times + 1):
            try:
                work()
                break
            except BaseException as error:
                first = error
        if first is not None:
            raise first
        return 0

    cdef int _close(self, object error) except -1:
        """Close the level; what is raised is `error`, if it is not None, or what arrived meanwhile."""
        cdef object level = self.level, calls = level.calls
        calls.open = False
        calls.made = None
        forget(calls.seen)
        # One reference more is that of `adopt`.
        self.keeps = Py_REFCNT(<PyObject*> level) == self._held() + self.given.registered + 2 and not level.heirs  # and `level`, here
        level.keeps_hooks = self.keeps
        if self.keeps:
            level.is_closed = True
            self.open_levels.pop(level, None)
            if self.open_levels or not (
                adoption["_adopted"] or adoption["_adopting"] or adoption["_is_watching"] or codes_names["_exchanged"]
            ):
                if error is not None:
                    raise error
                return 0
        return self._call_surely(level.close, error)

    cdef object _called(self, object f, tuple args, dict kwargs, bint as_it_is=False):
        """f(*args, **kwargs) with the level in force; closed at the end, however that comes.

        It runs rewritten, or `as_it_is`.
        """
        cdef object level = self.level, token = None, context = PyContext_CopyCurrent(), error
        try:
            self.open_levels[level] = PyThread_get_thread_ident()
            if adoption["_is_closing"] or (running_threads() and not adoption["_is_watching"]):
                adoption["level_opened"](level)
            token = PyContextVar_Set(current, level)
            value = PyObject_Call(f if as_it_is else level.prep(f), args, kwargs)
        except BaseException as caught:
            error = caught
            if token is not None:
                PyContextVar_Reset(current, token)
            token = level = None
            try:
                self._close(error)
            except BaseException as last:
                error = last
            if not isinstance(error, Exception):
                try:
                    self._call_surely(partial(restored, context), error)
                except BaseException as last:
                    error = last
            raise ended(self.level.refusal, error)
        PyContextVar_Reset(current, token)
        token = level = None
        self._close(None)
        if self.level.refusal is not None:
            raise ended(self.level.refusal, None)
        return value

    cdef int _give_back(self) except -1:
        """Let the next derivative have the level, if nobody else has it."""
        cdef object level
        cdef Arithmetic recorder
        if not self.keeps or Py_REFCNT(<PyObject*> self.level) != self._held() or len(self.free) >= most:
            return 0
        recorder = self.level.recorder
        level = self.level
        if level.patched:
            level.patched = []
        if recorder.leaves_something():
            empty(level, recorder)
        else:
            recorder.renew()
        level = self.level = None
        self.free.append(self.entry)
        self.entry = None
        return 0

    def give_back(self):
        """Let the next derivative have the level, whose tape nobody reads any more."""
        if self.level is not None:
            self._give_back()

    cdef int _restore(self, object error) except -1:
        """Give the caller its own floats back; what is raised is `error`, if it is not None, or what arrived meanwhile."""
        if self.given.registered or self.given.arrays:
            return self._call_surely(self.given.restore, error)
        if error is not None:
            raise error
        return 0

    cdef bint _begin(self, tuple args, list at, tuple dots, list containers, list given) except -1:
        """Put the fresh arguments at `at` in `given`; False if another thread has one of the containers."""
        cdef Arithmetic recorder = self.level.recorder
        self.given = arguments_of(recorder)
        if not self.given.acquire(self.level, containers):
            return False
        for n in at:
            if cnp.PyArray_CheckExact(args[n]):
                given[n] = self.given.array(args[n], n, None if dots is None else dots[n])
                continue
            given[n] = self.given.make(args[n], None if dots is None else dots[n], self.given.shapes)
        return True

    def gradient(self, f, tuple args, tuple argnums, dict kwargs, list containers, bint later=False):
        """(f(*args), its gradients by the arguments at `argnums`); None for these where `found` was read.

        With `later` a `TakenTape` in their place. None if another thread's derivative has one of `containers`.
        """
        cdef ArrayRecorder recorder = self.level.recorder
        cdef list given = list(args)
        cdef Place* at
        cdef int64_t y
        cdef tuple bars = None
        cdef TakenTape tape = None
        try:
            if not self._begin(args, list(argnums), None, containers, given):
                return None
            value = self._called(f, tuple(given), kwargs)
            given = None
            if PyFloat_CheckExact(value) and not recorder.owners and recorder.tape.is_of_numbers():
                at = recorder.table.find(<PyObject*> value)
                y = -1 if at == NULL else at.index
                if later:
                    tape = taken(recorder.tape, y, recorder.n + 1, self.given.fresh, self.given.shapes)
                else:
                    bars = recorder.tape.gradients(y, recorder.n + 1, len(self.given.fresh))
            if bars is None and tape is None:
                self.found = self.level.slot_of(value)
        except BaseException as error:
            self._restore(error)
        self._restore(None)
        if bars is None and tape is None:
            return value, None
        value = self.given.own(value)
        if tape is not None:
            self._give_back()
            return value, tape
        gradients = tuple([(<Shape> shape).gradient(bars) for shape in self.given.shapes])
        self._give_back()
        return value, gradients

    def push(self, f, tuple args, tuple dots, dict kwargs, list containers, bint as_it_is=False):
        """(f(*args), its tangent), and whether that is all; if not, the value has still the fresh floats in it.

        None if another thread's derivative has one of `containers`.
        """
        cdef ArrayPusher recorder = self.level.recorder
        cdef list given = list(args)
        cdef bint whole = False
        try:
            if not self._begin(args, [n for n, x_dot in enumerate(dots) if not is_no_dot(x_dot)], dots, containers, given):
                return None
            self.given.seed(recorder.table)
            value = self._called(f, tuple(given), kwargs, as_it_is)
            given = None
            whole = is_of_floats_only(value, 0)
            self.found = dots_of(recorder.table, value) if whole else self.level.tangent_of(value)
        except BaseException as error:
            self._restore(error)
        self._restore(None)
        if type(value) is NUMBER64 or cnp.PyArray_CheckExact(value):
            for twin in self.given.arrays:
                if value is twin.copy:
                    value = twin.original
            self._give_back()
            return value, self.found, True
        if not whole:
            return value, self.found, False
        value = self.given.own(value)
        self._give_back()
        return value, self.found, True


def begin(level_class):
    """A derivative at a level that is used again, if there is one for here; else None.

    Around it there may be a derivative in forward mode, that is compiled.
    """
    cdef Derivation made
    cdef tuple entry, made_for
    cdef list free
    cdef PyObject* found
    if current is None or watching["observer"] is not None:
        return None
    outer = said_by(current)
    if outer is outermost:
        found = PyDict_GetItemWithError(free_levels, level_class)
        if found == NULL:
            return None
        free = <list> found
    elif type(outer.recorder) is ArrayPusher:
        free = outer.spare
    else:
        return None
    if not free:
        return None
    entry = free.pop()
    made_for = entry[0]
    if made_for[0] != rule_changes[0] or made_for[1] is not codes_names["is_watched"]:
        return None
    if made_for[2] is not has_other_threads() or type(entry[1]) is not level_class:
        return None
    made = Derivation.__new__(Derivation)
    made.entry, made.free = entry, free
    made.open_levels = adoption["_open"]
    made.level = level = entry[1]
    made.own = <Py_ssize_t> entry[3] - sole + 1
    if Py_REFCNT(<PyObject*> level) != made._held() + 1:  # and `level`
        return None
    calls = level.calls
    level.refusal = None
    level.may_sweep = True
    level.is_closed = False
    level.keeps_hooks = False
    calls.open = True
    calls.memos.made = said_by(repeated)
    return made
