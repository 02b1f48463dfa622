"""scipy.fft and scipy.fftpack: lengths, axes, norms, kinds."""

import numpy as np
from scipy import fft, fftpack
from tests.scipy.sweep.harness import Table

TABLE = Table(fft, "scipy.fft")
OLD = Table(fftpack, "scipy.fftpack")
add, each = TABLE.add, TABLE.each
X = np.cos(1.0 + np.arange(24.0) ** 1.3).reshape(4, 6)
FORMS = ("strided", "reversed", "float32", "complex")
REAL = FORMS[:3]

each("fft ifft fft2 ifft2 fftn ifftn hfft irfft irfft2 irfftn hfft2 hfftn", lambda f, x: f(x), X, forms=FORMS)
each("rfft ihfft rfft2 rfftn ihfft2 ihfftn dct idct dst idst dctn idctn dstn idstn", lambda f, x: f(x), X, forms=REAL)
each("fft ifft rfft irfft hfft ihfft dct idst", lambda f, x: f(x, n=5, axis=0, norm="ortho"), X, label="n", forms=())
each("fft rfft irfft dct dst", lambda f, x: f(x, n=9, norm="forward"), X, label="padded", forms=())
for kind in (1, 3, 4):
    each("dct dst dctn idstn", lambda f, x, kind=kind: f(x, type=kind), X, label=f"type {kind}", forms=())
each("fftn irfftn", lambda f, x: f(x, axes=(1, 0), s=(3, 5)), X, label="axes", forms=())
each("fftshift ifftshift", lambda f, x: f(x), X)
each("fftfreq rfftfreq", lambda f, x: f(6, x[0, 0]), X, forms=(), constant=True)
each("fht ifht", lambda f, x: f(x[0], 0.1, 0.3 + 0.1 * x[1, 0]), X, forms=())
add("fhtoffset", lambda f, x: f(0.1, 0.3) * x, X, constant=True)
old = OLD.each
old("fft ifft fft2 ifft2 fftn ifftn rfft irfft dct idct dst idst dctn idctn dstn idstn", lambda f, x: f(x), X, forms=REAL)
old("diff hilbert ihilbert shift tilbert itilbert", lambda f, x: f(x[0]) if f.__name__ in ("diff", "hilbert", "ihilbert") else f(x[0], 0.7), X, forms=())
old("cs_diff sc_diff ss_diff cc_diff", lambda f, x: f(x[0] - x[0].mean(), 0.4, 0.7), X, forms=())
old("fftshift ifftshift", lambda f, x: f(x), X, forms=())
TABLES = (TABLE, OLD)
