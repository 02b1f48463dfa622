# -- floats that stand in for those of an argument -----------------------------------------------------------------------

cdef class FreshFloats:
    """The fresh floats of a list or tuple, and those of the caller, by place."""

    cdef readonly list values
    cdef readonly tuple olds
    cdef dict places  # of a fresh float, by identity; made when somebody asks often
    cdef int asked

    def __init__(self, list values, tuple olds):
        self.values, self.olds = values, olds

    cpdef find(self, y):
        """The caller's float that `y` stands for, or None."""
        cdef Py_ssize_t k
        if self.places is None:
            self.asked += 1
            if self.asked < 4:
                for k in range(len(self.values)):
                    if self.values[k] is y:
                        return self.olds[k]
                return None
            self.places = {PyLong_FromVoidPtr(<void*> <PyObject*> x): k for k, x in enumerate(self.values)}
        found = self.places.get(PyLong_FromVoidPtr(<void*> <PyObject*> y))
        return None if found is None else self.olds[found]

    def restore(self, list container):
        """Put the caller's floats back in `container`, wherever the fresh ones are by now."""
        cdef Py_ssize_t k, n = len(self.values)
        for k in range(len(container)):
            if k < n and container[k] is self.values[k]:
                container[k] = self.olds[k]
            elif PyFloat_CheckExact(container[k]):
                old = self.find(container[k])
                if old is not None:
                    container[k] = old


def all_floats(values):
    """Whether `values`, a list or tuple, holds floats of no other class, and something."""
    cdef Py_ssize_t k
    if PyTuple_CheckExact(values):
        for k in range(len(<tuple> values)):
            if not PyFloat_CheckExact((<tuple> values)[k]):
                return False
    else:
        for k in range(len(<list> values)):
            if not PyFloat_CheckExact((<list> values)[k]):
                return False
    return len(values) > 0
