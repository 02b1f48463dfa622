"""What is refused on purpose when it meets numbers that depend on the inputs, and why."""

from __future__ import annotations

# By the name in its namespace: `numpy`, `numpy.linalg`, `numpy.fft`, or "ndarray." and a method.
REFUSED: dict[str, str] = {
    "nested_iters": "hands out buffers of several iterators; loop over np.ndindex instead",
    "packbits": "takes integers",
    "unpackbits": "takes integers",
    "fastCopyAndTranspose": "is gone from NumPy 2; np.array(a).T instead",
    "memmap": "numbers leave for a file",
    "str_": "numbers leave as text",
    "bytes_": "numbers leave as bytes",
    "string_": "numbers leave as bytes",
    "unicode_": "numbers leave as text",
    "void": "numbers leave as bytes",
    "record": "numbers leave as bytes",
    "object_": "makes no number",
    "chararray": "numbers leave as text",
    "ndarray._set_shape": "changes how memory is read; reshape instead",
    "ndarray._set_dtype": "changes how memory is read; view or astype instead",
    "ndarray.ctypes": "hands out the raw address",
    "ndarray.tofile": "numbers leave for a file",
    "ndarray.tobytes": "numbers leave as bytes",
    "ndarray.tostring": "numbers leave as bytes",
    "ndarray.dump": "numbers leave for a file",
    "ndarray.dumps": "numbers leave as bytes",
    "ndarray.newbyteorder": "changes how memory is read",
    "ndarray.to_device": "other devices have no rules",
    "ndarray.__reduce__": "numbers leave as bytes",
    "ndarray.__reduce_ex__": "numbers leave as bytes",
    "ndarray.__setstate__": "numbers come from bytes",
    "ndarray.__dlpack__": "hands memory to another library",
    "ndarray.__delitem__": "never works on arrays",
}

# Callables that never see a real or complex number, or make none: dates, dtypes, settings, abstract types.
NEUTRAL: frozenset[str] = frozenset("""
    busday_count busday_offset is_busday busdaycalendar datetime_as_string datetime_data datetime64 timedelta64
    dtype errstate finfo iinfo flexible character generic number inexact floating complexfloating integer signedinteger
    unsignedinteger frompyfunc flatiter ufunc add_docstring add_newdoc_ufunc compare_chararrays set_numeric_ops geterrobj seterrobj
""".split())
