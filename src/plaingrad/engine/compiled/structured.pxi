# -- arguments that are floats, lists, tuples and dictionaries of them, and arrays ----------------------------------------
#
# What `reverse.inputs` and `reverse.exclusive` do with them. A list or dictionary keeps its identity and is patched while
# the function runs; a tuple is rebuilt. An array, an argument of its own, is copied, and gets what was written into the
# copy.

cdef enum:
    OF_FLOATS, OF_ENTRIES, OF_KEYS, ONE_NUMBER, ONE_ARRAY  # kinds of shapes
    DEEPEST_ARGUMENT = 20

cdef dict patched_containers, at_work
cdef object lock_of_patched, release_patched
cdef object Twin, fresh_copy, write_back


def set_exclusive(parts):
    """What `reverse.exclusive` knows of patched containers, and does."""
    global patched_containers, at_work, lock_of_patched, release_patched
    patched_containers, at_work = parts["patched"], parts["at_work"]
    lock_of_patched, release_patched = parts["lock"], parts["release"]


def set_arrays(twin, copying, writing):
    """What `reverse.inputs` has for arrays."""
    global Twin, fresh_copy, write_back
    Twin, fresh_copy, write_back = twin, copying, writing


@cython.final
cdef class Shape:
    """The structure of an argument, whose floats are counted from `first`.

    Attributes:
        kind: `OF_FLOATS`, a list or tuple of `count` floats; `OF_ENTRIES`, one of any entries; `OF_KEYS`, a dictionary;
            `ONE_NUMBER`; `ONE_ARRAY`, of which `first` is the index.
        x: the container, the number, or the copy of an array.
        entries: shapes, None for what has no tangent.
        keys: of a dictionary.
    """

    cdef readonly int kind
    cdef readonly object x
    cdef readonly Py_ssize_t first, count
    cdef readonly list entries
    cdef readonly tuple keys

    cdef object gradient(self, tuple bars):
        """The part of `bars`, one for each float, that has this structure."""
        cdef list found
        if self.kind == ONE_NUMBER:
            return bars[self.first]
        if self.kind == OF_FLOATS:
            part = bars[self.first:self.first + self.count]
            return list(part) if type(self.x) is list else part
        found = [None if entry is None else (<Shape> entry).gradient(bars) for entry in self.entries]
        if self.kind == OF_KEYS:
            return dict(zip(self.keys, found))
        return found if type(self.x) is list else tuple(found)


cdef Py_ssize_t floats_in(object x, list containers, int depth) except -2:
    """How many floats are in `x`, whose lists and dictionaries are noted; -1 if that is not for here."""
    cdef Py_ssize_t n = 0, m, place = 0
    cdef PyObject* key
    cdef PyObject* value
    if PyFloat_CheckExact(x):
        return 1
    if is_simple(x) or PyBool_Check(x):
        return 0
    if depth > DEEPEST_ARGUMENT:
        return -1
    if not PyTuple_CheckExact(x):
        if not PyList_CheckExact(x) and not PyDict_CheckExact(x):
            return -1
        if len(containers) < 8:  # one by one; a container that is met again is another's business
            for one in containers:
                if one is x:
                    return -1
        elif any([one is x for one in containers]):
            return -1
        containers.append(x)
    if PyDict_CheckExact(x):
        while PyDict_Next(x, &place, &key, &value):
            if not PyUnicode_CheckExact(<object> key):
                return -1
            m = floats_in(<object> value, containers, depth + 1)
            if m < 0:
                return -1
            n += m
        return n
    for part in x:
        m = 1 if PyFloat_CheckExact(part) else floats_in(part, containers, depth + 1)
        if m < 0:
            return -1
        n += m
    return n


cdef inline bint is_no_dot(object dot):
    return dot is None or dot is ZeroTangent


