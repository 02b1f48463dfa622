"""Small programs with the standard library, as people write them: each against its closed form, or refused."""

import abc
import argparse
import array
import ast
import asyncio
import bisect
import cmath
import collections
import concurrent.futures
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import graphlib
import hashlib
import heapq
import inspect
import io
import itertools
import json
import logging
import math
import numbers
import operator
import pathlib
import pickle
import pprint
import random
import re
import reprlib
import sched
import secrets
import statistics
import string
import struct
import textwrap
import threading
import time
import timeit
import traceback
import types
import typing
import unittest.mock
import urllib.parse
import weakref

import numpy as np
import pytest

from plaingrad import grad
from plaingrad.errors import PlaingradError

X = 1.7
CASES = []
REFUSED = []


def case(name, f, slope):
    """A program and its derivative at X."""
    CASES.append(pytest.param(f, slope, id=name))


def refused(name, f):
    """A program whose derivative would be lost in C code or in text."""
    REFUSED.append(pytest.param(f, id=name))


def slope_of(f, h=1e-3):
    """The derivative of f at X by differences of fourth order, for programs without a short closed form."""
    return (8 * (f(X + h) - f(X - h)) - (f(X + 2 * h) - f(X - 2 * h))) / (12 * h)

@dataclasses.dataclass(order=True, frozen=True)
class D:
    a: float
    b: float = 2.0
    c: list = dataclasses.field(default_factory=list)
class E(enum.Enum):
    A = 1.5
    B = 2
class Sl:
    __slots__=('a','b')
    def __init__(self,a): self.a=a
case('dc', lambda x: (lambda d: d.a*d.b + dataclasses.replace(d,a=x*x).a + dataclasses.astuple(d)[0] + dataclasses.asdict(d)['a'])(D(x)), 2+3.4+2)
case('dc order', lambda x: max(D(x),D(2*x)).a + sorted([D(3*x),D(x)])[0].a, 3)
case('enum', lambda x: x*E.A.value*E(2).value, 3.0)
case('slots', lambda x: (lambda s: setattr(s,'b',x) or s.a*s.b)(Sl(x)), 3.4)
case('getattr default', lambda x: getattr(Sl(x),'zz',x), 1)
case('td', lambda x: x*datetime.timedelta(seconds=3).total_seconds(), 3)
case('time', lambda x: x*(time.perf_counter()>0), 1)
case('sleep', lambda x: (time.sleep(x*1e-6),x)[1], 1)
case('thread', lambda x: (lambda r: (lambda th: (th.start(), th.join(), r[0])[2])(threading.Thread(target=lambda: r.append(x*x))))([]), 3.4)
def pool(x):
    with concurrent.futures.ThreadPoolExecutor(2) as p:
        return sum(p.map(lambda v: v*x, [x, 2.0])) + p.submit(lambda v: v*v, x).result()
case('pool', pool, 3.4+2+3.4)
def aio(x):
    async def f(v):
        await asyncio.sleep(0)
        return v*x
    async def main():
        return sum(await asyncio.gather(f(x), f(2.0)))
    return asyncio.run(main())
case('asyncio', aio, 3.4+2)
def ctx(x):
    c = __import__('contextvars').copy_context()
    return c.run(lambda v: v*x, x)
case('ctx', ctx, 3.4)
def es(x):
    with contextlib.ExitStack() as s:
        r=[]
        s.callback(lambda: r.append(x))
        v = s.enter_context(contextlib.nullcontext(x*x))
    return v*r[0]
case('exitstack', es, 3*1.7**2)
@contextlib.contextmanager
def cm(v):
    yield v*v
def usecm(x):
    with cm(x) as y: return y
case('cm', usecm, 3.4)
def cp(x):
    class A:
        @functools.cached_property
        def v(self): return x*x
        @property
        def w(self): return x
        @classmethod
        def k(cls, z): return z*x
        @staticmethod
        def s(z): return z*x
    a=A(); return a.v*a.v*a.w + A.k(2.0)+a.s(3.0)
