# -- forms of closures ------------------------------------------------------------------------------------------------
#
# What `calls.rewritten_forms` does for a function made inside of another one, or with attributes, whose code is rewritten
# already: programs make closures and lambdas again and again, and decorators leave attributes.

cdef set common_modules = None
cdef dict rewritten_codes, rules_by_callable, rules_of_functions, modules_waiting, exchanged_codes


def set_closures(parts):
    """The tables that decide; see `calls.rewritten_forms`."""
    global common_modules, rewritten_codes, rules_by_callable, rules_of_functions, modules_waiting, exchanged_codes
    rewritten_codes, rules_by_callable = parts["codes"], parts["rules"]
    rules_of_functions, modules_waiting, exchanged_codes = parts["of_functions"], parts["waiting"], parts["exchanged"]
    common_modules = parts["common"]


cdef object with_code(object f, object code):
    """As `rewrite.with_code`."""
    cdef object made = PyFunction_NewWithQualName(code, <object> PyFunction_GET_GLOBALS(f), f.__qualname__)
    if PyFunction_GET_CLOSURE(f) != NULL:
        PyFunction_SetClosure(made, <object> PyFunction_GET_CLOSURE(f))
    if PyFunction_GET_DEFAULTS(f) != NULL:
        PyFunction_SetDefaults(made, <object> PyFunction_GET_DEFAULTS(f))
    if PyFunction_GET_KW_DEFAULTS(f) != NULL:
        PyFunction_SetKwDefaults(made, <object> PyFunction_GET_KW_DEFAULTS(f))
    made.__dict__ = f.__dict__
    made.__name__, made.__module__, made.__doc__ = f.__name__, f.__module__, f.__doc__
    return made


cdef object anew(DecidedFunctions functions, object f, object form):
    """What to call instead of `f`, which is filed; None where the whole decision is to be made."""
    cdef PyObject* code = PyFunction_GET_CODE(f)
    cdef PyObject* found = PyFunction_GET_MODULE(f)
    cdef object key, new
    if common_modules is None or found == NULL:
        return None
    if not PyUnicode_CheckExact(<object> found) or not PySet_Contains(common_modules, <object> found):
        return None
    if PyFunction_GET_CLOSURE(f) == NULL and "<locals>" not in f.__qualname__:
        if not f.__dict__ or (<object> found).startswith("plaingrad."):  # of a module: what is decided lasts
            return None
    if PyDict_Contains(modules_waiting, <object> found) or PyDict_Contains(rules_by_callable, f):
        return None
    key = PyLong_FromVoidPtr(<void*> <PyObject*> f)
    if PyDict_Contains(rules_of_functions, key) or PyDict_Contains(exchanged_codes, f):
        return None
    found = PyDict_GetItemWithError(rewritten_codes, PyLong_FromVoidPtr(<void*> code))
    if found == NULL or (<object> found)() is not <object> code:
        return None
    new = (<object> found).forms.get(form)
    if new is None:
        return None
    new = with_code(f, new)
    functions[key] = (
        <object> code,
        None if PyFunction_GET_DEFAULTS(f) == NULL else <object> PyFunction_GET_DEFAULTS(f),
        None if PyFunction_GET_KW_DEFAULTS(f) == NULL else <object> PyFunction_GET_KW_DEFAULTS(f),
        new,
        PyWeakref_NewRef(f, partial(functions.pop, key)),
        False,
    )
    if PyFunction_GET_CODE(f) != code:  # by another thread
        functions.pop(key)
    return new
