# cython: language_level=3, binding=False, embedsignature=False, freethreading_compatible=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False, always_allow_keywords=False
"""The hooks that run most, compiled: table, tape and reverse pass as memory of C, and the looks at types before a
native operation.

`ArrayRecorder`, `ArrayPusher` and `PairRecorder` do what `fusion.hot_hooks`, the modes and the rules do with numbers and
plain arrays: in reverse mode and in forward mode where no derivative is taken further out, and in reverse mode inside
such a forward mode. `ChunkPusher` and `JetPusher` do it with numbers, for chunks of tangents and Taylor coefficients.
`Looks` does what the methods of a level and of its call decision do first, in any mode: where they find something that
needs work, the Python forms go on.

One thread at a time runs here: every method is one step for the interpreter unless it calls Python code, and what it
has filed is whole before it does. Signals are answered between instructions of Python, so none arrives inside.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.list cimport PyList_GET_ITEM
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.math cimport atan, cos, exp, cosh, fabs, floor, isfinite, isinf, log, sin, sinh, sqrt, tan, tanh, pow as c_pow
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

import cmath
import collections
import itertools
import math
import operator
from datetime import date, datetime, timedelta
from enum import Enum as EnumMember
from functools import partial
from types import FunctionType, GeneratorType

import numpy as np

from plaingrad.critical import exclusively
from plaingrad.rewrite import evaluation
from plaingrad.tangents import Thunk, ZeroTangent

cdef extern from "Python.h":
    bint PyFloat_CheckExact(object)
    bint PyBool_Check(object)
    bint PyUnicode_CheckExact(object)
    bint PyCFunction_CheckExact(object)
    PyObject* PyCFunction_GET_SELF(object)
    bint PyComplex_CheckExact(object)
    double PyComplex_RealAsDouble(object)
    double PyComplex_ImagAsDouble(object)
    object PyComplex_FromDoubles(double, double)
    double PyFloat_AS_DOUBLE(object)
    object PyFloat_FromDouble(double)
    bint PyLong_CheckExact(object)
    double PyLong_AsDouble(object) except? -1.0
    long long PyLong_AsLongLongAndOverflow(object, int*) noexcept  # of a whole number, which raises nothing
    object PyLong_FromVoidPtr(void*)
    void* PyLong_AsVoidPtr(object) except? NULL
    Py_ssize_t Py_SIZE(object)
    Py_ssize_t Py_REFCNT(PyObject*)
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)
    object PyNumber_Negative(object)
    object PyNumber_Add(object, object)
    object PyNumber_Subtract(object, object)
    object PyNumber_Multiply(object, object)
    object PyNumber_TrueDivide(object, object)
    object PyNumber_FloorDivide(object, object)
    object PyNumber_Remainder(object, object)
    object PyNumber_Power(object, object, object)
    object PyNumber_MatrixMultiply(object, object)
    object PyNumber_InPlaceAdd(object, object)
    object PyNumber_InPlaceSubtract(object, object)
    object PyNumber_InPlaceMultiply(object, object)
    object PyNumber_InPlaceTrueDivide(object, object)
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
    PyObject* PyFunction_GET_CLOSURE(object)
    PyObject* PyFunction_GET_GLOBALS(object)
    PyObject* PyFunction_GET_MODULE(object)
    object PyFunction_NewWithQualName(object, object, object)
    int PyFunction_SetClosure(object, object) except -1
    int PyFunction_SetDefaults(object, object) except -1
    int PyFunction_SetKwDefaults(object, object) except -1
    object PyWeakref_NewRef(object, object)
    PyObject* PyMethod_GET_FUNCTION(object)
    PyObject* PyMethod_GET_SELF(object)
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    Py_ssize_t PyDict_Size(object) except -1
    bint PyType_IsSubtype(PyTypeObject*, PyTypeObject*)
    int PySet_Contains(object, object) except -1
    int PyDict_Contains(object, object) except -1
    bint PyList_CheckExact(object)
    bint PyTuple_CheckExact(object)
    bint PyList_Check(object)
    bint PyTuple_Check(object)
    bint PyDict_Check(object)
    int PyDict_Next(object, Py_ssize_t*, PyObject**, PyObject**)
    int PyType_IsSubtype(PyTypeObject*, PyTypeObject*)
    bint PyDict_CheckExact(object)
    bint PyAnySet_CheckExact(object)
    int PySequence_Contains(object, object) except -1
    bint PyFunction_Check(object)
    bint PyMethod_Check(object)
    bint PyModule_CheckExact(object)
    unsigned long Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_LIST_SUBCLASS, Py_TPFLAGS_TUPLE_SUBCLASS, Py_TPFLAGS_DICT_SUBCLASS
    int PyErr_CheckSignals() except -1
    object PyContext_CopyCurrent()
    int PyContextVar_Get(object, PyObject*, PyObject**) except -1
    object PyContextVar_Set(object, object)
    int PyContextVar_Reset(object, object) except -1
    unsigned long PyThread_get_thread_ident()
    object PyObject_Call(object, object, object)
    bint PyType_Check(object)
    bint PyCell_Check(object)
    PyObject* PyCell_GET(object)
    PyObject* PyEval_GetGlobals()
    PyObject* PyEval_GetBuiltins()
    void Py_XDECREF(PyObject*)
    bint PyCFunction_Check(object)
    ctypedef void* PyCFunction
    ctypedef struct PyMethodDef:
        const char* ml_name
        PyCFunction ml_meth
        int ml_flags
        const char* ml_doc
    int METH_FASTCALL
    object PyCFunction_New(PyMethodDef*, object)
    ctypedef struct Versioned "PyTypeObject":
        unsigned int tp_version_tag
    ctypedef struct PyTypeObject:
        void* tp_hash
    PyTypeObject PyType_Type
    int Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE

cdef extern int _PyObject_GetMethod(PyObject*, PyObject*, PyObject**) except? 0  # of no public header since 3.13

cdef extern from *:
    PyTypeObject* type_of "Py_TYPE"(object)
    bint has_feature "PyType_HasFeature"(PyTypeObject*, unsigned long)

cnp.import_array()

cdef object NUMBER64 = np.float64
cdef object NDARRAY = np.ndarray
cdef Py_ssize_t SWEEP_NUMBERS = 800  # numbers filed between two looks for dead ones
cdef int STEP = -1, CALLED = -2, PAIRED = -3  # as in `memory.tape`
cdef int ODD = -4  # of an entry whose partial derivative is no float
cdef int READ = -5, WRITE = -6  # of one element of an array
cdef object FLOAT64 = np.dtype(float)

cdef int ARRAY = -7  # an operation on arrays: `ArrayStep`
cdef int DOT = -8  # the tangent of the partial derivative before it: `PairRecorder`
cdef object steps = None


def set_steps(module):
    """Where the same steps are in Python's form: `engine.memory.compiled_steps`."""
    global steps
    steps = module