case('cachedprop', cp, 5*1.7**4+5)
@functools.lru_cache(None)
def fib(n, x): return x if n<2 else fib(n-1,x)+fib(n-2,x)
case('lru', lambda x: fib(10,x), 89)
case('inspect', lambda x: x*len(inspect.signature(lambda a,b:0).parameters), 2)
case('dict comp', lambda x: {k: v*x for k,v in zip('ab',(1.0,x))}['b'], 3.4)
case('dict kw', lambda x: dict(a=x, **{'b':x})['b']+ dict([('q',x)], z=x)['z'], 2)
case('dict arr', lambda x: dict(a=np.array([x,1.0]))['a'][0], 1)
case('dict update kw', lambda x: (lambda d:(d.update(a=x, b=np.array([x])), d['a']*d['b'][0])[1])({}), 3.4)
case('setdefault arr', lambda x: {}.setdefault('a', np.array([x]))[0], 1)
case('list mul', lambda x: sum([x]*3)+sum((x,)*2), 5)
case('slice assign', lambda x: (lambda a: (a.__setitem__(slice(0,1),[x,x]), sum(a))[1])([1.0,2.0]), 2)
case('insort', lambda x: (lambda a:(bisect.insort(a,x,key=lambda v:-v),a[0])[1])([1.0]), 1)
case('nsmallest', lambda x: sum(heapq.nsmallest(2,[x,3*x,2*x]))+sum(heapq.nlargest(1,[x,2*x],key=lambda v:v)), 5)
case('heap merge', lambda x: list(heapq.merge([x],[0.5*x]))[0], .5)
case('heap obj', lambda x: (lambda h:(heapq.heappush(h,D(2*x)),heapq.heappush(h,D(x)),heapq.heappop(h).a)[2])([]), 1)
case('minmax dict', lambda x: max({'a':x,'b':2*x}.items(), key=lambda kv: kv[1])[1], 2)
case('max defaultkey', lambda x: max('a','bb',key=len).__len__()*x, 2)
case('sorted tup', lambda x: sorted([(2,x),(1,2*x)])[0][1], 2)
case('sorted stable rev', lambda x: sorted([x,2*x],reverse=True)[0], 2)
case('min nan', lambda x: min(x, float('nan')), 1)
case('str key', lambda x: {f'{x:.1f}': x}[f'{x:.1f}'], 1)
case('float keys', lambda x: {x: x*x}[x], 3.4)
case('set', lambda x: sum({x,2*x}-{1.0}), 3)
case('frozenset', lambda x: sum(frozenset([x])|{2*x}), 3)
case('any gen', lambda x: x if any(v>1 for v in [x]) else 0.0, 1)
case('zip strict', lambda x: sum(a*b for a,b in zip([x],[x],strict=True)), 3.4)
case('zip star', lambda x: sum(list(zip(*[(x,1),(2*x,2)]))[0]), 3)
case('map 2', lambda x: sum(map(operator.mul,[x,2],[x,x])), 3.4+2)
case('map pow', lambda x: sum(map(pow,[x],[2])), 3.4)
case('map math', lambda x: sum(map(math.sin,[x])), math.cos(1.7))
case('map ufunc', lambda x: sum(map(np.sin,[x])), math.cos(1.7))
case('map float', lambda x: sum(map(float,[x, np.float64(x)])), 2)
case('map abs', lambda x: sum(map(abs,[-x])), 1)
case('map method', lambda x: sum(map(x.__mul__,[x])), 3.4)
case('map str', lambda x: len(list(map(str,[x])))*x, 1)
case('reduce lists', lambda x: functools.reduce(operator.add, [[x],[x*x]])[1], 3.4)
case('reduce max', lambda x: functools.reduce(max, [x, 2*x]), 2)
case('reduce iconcat', lambda x: functools.reduce(operator.iconcat, [[x],[x*x]], [])[1], 3.4)
case('starmap', lambda x: sum(itertools.starmap(pow,[(x,2)])), 3.4)
case('accum max', lambda x: list(itertools.accumulate([x,2*x,x],max))[2], 2)
case('accum lists', lambda x: list(itertools.accumulate([[x],[x]]))[1][1], 1)
case('tee arr', lambda x: sum(next(i) for i in itertools.tee(np.array([x,2*x]))), 2)
case('chain arr', lambda x: sum(itertools.chain(np.array([x]),[x])), 2)
case('islice arr', lambda x: sum(itertools.islice(np.array([x,2*x,3*x]),1,3)), 5)
case('repeat arr', lambda x: sum(a[0] for a in itertools.repeat(np.array([x]),3)), 3)
case('product rep', lambda x: sum(a*b for a,b in itertools.product([x,1.0],repeat=2)), 2*1.7*1+2)
case('zip_longest', lambda x: sum(a*b for a,b in itertools.zip_longest([x],[x,2.0],fillvalue=x)), 3.4+2)
case('groupby arr', lambda x: sum(k for k,_ in itertools.groupby(np.array([x,x]))), 1)
case('Counter sub', lambda x: (collections.Counter(a=2*x)-collections.Counter(a=x))['a']+sum(collections.Counter(a=x).values())+collections.Counter(a=x).total(), 3)
case('Counter elems', lambda x: collections.Counter([1,1,2])[1]*x, 2)
case('OrderedDict kw', lambda x: collections.OrderedDict(a=x)['a'], 1)
case('deque idx', lambda x: (lambda d:(d.__setitem__(0,x), d.insert(0,2*x), d.remove(x), d[0]+d.copy()[0])[3])(collections.deque([1.0])), 4)
case('namedtuple', lambda x: collections.namedtuple('P','a b',defaults=[2.0])(x).a, 1)
case('typed nt', lambda x: typing.NamedTuple('P',[('a',float)])(x).a, 1)
case('UserDict', lambda x: collections.UserDict({'a':x})['a'], 1)
case('fmean w', lambda x: statistics.fmean([x,x],[1,2]), 1)
case('gm', lambda x: statistics.geometric_mean([x,x*x,1.0]), 1)
case('median_grouped', lambda x: statistics.median_grouped([x,x+1,x+2,x+2],1), 1)
case('quant', lambda x: sum(statistics.quantiles([x,2*x,4*x],n=4,method='inclusive')), 1.5+2+3)
case('corr', lambda x: statistics.correlation([x,2.0,3.0],[1.0,2*x,3.0]), slope_of(lambda x: statistics.correlation([x,2.0,3.0],[1.0,2*x,3.0])), )
case('linreg', lambda x: statistics.linear_regression([1.0,x,3.0],[1.0,2*x,3.0]).intercept, slope_of(lambda x: statistics.linear_regression([1.0,x,3.0],[1.0,2*x,3.0]).intercept))
nd=statistics.NormalDist
def ndf(x):
    a=nd(x,1+x); b=nd(0.0,1.0)
    return a.pdf(0.3)+a.cdf(0.3)+a.inv_cdf(0.3)+a.overlap(b)+(a+b).mean+(a*2).stdev+a.variance+sum(a.quantiles(4))+a.zscore(2.0)+(a-1).mean+(-a).mean+(a/2).stdev