cdef bint dots_fit(object x, object dot) except -1:
    """Whether `dot` is a tangent of `x`, made of floats, and of what stands for zero."""
    cdef Py_ssize_t k
    if is_no_dot(dot):
        return True
    if PyFloat_CheckExact(x):
        return PyFloat_CheckExact(dot)
    if cnp.PyArray_CheckExact(x):
        return is_float64(dot) and has_shape(dot, x)
    if PyDict_CheckExact(x):
        if not PyDict_CheckExact(dot):
            return False
        for key, part in (<dict> x).items():
            if not dots_fit(part, (<dict> dot).get(key)):
                return False
        return True
    if not (PyList_CheckExact(x) or PyTuple_CheckExact(x)) or not (PyList_CheckExact(dot) or PyTuple_CheckExact(dot)):
        return False
    if len(x) != len(dot):
        return False
    for k in range(len(x)):
        if not dots_fit(x[k], dot[k]):
            return False
    return True


cdef PyObject* memory_of_argument(cnp.ndarray x) noexcept:
    """The array that has the memory of argument `x`, whose elements lie side by side; NULL if that is not for here."""
    return memory_of(x) if is_float64(x) and (cnp.PyArray_IS_C_CONTIGUOUS(x) or cnp.PyArray_IS_F_CONTIGUOUS(x)) else NULL


def containers_in(tuple args, tuple argnums, tuple dots=None):
    """The lists and dictionaries in the arguments at `argnums`; None where these are not for the compiled core.

    With tangents `dots`, of all arguments: of those that move.
    """
    cdef list containers = [], owners = None
    cdef bint any_moves = False
    cdef PyObject* owner
    if current is None:
        return None
    for n in argnums:
        if dots is not None:
            if is_no_dot(dots[n]):
                continue
            if not dots_fit(args[n], dots[n]):
                return None
            any_moves = True
        if cnp.PyArray_CheckExact(args[n]):
            owner = memory_of_argument(<cnp.ndarray> args[n])
            if owner == NULL or Twin is None:
                return None
            if owners is None:
                owners = []
            for other in owners:
                if <PyObject*> other == owner:
                    return None
            owners.append(<object> owner)
            continue
        if floats_in(args[n], containers, 0) < 1:
            return None
    return containers if dots is None or any_moves else None


