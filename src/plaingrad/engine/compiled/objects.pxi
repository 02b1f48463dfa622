# -- operators of objects -----------------------------------------------------------------------------------------------
#
# What was decided last about two classes: most operators of objects need nothing of the level, as the special methods
# of their classes run rewritten.

# Kinds of classes, as `memory.kinds` says; of a class as it is now, which its version tag tells.

cdef struct Kind:
    void* cls
    unsigned int version
    int kind

cdef Kind kinds[256]
cdef object classify = None


def set_classify(function):
    """Who says of what kind a class is."""
    global classify
    classify = function


def kind_of(cls):
    """The kind of a class's instances."""
    cdef Versioned* t = <Versioned*> <PyObject*> cls
    cdef Kind* known = &kinds[(<uintptr_t> t >> 5) & 255]
    cdef unsigned int version = t.tp_version_tag if PyType_Check(cls) else 0
    cdef int kind
    if not PyType_Check(cls):
        return classify(cls)
    if known.cls == <void*> t and known.version == version and version != 0:
        return known.kind
    kind = classify(cls)
    known.cls, known.version, known.kind = <void*> t, version, kind
    return kind


cdef struct Decided:
    void* a
    void* b
    int op
    int native  # as `calls.operators.runs_natively` says
    int64_t epoch

cdef Decided decided[256]
cdef object ask_natively = None


def set_natively(function):
    """Who decides whether Python may do an operator between two classes by itself."""
    global ask_natively
    ask_natively = function


cdef inline int natively(object a, object b, int op, bint in_place) except -1:
    """Whether Python may do `a op b` by itself, at any level (1), or where no level is around (2)."""
    cdef void* ta = <void*> type_of(a)
    cdef void* tb = <void*> type_of(b)
    cdef int key = 2 * op + in_place
    cdef Decided* known = &decided[((<uintptr_t> ta >> 4) * 31 + (<uintptr_t> tb >> 4) * 17 + key) & 255]
    cdef int64_t then
    if known.a != ta or known.b != tb or known.op != key or known.epoch != epoch:
        then = epoch
        found = ask_natively(ASKED[op], type(a), type(b))
        if found is None:  # not yet known
            return 0
        known.a, known.b, known.op, known.epoch, known.native = ta, tb, key, then, found
    return known.native