case('nd', ndf, slope_of(ndf))
case('nd samples', lambda x: sum(nd(x,2*x).samples(3,seed=1)), (sum(nd(1.8,3.6).samples(3,seed=1))-sum(nd(1.6,3.2).samples(3,seed=1)))/.2)
case('nd eq', lambda x: nd(x,1.0).mean if nd(x,1)==nd(x,1) and hash(nd(x,1)) else 0., 1)
for dist,args in [('betavariate',(2,3)),('gammavariate',(2,3)),('expovariate',(2,)),('gauss',(1,2)),('lognormvariate',(0,1)),('normalvariate',(0,1)),('paretovariate',(2,)),('triangular',(0,4,2)),('uniform',(0,4)),('vonmisesvariate',(0.5,2)),('weibullvariate',(1,2))]:
    def f(x, dist=dist, args=args):
        return getattr(random.Random(5), dist)(*[a*x/1.7 for a in args])
    case('random.'+dist, f, slope_of(f))
case('exc', lambda x: (lambda: [e for e in [ValueError(x)]][0].args[0])(), 1)
def excgroup(x):
    try: raise ExceptionGroup('a',[ValueError(x),KeyError(2)])
    except* ValueError as g: r=g.exceptions[0].args[0]*x
    except* KeyError: pass
    return r
case('excgroup', excgroup, 3.4)
def stopit(x):
    def g():
        yield 1
        return x*x
    def h():
        r = yield from g()
        yield r
    return list(h())[1]
