# -- complex numbers in reverse mode ------------------------------------------------------------------------------------
#
# One that the core files has three indices: its own, those of its real and of its imaginary part. The cotangents of the
# parts are numbers as any others; the cell of its own says that they are there. A partial derivative takes two entries:
# (z, x, real part), (z, kind, imaginary part). What meets such a cotangent as an object makes it one.

cdef enum:
    OF_COMPLEX = -9, OF_REAL = -10  # kinds: z is complex, and so is x, or x is real
    TO_REAL = -11  # z is real, x complex: the two entries have the slopes in the parts of x


cdef inline bint is_complex_kind(int32_t kind) noexcept:
    return kind <= OF_COMPLEX


cdef inline bint is_no_number(Cell* cell) noexcept:
    """Whether a cotangent is no number: an object, or complex."""
    return (cell.bits | 1) == COMPLEX_CELL


cdef inline bint parts_of(object x, double* re, double* im) except -1:
    """The parts of a number; False if it is none of Python's, nor NumPy's float64."""
    if PyComplex_CheckExact(x):
        re[0], im[0] = PyComplex_RealAsDouble(x), PyComplex_ImagAsDouble(x)
        return True
    if not is_real(x):
        return False
    re[0], im[0] = real(x), 0.0
    return True


cdef void divide(double ar, double ai, double br, double bi, double* re, double* im) noexcept:
    """a / b of complex numbers, by Smith's formula (Communications of the ACM 5, 435)."""
    cdef double ratio, size
    if bi == 0.0:
        re[0], im[0] = ar / br, ai / br
    elif fabs(br) >= fabs(bi):
        ratio = bi / br
        size = br + bi * ratio
        re[0], im[0] = (ar + ai * ratio) / size, (ai - ar * ratio) / size
    else:
        ratio = br / bi
        size = br * ratio + bi
        re[0], im[0] = (ar * ratio + ai) / size, (ai * ratio - ar) / size


cdef inline void add_part(Cell* x, double x_bar) noexcept:
    x.number = x_bar if x.bits == NOTHING else x.number + x_bar


cdef bint complex_back(Cell* cells, int64_t o, int64_t i, int32_t kind, double re, double im) noexcept:
    """Carry the cotangent of `o` back to `i`; False where one of them is an object."""
    cdef double zr, zi
    if cells[o].bits == NOTHING:
        return True
    if cells[i].bits == OBJECT or cells[o].bits == OBJECT or (cells[o].bits == COMPLEX_CELL) != (kind != TO_REAL):
        return False
    if kind == OF_REAL:
        if cells[i].bits == COMPLEX_CELL:
            return False
        zr = cells[o + 1].number * re
        add_part(&cells[i], zr if im == 0.0 else zr + cells[o + 2].number * im)
        return True
    if kind == TO_REAL:
        zr = cells[o].number
        zr, zi = zr * re if re != 0.0 else 0.0, zr * im if im != 0.0 else 0.0
    elif im == 0.0:
        zr, zi = cells[o + 1].number * re, cells[o + 2].number * re
    else:
        zr = cells[o + 1].number * re + cells[o + 2].number * im
        zi = cells[o + 2].number * re - cells[o + 1].number * im
    if cells[i].bits == NOTHING:
        cells[i].bits = COMPLEX_CELL
        cells[i + 1].number, cells[i + 2].number = zr, zi
    elif cells[i].bits == COMPLEX_CELL:
        cells[i + 1].number += zr
        cells[i + 2].number += zi
    else:
        return False
    return True


cdef object complex_partial(int32_t kind, double re, double im):
    """The factor of the cotangent."""
    return PyComplex_FromDoubles(re, im if kind == TO_REAL else -im)


cdef class ComplexMaker(FloatMaker):
    """`complex` of two real numbers; of anything else the general way."""

    def call(self, *args, **kwargs):
        """complex(re, im)."""
        if len(args) == 2 and not kwargs and is_real(args[0]) and is_real(args[1]):
            z = self.arithmetic._composed(args[0], args[1])
            if z is not None:
                return z
        return self.general(*args, **kwargs)


cdef bint is_complex_function(object f, object rule) except -1:
    """Whether `f` is a function of `cmath` of one number, with a row of plaingrad's own."""
    return (
        rule.kind == "scalar" and PyCFunction_CheckExact(f) and f.__module__ == "cmath" and len(rule.partials) == 1
        and callable(rule.partials[0])
    )


cdef class ComplexRule:
    """A holomorphic function of a complex number with slope partial(m, x, z), in reverse mode alone."""

    cdef Arithmetic arithmetic
    cdef object f, partial, general

    def __init__(self, arithmetic, f, partial, general):
        self.arithmetic, self.f, self.partial, self.general = arithmetic, f, partial, general

    def call(self, *args):
        """f(x)."""
        cdef Recorder m = self.arithmetic
        cdef int64_t i, o
        cdef double re, im
        if len(args) != 1 or not PyComplex_CheckExact(args[0]):
            return self.general(*args)
        x = args[0]
        i = m._index_of(x)
        if i < 0 or not m._has_parts(x, i):
            return self.general(x)
        z = self.f(x)
        if not PyComplex_CheckExact(z):
            return self.general(x)
        slope = self.partial(cmath, x, z)
        if not parts_of(slope, &re, &im):
            return self.general(x)
        o = m._file_complex(z)
        m.tape.push_complex(o, i, OF_COMPLEX, re, im)
        return z