cdef class Arguments:
    """The arguments, with floats of their own in the place of the caller's, until `restore`."""

    cdef Arithmetic recorder
    cdef list containers, firsts  # those that are patched, and the number of the first float in each
    cdef readonly list arrays  # twins
    cdef bint is_written_back
    cdef readonly list fresh, olds, tuples  # `tuples`: (one that was rebuilt, the caller's)
    cdef readonly list shapes  # of the differentiated arguments
    cdef list dots
    cdef FreshFloats floats
    cdef dict rebuilt  # of `tuples`, by identity
    cdef Py_ssize_t registered  # how many references to the level that makes

    cdef bint acquire(self, object level, list containers) except -1:
        """Take the containers, if no other thread's derivative has one of them."""
        cdef object key, outer = level.parent
        if not containers:
            return True
        if lock_of_patched._is_owned() or not lock_of_patched.acquire(False):
            return False
        lock_of_patched.release()
        for x in containers:
            holders = patched_containers.get(PyLong_FromVoidPtr(<void*> <PyObject*> x))
            if holders and holders[len(holders) - 1] is not outer:
                return False
        for x in containers:
            key = PyLong_FromVoidPtr(<void*> <PyObject*> x)
            holders = patched_containers.get(key)
            if holders is None:
                patched_containers[key] = [level]
            else:
                holders.append(level)
        self.registered = len(containers) + 1
        at_work[level] = self, PyThread_get_thread_ident()
        return True

    def restore(self):
        """Put the caller's own floats and tuples back, wherever in the containers they are by now, and let others have these.

        It may be done twice, and again from its beginning if an exception arrives.
        """
        cdef Py_ssize_t k
        if self.arrays and not self.is_written_back:
            self._write_back(self.recorder.level)
            self.is_written_back = True
        for k in range(len(self.firsts)):
            x = self.containers[k]
            if PyList_CheckExact(x):
                self._restore_list(<list> x, self.firsts[k])
            else:
                self._restore_dict(<dict> x)
        self.release(self.recorder.level)

    cdef int _write_back(self, object level) except -1:
        """Put what was written into copies of arrays into the caller's."""
        for twin in level.twins:
            if twin.torn:
                return 0
        for twin in self.arrays:
            if twin.written:
                level.outside(write_back, twin.original, twin.copy)
        return 0

    cdef object array(self, cnp.ndarray x, n, object dot):
        """The copy to pass instead of array `x`, argument `n`, with tangent `dot`; in reverse mode its shape is appended."""
        cdef object level = self.recorder.level, key
        cdef list owners = level.arrays
        cdef dict others = self.recorder.table.others
        cdef Shape shape
        copy = cnp.PyArray_NewCopy(x, cnp.NPY_KEEPORDER) if self.recorder.outer is None else fresh_copy(level, x)
        if not cnp.PyArray_ISWRITEABLE(x):
            copy.flags.writeable = False
        twin = Twin(x, copy, f"argument {n}")
        if isinstance(self.recorder, ArrayPusher):
            level.fresh[(<ArrayPusher> self.recorder).seeded(copy, dot)] = twin
        else:
            shape = Shape.__new__(Shape)
            shape.kind, shape.x = ONE_ARRAY, copy
            shape.first = (<ArrayRecorder> self.recorder)._add_region(copy, cnp.PyArray_NBYTES(x))
            level.fresh[shape.first] = twin
            self.shapes.append(shape)
        key = PyLong_FromVoidPtr(<void*> memory_of(x))
        if key not in others:  # so that it is noticed where the program comes by it in another way
            others[key] = -1 - len(level.twins)
            owners.append(<object> memory_of(x))
        level.twins.append(twin)
        self.arrays.append(twin)
        return copy

    cdef object _found(self, object value):
        """What the caller has in the place of `value`, a float or tuple; None for the same."""
        if PyTuple_CheckExact(value):
            if self.rebuilt is None:
                self.rebuilt = {PyLong_FromVoidPtr(<void*> <PyObject*> new): old for new, old in self.tuples}
            return self.rebuilt.get(PyLong_FromVoidPtr(<void*> <PyObject*> value))
        if self.floats is None:
            self.floats = FreshFloats(self.fresh, tuple(self.olds))
        return self.floats.find(value)

    cdef int _restore_list(self, list x, Py_ssize_t p) except -1:
        cdef Py_ssize_t k, n = len(self.fresh)
        for k in range(len(x)):
            if not PyFloat_CheckExact(x[k]) and not (self.tuples and PyTuple_CheckExact(x[k])):
                continue
            if p < n and x[k] is self.fresh[p]:
                x[k] = self.olds[p]
                p += 1
            else:
                old = self._found(x[k])
                if old is not None:
                    x[k] = old
        return 0

    cdef int _restore_dict(self, dict x) except -1:
        for key, value in x.copy().items():
            if PyFloat_CheckExact(value) or (self.tuples and PyTuple_CheckExact(value)):
                old = self._found(value)
                if old is not None:
                    x[key] = old
        return 0

    cdef int release(self, object level) except -1:
        """Let others have the containers."""
        cdef object key
        if not self.registered:
            return 0
        if lock_of_patched._is_owned() or not lock_of_patched.acquire(False):
            release_patched(level, {PyLong_FromVoidPtr(<void*> <PyObject*> x): x for x in self.containers})
        else:
            lock_of_patched.release()
            for x in self.containers:
                key = PyLong_FromVoidPtr(<void*> <PyObject*> x)
                holders = patched_containers.get(key)
                if holders is not None:
                    if level in holders:
                        holders.remove(level)
                    if not holders:
                        del patched_containers[key]
        at_work.pop(level, None)
        self.registered = 0
        return 0

    cdef object make(self, object x, object dot, list shapes):
        """What to pass instead of `x`; its shape is appended to `shapes`."""
        cdef Shape shape
        cdef tuple parts, keys = None
        cdef list values
        cdef Py_ssize_t k
        cdef bint mutable, is_dict = PyDict_CheckExact(x)
        if not (PyFloat_CheckExact(x) or is_dict or PyList_CheckExact(x) or PyTuple_CheckExact(x)):
            shapes.append(None)
            return x
        shape = Shape.__new__(Shape)
        shape.x, shape.first = x, len(self.fresh)
        shapes.append(shape)
        if PyFloat_CheckExact(x):
            shape.kind = ONE_NUMBER
            return self._number(x, dot)
        mutable = not PyTuple_CheckExact(x)
        if is_dict:
            keys = tuple(<dict> x)
            parts = tuple((<dict> x).values())
            shape.kind, shape.keys, shape.entries = OF_KEYS, keys, []
        else:
            parts = tuple(x)
            shape.kind = OF_FLOATS if parts and all_floats(parts) else OF_ENTRIES
            shape.count, shape.entries = len(parts), []
        if mutable:
            self.containers.append(x)
            self.firsts.append(len(self.fresh))
        values = []
        if shape.kind == OF_FLOATS:
            values = self.recorder.fresh(parts)
            self.fresh += values
            self.olds += parts
            self.dots += [None] * len(parts) if is_no_dot(dot) else dot
        else:
            for k in range(len(parts)):
                part_dot = None if is_no_dot(dot) else (<dict> dot).get(keys[k]) if is_dict else dot[k]
                values.append(self.make(parts[k], part_dot, shape.entries))
        if not mutable:
            return self._rebuilt(x, parts, values)
        for k in range(len(values)):
            if values[k] is parts[k]:
                continue
            if is_dict:
                (<dict> x)[keys[k]] = values[k]
            elif k < len(<list> x):
                (<list> x)[k] = values[k]
        self._note_patches(x, shape, keys, parts, values)
        return x

    cdef int _note_patches(self, object x, Shape shape, tuple keys, tuple parts, list values) except -1:
        """As `Level.patched` says."""
        cdef Py_ssize_t k
        cdef object level = self.recorder.level
        if shape.kind == OF_FLOATS:
            level.patched.append((x, range(len(values)), values))
            return 0
        for k in range(len(values)):
            if values[k] is not parts[k]:
                level.patched.append((x, k if keys is None else keys[k], values[k]))
        return 0

    cdef object _number(self, object x, object dot):
        cdef object new = self.recorder.fresh((x,))[0]
        self.fresh.append(new)
        self.olds.append(x)
        self.dots.append(dot)
        return new

    cdef object _rebuilt(self, object x, tuple parts, list values):
        cdef Py_ssize_t k
        for k in range(len(parts)):
            if values[k] is not parts[k]:
                new = tuple(values)
                self.tuples.append((new, x))
                return new
        return x

    cdef int seed(self, Table table) except -1:
        """Give the fresh floats their tangents, in forward mode."""
        cdef Py_ssize_t k
        for k in range(len(self.fresh)):
            if PyFloat_CheckExact(self.dots[k]):
                table.find(<PyObject*> self.fresh[k]).dot = PyFloat_AS_DOUBLE(self.dots[k])
        return 0

    cpdef object own(self, object y):
        """`y`, floats and fresh lists and tuples of them, with the caller's own floats in their places."""
        cdef Py_ssize_t k
        if PyFloat_CheckExact(y) or (self.tuples and PyTuple_CheckExact(y)):
            found = self._found(y)
            if found is not None:
                return found
        if PyFloat_CheckExact(y):
            return y
        parts = [self.own(part) for part in y]
        if PyList_CheckExact(y):
            for k in range(len(parts)):
                y[k] = parts[k]
            return y
        for k in range(len(parts)):
            if parts[k] is not y[k]:
                return tuple(parts)
        return y


cdef Arguments arguments_of(Arithmetic recorder):
    cdef Arguments made = Arguments.__new__(Arguments)
    made.recorder = recorder
    made.containers, made.firsts, made.fresh, made.olds = [], [], [], []
    made.tuples, made.shapes, made.dots, made.arrays = [], [], [], []
    return made


cdef bint is_of_floats_only(object y, int depth) except -1:
    """Whether `y` is a float, or a list or tuple of these, nested."""
    if PyFloat_CheckExact(y):
        return True
    if depth > 3 or not (PyList_CheckExact(y) or PyTuple_CheckExact(y)):
        return False
    for part in y:
        if not is_of_floats_only(part, depth + 1):
            return False
    return True


cdef object dots_of(Table table, object y):
    """The tangents of such a `y`."""
    cdef Place* at
    if PyFloat_CheckExact(y):
        at = table.find(<PyObject*> y)
        return PyFloat_FromDouble(0.0 if at == NULL else at.dot)
    found = [dots_of(table, part) for part in y]
    return found if PyList_CheckExact(y) else tuple(found)