case('yieldfrom', stopit, 3.4)
case('string.Template', lambda x: len(string.Template('$a').substitute(a=x))*0+x, 1)
case('textfmt', lambda x: len('{0} {a}'.format(x,a=[x]))*0+x, 1)
case('logging', lambda x: (logging.getLogger('zzz').warning if False else logging.getLogger('zzz').info)('%s',x) or x, 1)
case('isinst', lambda x: x if isinstance(x,numbers.Real) and issubclass(type(x),float) and type(x) is float else 0., 1)
case('copy obj', lambda x: copy.copy(D(x)).a+copy.deepcopy(D(x,c=[x])).c[0], 2)
case('deepcopy memo', lambda x: copy.deepcopy({'a':(x,[x])})['a'][1][0], 1)
case('deepcopy arr', lambda x: copy.deepcopy(np.array([x]))[0]+copy.copy(np.array([x]))[0], 2)
case('uuid', lambda x: x*len(hashlib.md5(b'a').hexdigest()), 32)
case('round half', lambda x: round(x*10)/10+x, 1)
case('floor mod', lambda x: math.floor(x)+x%1+divmod(x,1)[1]+math.modf(x)[0], 3)
case('complex', lambda x: (complex(x,1)**2).real+abs(complex(x,1))+ (complex(1,x)*complex(x,1)).imag + (1/complex(x,1)).real, 3.4+1.7/abs(1.7+1j)+3.4+((-1/(1.7+1j)**2).real))
case('complex c', lambda x: (lambda z:(z*z.conjugate()).real + z.real*z.imag)(complex(x,2*x)), 2*5*1.7+4*1.7)
case('cmath all', lambda x: sum(f(complex(.3,x/10)) for f in (cmath.sin,cmath.cos,cmath.tan,cmath.exp,cmath.log,cmath.sqrt,cmath.asin,cmath.acos,cmath.atan,cmath.sinh,cmath.cosh,cmath.tanh,cmath.asinh,cmath.acosh,cmath.atanh,cmath.log10)).real, slope_of(lambda x: sum(f(complex(.3,x/10)) for f in (cmath.sin,cmath.cos,cmath.tan,cmath.exp,cmath.log,cmath.sqrt,cmath.asin,cmath.acos,cmath.atan,cmath.sinh,cmath.cosh,cmath.tanh,cmath.asinh,cmath.acosh,cmath.atanh,cmath.log10)).real))
case('np scalars', lambda x: np.float64(x)*2 + np.float64(x).item()+ np.float32(x)*0 + float(np.float64(x)**2) + np.sin(np.float64(x)) + abs(np.float64(-x)) + np.float64(x).real + +np.float64(x) + round(np.float64(x),1), 2+1+3.4+math.cos(1.7)+1+1+1)
case('np sum list', lambda x: np.sum([x,2*x])+np.add(x,[x,1.0])[0]+np.multiply([x,2.0],[x,x])[0]+np.maximum(x,[0.0,5.0])[0], 3+2+3.4+1)
case('np recip list', lambda x: np.reciprocal([x])[0], -1/1.7**2)
case('struct', lambda x: struct.pack('d', 1.0) and x, 1)
case('sumprod', lambda x: (math.sumprod([x,2.0],[x,x]) if hasattr(math,'sumprod') else x*x+2*x), 3.4+2)
case('fma', lambda x: (math.fma(x,x,x) if hasattr(math,'fma') else x*x+x), 4.4)
case('batched', lambda x: (sum(sum(b) for b in itertools.batched([x,x,x],2)) if hasattr(itertools,'batched') else 3*x), 3)
case('bool ops', lambda x: (x and 2*x) or 0.0, 2)
case('ifexp', lambda x: x if x else 0.0, 1)
case('walrus', lambda x: (y:=x*x)*y, 4*1.7**3)
case('int pow', lambda x: x**3 + x**-2 + 2**x + x**0.5, 3*1.7**2-2*1.7**-3+2**1.7*math.log(2)+.5*1.7**-.5)
case('matmul', lambda x: (np.array([x,1.0])@np.array([x,2.0])), 3.4)
case('setattr dyn', lambda x: (lambda o: (setattr(o,'q',x), o.q, delattr(o,'q'))[1])(types.SimpleNamespace()), 1)
case('vars', lambda x: vars(types.SimpleNamespace(a=x))['a'], 1)
case('type()', lambda x: type('A',(),{'v':x})().v, 1)
case('object.__setattr__', lambda x: (lambda o:(object.__setattr__(o,'q',x),o.q)[1])(types.SimpleNamespace()), 1)
case('operator neg list', lambda x: sum(map(operator.neg,[x])), -1)
case('methodcaller', lambda x: sum(map(operator.methodcaller('__mul__',2.0),[x])), 2)
case('attrgetter sort', lambda x: sorted([D(2*x),D(x)],key=operator.attrgetter('a'))[0].a, 1)
case('itemgetter arr', lambda x: operator.itemgetter(0)(np.array([x])), 1)
case('partial', lambda x: functools.partial(math.pow, x)(2), 3.4)
case('partialmethod', lambda x: type('A',(),{'f':lambda s,k,v:k*v,'g':functools.partialmethod(lambda s,k,v:k*v,x)})().g(x), 3.4)
case('total_ordering', lambda x: max([functools.total_ordering(type('A',(),{'__init__':lambda s,v:setattr(s,'v',v),'__lt__':lambda s,o:s.v<o.v,'__eq__':lambda s,o:s.v==o.v}))(x)]).v, 1)
case('wraps', lambda x: functools.wraps(abs)(lambda v:v*v)(x), 3.4)
case('re callback', lambda x: (lambda r:(re.sub('a',lambda m:(r.append(x),'b')[1],'aaa'),sum(r))[1])([]), 3)
case('iter sentinel', lambda x: sum(iter([x,2*x,None].__iter__().__next__,None)), 3)
case('bytes', lambda x: x*len(bytes(3)), 3)
case('range idx', lambda x: [x,2*x][range(5)[1]], 2)
case('slice obj', lambda x: sum([x,2*x,3*x][slice(1,None)]), 5)
C0 = __import__('contextvars').copy_context()
case('ctx before', lambda x: C0.run(lambda v: v*x, x), 3.4)
case('f.__call__', lambda x: (lambda v: v*v).__call__(x) + functools.partial(lambda a,b:a*b, x).__call__(x) + staticmethod(lambda v:v*v).__call__(x) + D.__call__(x).a, 3*3.4+1)
case('generic alias', lambda x: list[float]([x])[0] + dict[str,float](a=x)['a'], 2)
T_=typing.TypeVar('T_')
class G(typing.Generic[T_]):
    def __init__(self, v): self.v=v