VERSION = 23  # what the Python side expects; see `engine.compiled`


include "columns.pxi"
include "table.pxi"
include "fresh.pxi"
include "tape.pxi"
include "meeting.pxi"
include "objects.pxi"
include "arithmetic.pxi"
include "modes.pxi"
include "chunks.pxi"
include "functions.pxi"
include "complex.pxi"
include "arrays.pxi"
include "array_steps.pxi"
include "blocks.pxi"
include "reverse_arrays.pxi"
include "forward_arrays.pxi"
include "chunk_arrays.pxi"
include "jets.pxi"
include "quiet.pxi"
include "array_functions.pxi"
include "mapped.pxi"
include "mapped_tangents.pxi"
include "indexed.pxi"
include "in_place.pxi"
include "paired_cotangents.pxi"
include "pair_arrays.pxi"
include "pairs.pxi"
include "decided.pxi"
include "closures.pxi"
include "looks.pxi"
include "expressions.pxi"
include "structured.pxi"
include "taken.pxi"
include "opening.pxi"
include "stretches.pxi"

OURS = frozenset((
    ArrayRecorder, ArrayPusher, ChunkPusher, JetPusher, PairRecorder, ScalarRule, JetRule, JetPairRule, PairRule, SlopesRule, SumRule, Looks, Evaluator, UfuncRule, ProductRule, SumOfArray, ArrayMaker,
    ArrayCopier, ViewMaker, PlainCall, QuietCall, InspectingCall, CrossRule,
    MappedRule, ArithmeticUfunc, Later, FloatMaker, ComplexMaker, NumberMaker, ComplexRule
))  # of these, bound methods run as they are