case('typing generic', lambda x: G[float](x*x).v, 3.4)
case('__get__', lambda x: (lambda s, v: v*s.a).__get__(D(x))(x), 3.4)
case('property obj', lambda x: property(lambda s: s.a*s.a).fget(D(x)) + property(lambda s: s.a*s.a).__get__(D(x)), 6.8)
case('unpack', lambda x: (lambda a,*b,c: a*c+sum(b))(x,x,2.0,c=x), 3.4+1)
case('op add obj', lambda x: operator.add([x],[x*x])[1], 3.4)
case('min obj iter', lambda x: 1.0*min([[3*x],[2*x]])[0], 2)
case('reduce init arr', lambda x: functools.reduce(lambda a,b: a+b, [x,2*x], np.array([x,1.0]))[0], 4)
def sender(x):
    def g():
        v = yield 0
        while True: v = yield v*v
    it=g(); next(it)
    return it.send(x)+it.send(2*x)
case('send', sender, 3.4+8*1.7)
case('Decimal all', lambda x: float(sum([decimal.Decimal(x)**2, decimal.Decimal(x)%1, -decimal.Decimal(x), abs(decimal.Decimal(x)), max(decimal.Decimal(x),1), decimal.Decimal(x).quantize(decimal.Decimal('0.1')), decimal.Decimal(x).ln(), divmod(decimal.Decimal(x),1)[1]])), 3.4+1-1+1+1+1/1.7+1)
case('Decimal sorted', lambda x: float(sorted([decimal.Decimal(x)*2, decimal.Decimal(x)])[0]), 1)
case('Decimal statistics', lambda x: float(statistics.mean([decimal.Decimal(x), decimal.Decimal(x)*2]) + statistics.stdev([decimal.Decimal(x), decimal.Decimal(x)*3])), 1.5+2**.5)
case('Decimal mix', lambda x: x*float(decimal.Decimal(x)+2), 2*1.7+2)
case('Fraction stat', lambda x: float(statistics.pvariance([fractions.Fraction(x), fractions.Fraction(x)*3])), 3.4)
case('frac cmp', lambda x: float(max(fractions.Fraction(x), fractions.Fraction(1))) if fractions.Fraction(x)<2 else 0., 1)
case('frac hash', lambda x: float({fractions.Fraction(x): fractions.Fraction(x)}[fractions.Fraction(x)]), 1)
case('frac mod', lambda x: float(fractions.Fraction(x)%1 + divmod(fractions.Fraction(x),1)[1]), 2)
case('frac pow', lambda x: float(fractions.Fraction(x)**3 + fractions.Fraction(x)**0.5 + 2**fractions.Fraction(x)), 3*1.7**2+.5*1.7**-.5+2**1.7*math.log(2))
case('frac repr', lambda x: len(repr(fractions.Fraction(x)))*0+x, 1)
case('dec repr', lambda x: len(repr(decimal.Decimal(x)))*0+x, 1)
case('sum float32', lambda x: float(sum(np.array([x,x],np.float32))), 2)
case('np.vectorize', lambda x: np.vectorize(lambda v: v*v)(np.array([x]))[0], 3.4)
case('obj array', lambda x: np.array([x,D(x)],object)[0], 1)
case('sorted key arr', lambda x: sorted([0,1], key=np.array([2*x,x]).__getitem__)[0]*x, 1)
case('str.join map', lambda x: x*len(','.join(map(str,[x]))), 3)
case('statistics on array', lambda x: statistics.mean(np.array([x,2*x]))+statistics.variance(np.array([x,3*x]))+statistics.fmean(np.array([x])), 1.5+4*1.7+1)
case('nd from samples', lambda x: statistics.NormalDist.from_samples([x,2*x,4*x]).pdf(1.0), slope_of(lambda x: statistics.NormalDist.from_samples([x,2*x,4*x]).pdf(1.0)))
if hasattr(statistics,'kde'):
    for k in ('normal','logistic','epanechnikov'):
        g=lambda x,k=k: statistics.kde([x,2.0,3*x],h=x,kernel=k)(1.5)
        case('kde '+k, g, slope_of(g))

td=datetime.timedelta
refused('timedelta(x)', lambda x: td(seconds=x).total_seconds())
refused('timedelta*x', lambda x: (td(seconds=3)*x).total_seconds())
case('x/td', lambda x: x*(td(seconds=3)/td(seconds=2)), 1.5)
refused('fromtimestamp', lambda x: datetime.datetime.fromtimestamp(x*1e9).timestamp())
case('colorsys', lambda x: __import__('colorsys').rgb_to_hsv(x/2,0.3,0.1)[2]+__import__('colorsys').hsv_to_rgb(0.3,0.2,x)[0], 0.5+0.84)
refused('csv', lambda x: (lambda s:(csv.writer(s).writerow([x]), float(next(csv.reader(io.StringIO(s.getvalue())))[0]))[1])(io.StringIO()))
case('pprint', lambda x: len(pprint.pformat([x]))*0+x, 1)
case('reprlib', lambda x: len(reprlib.repr([x]))*0+x, 1)
case('json dumps only', lambda x: len(json.dumps({'a':x}))*0+x, 1)
case('json dump file', lambda x: (json.dump({'a':x}, io.StringIO()), x)[1], 1)
refused('pickle only', lambda x: len(pickle.dumps(x))*0+x)
case('logrec', lambda x: (logging.LogRecord('a',10,'p',1,'%f',(x,),None).getMessage(), x)[1], 1)
case('sched', lambda x: (lambda s,r:(s.enter(0,1,lambda:r.append(x*x)), s.run(), r[0])[2])(sched.scheduler(time.time,lambda d:None),[]), 3.4)
case('graphlib', lambda x: sum({'a':x,'b':x*x}[k] for k in graphlib.TopologicalSorter({'a':{'b'}}).static_order()), 1+3.4)
case('mock', lambda x: unittest.mock.Mock(return_value=x)(), 1)
case('argparse ns', lambda x: argparse.Namespace(a=x).a, 1)
case('enum flag', lambda x: x*enum.IntFlag('F','A B').B.value, 2)
case('intenum mul', lambda x: x*enum.IntEnum('E','A B').B, 2)
case('suppress', lambda x: (lambda: x)() if contextlib.suppress(ValueError) else 0, 1)
def tb(x):
    try: raise ValueError(x)
    except ValueError as e:
        s=traceback.format_exc(); return e.args[0]*len(s)*0+x*x
case('traceback', tb, 3.4)
case('inspect', lambda x: inspect.currentframe().f_locals['x']*x, 3.4)
case('stack', lambda x: len(inspect.stack())*0+x, 1)
case('weakkeydict', lambda x: (lambda k,d:(d.__setitem__(k,x),d[k])[1])(types.SimpleNamespace.__new__(type('K',(),{})) if False else type('K',(),{})(), weakref.WeakKeyDictionary()), 1)
case('weakvaldict', lambda x: (lambda o,d:(d.__setitem__(1,o),d[1].v)[1])(type('K',(),{'v':x})(), weakref.WeakValueDictionary()), 1)
case('finalize', lambda x: (weakref.finalize(type('K',(),{})(), lambda: None), x)[1], 1)
refused('memoryview', lambda x: memoryview(array.array('d',[x]))[0])
refused('ctypes', lambda x: __import__('ctypes').c_double(x).value)
refused('mmap/bytes', lambda x: float.fromhex(x.hex()))
case('int.from', lambda x: int(x)*x, 1)
case('slots dc', lambda x: dataclasses.make_dataclass('D',[('a',float)],slots=True)(x).a, 1)
case('dc eq hash', lambda x: {dataclasses.make_dataclass('D',[('a',float)],frozen=True)(x):x}.popitem()[0].a, 1)
case('dc fields', lambda x: sum(getattr(d,f.name) for d in [dataclasses.make_dataclass('D',[('a',float)])(x)] for f in dataclasses.fields(d)), 1)
case('nt ops', lambda x: sum(collections.namedtuple('P','a b')(x,2*x)), 3)
case('typeddict', lambda x: typing.TypedDict('T',{'a':float})(a=x)['a'], 1)
case('protocol', lambda x: x if isinstance(x, typing.SupportsFloat) else 0., 1)
case('numbers', lambda x: x if isinstance(x, numbers.Number) and isinstance(2, numbers.Integral) else 0., 1)
case('abc', lambda x: abc.ABCMeta('A',(),{'f':lambda s: x*x})().f(), 3.4)
case('singledispatchmethod', lambda x: functools.singledispatch(lambda v: v*x)(x), 3.4)
def sd(x):
    @functools.singledispatch
    def f(v): return 0.0
    @f.register
    def _(v: float): return v*v
    @f.register(list)
    def _(v): return f(v[0])
    return f([x])
case('singledispatch reg', sd, 3.4)
def cl(x):
    @contextlib.contextmanager
    def cm():
        try: yield x
        finally: pass
    with contextlib.ExitStack() as st: return st.enter_context(cm())*x
case('exitstack', cl, 3.4)
case('chainmap', lambda x: collections.ChainMap({},{'a':x})['a'], 1)
case('bisect key', lambda x: bisect.bisect([1.,2.],x,key=lambda v:v)*x, 1)
case('heapq key', lambda x: heapq.nsmallest(1,[x,2*x],key=lambda v:-v)[0], 2)
case('heapreplace', lambda x: (lambda h:(heapq.heapify(h),heapq.heapreplace(h,x),heapq.heappushpop(h,0.1*x),sum(h))[3])([5.,1.]), 1)
case('urllib', lambda x: len(urllib.parse.urlencode({'a':x}))*0+x, 1)
case('secrets', lambda x: x*len(secrets.token_bytes(2)), 2)
case('timeit', lambda x: (timeit.timeit(lambda: x*x, number=1), x)[1], 1)
case('random class', lambda x: type('R',(random.Random,),{'random':lambda s: x/2})().uniform(0,1), .5)
case('SystemRandom', lambda x: random.SystemRandom().uniform(x,x), 1)
case('shuffle', lambda x: (lambda a:(random.Random(1).shuffle(a),sum(a))[1])([x,2*x,3*x]), 6)
case('fractions gcd', lambda x: float(fractions.Fraction(x)+fractions.Fraction(1,3)), 1)
case('round dec', lambda x: float(round(decimal.Decimal(x),2))+x, 1)
case('statistics fsum gen', lambda x: statistics.fmean(v for v in [x,2*x]), 1.5)
case('math all', lambda x: math.exp2(x) + math.cbrt(x) if hasattr(math,'exp2') else x, (2**1.7*math.log(2)+1/3*1.7**(-2/3)))
case('accumulate init', lambda x: list(itertools.accumulate([1.,2.],lambda a,b:a*b+x,initial=x))[-1], 1*2+2+1)
case('deque maxlen', lambda x: sum(collections.deque([x,2*x,3*x],maxlen=2)), 5)
case('dict views', lambda x: sum(v for k,v in sorted({'b':x,'a':2*x}.items())), 3)
case('dict |=', lambda x: (lambda d: [d.__ior__({'a':x}), d['a']][1])({}), 1)
case('set ops', lambda x: sum({x,1.0} & {x}), 1)
case('slice.indices', lambda x: [x,2*x][slice(0,2).indices(2)[0]], 1)
case('str.format attr', lambda x: '{0.real}'.format(x) and x, 1)
case('print', lambda x: (print(x, file=io.StringIO()), x)[1], 1)
case('textwrap', lambda x: len(textwrap.fill(str(x)))*0+x, 1)
case('locals', lambda x: locals()['x']*x, 3.4)
case('globals', lambda x: globals()['math'].sin(x), math.cos(1.7))
case('eval', lambda x: eval('x*x'), 3.4)
case('exec', lambda x: (lambda d: (exec('y=x*x', d), d['y'])[1])({'x':x}), 3.4)
case('compile', lambda x: eval(compile('x*x','','eval')), 3.4)
case('import', lambda x: __import__('math').sin(x), math.cos(1.7))
case('type call', lambda x: type(x)(x*x), 3.4)
case('x.__class__', lambda x: x.__class__(x), 1)
case('super', lambda x: type('B',(type('A',(),{'f':lambda s,v:v*v}),),{'f':lambda s,v: super(type(s),s).f(v)})().f(x), 3.4)
case('getattr dyn', lambda x: getattr(math,'sin')(x)+getattr(x,'real')+getattr(x,'__mul__')(2.0), math.cos(1.7)+1+2)
case('operator.methodcaller', lambda x: operator.methodcaller('conjugate')(x), 1)
case('vars set', lambda x: (lambda o: (vars(o).__setitem__('a',x), o.a)[1])(types.SimpleNamespace()), 1)
case('__dict__ update', lambda x: (lambda o: (o.__dict__.update(a=x), o.a)[1])(types.SimpleNamespace()), 1)
case('nonlocal', lambda x: (lambda: [y:=x, y*y][1])(), 3.4)
case('del', lambda x: (lambda a: (a.__delitem__(0), a[0])[1])([1.0,x]), 1)
case('mapproxy', lambda x: types.MappingProxyType({'a':x})['a']+list(types.MappingProxyType({'a':x}).values())[0], 2)
refused('array', lambda x: array.array('d',[x])[0])
case('frozen set', lambda x: object.__setattr__(o:=types.SimpleNamespace(),'a',x) or o.a, 1)
case('thread timer', lambda x: (lambda r:(lambda tm:(tm.start(),tm.join(),r[0])[2])(threading.Timer(0.001,lambda: r.append(x*x))))([]), 3.4)
case('executor map', lambda x: sum(concurrent.futures.ThreadPoolExecutor(1).map(lambda v: v*v,[x])), 3.4)
case('pathlib', lambda x: x*len(pathlib.Path('a').parts), 1)
case('ast', lambda x: eval(compile(ast.parse('x*x',mode='eval'),'','eval')), 3.4)

@pytest.mark.parametrize("f, slope", CASES)
def test_the_gradient_of_a_program(f, slope):
    assert grad(f)(X) == pytest.approx(slope, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("f", REFUSED)
def test_a_number_that_would_lose_its_derivative_is_refused(f):
    with pytest.raises(PlaingradError):
        grad(f)(X)
