"""Lists inside of programs: every one against the plain tier and differences, or refused.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import re

import numpy as np
import pytest

import plaingrad
from tests.native.programs.entries import entering
from tests.native.uncompiled import check, gradient

numba = pytest.importorskip("numba")

V = np.array([0.3, -0.8, 1.7, 0.6])

PROGRAMS = {}
program = entering(PROGRAMS)


@program(V)
def appending(v):
    l=[v[0]]
    for i in range(3):
        l.append(l[i]*v[i]+l[-1])
    return l[3]*l[1]
@program(V)
def iteration_over_a_comprehension(v):
    l=[e*e for e in v]
    s=0.0
    for e in l: s+=e*v[0]
    return s+l[2]*len(l)
@program(V)
def elements_assigned(v):
    l=[0.0]*4
    for i in range(4): l[i]=v[i]*v[i-1]
    l[0]+=l[1]
    return l[0]*l[3]
@program(V)
def popping(v):
    l=[v[0],v[1]*v[2]]
    l.append(v[3])
    x=l.pop()
    y=l.pop()
    return x*y+l[0]
@program(V)
def the_sum_of_a_list(v):
    l=[e*2 for e in v]
    return sum(l)*v[0]
@program(V)
def an_array_of_a_list(v):
    l=[]
    for e in v:
        if e>0: l.append(e*e)
    a=np.array(l)
    return (a*a).sum()
@program(V)
def sorting_and_extremes(v):
    l=[e*e for e in v]
    l.sort()
    return l[3]*max(l)*min(l)
@program(V)
def a_list_backwards(v):
    s=0.
    l=[e*e for e in v]
    for e in l[::-1]: s=s*v[0]+e
    return s
@program(V,3)
def a_list_of_tuples_that_tells_places(v,n):
    l=[(0,1)]
    s=1.0
    for _ in range(n):
        k=l[-1][0]
        s=s*v[k]
        l.append((k+1,0))
    return s
@program(V,3)
def a_list_of_places(v,n):
    l=[0]
    s=1.0
    for _ in range(n):
        k=l[-1]
        s=s*v[k]*len(l)
        l.append(k+1)
    return s
@program(V,3)
def a_stack(v,n):
    todo=[1.0,v[0]]
    s=v[1]
    while len(todo)>0:
        x=todo.pop()
        s=s*x+v[2]
        if len(todo)<n and s*s<0.6:
            todo.append(s*v[3]); todo.append(x*0.5)
    return s
@program(V,9)
def a_list_that_outgrows_its_room(v,n):
    l=[v[0]]
    for i in range(n):
        l.append(l[-1]*v[i%4]+1.0)
        if i%3==2: l[i//2]=l[i]*v[1]
    s=0.0
    for x in l: s+=x*x
    return s
@program(V,4)
def a_list_made_in_every_iteration(v,n):
    s=0.0
    for i in range(n):
        l=[v[0]*i]
        for j in range(i): l.append(l[j]*v[j])
        s+=sum(l)*l[-1]
    return s
@program(V,4)
def a_list_that_grows_until_the_loop_is_left(v,n):
    l=[v[0]]
    for i in range(n*3):
        l.append(l[i]*v[i%4])
        if i==5: break
        l.append(v[1])
        l.pop()
    return l[-1]*v[0]+len(l)*l[2]
@program(V,4)
def a_comprehension_of_the_last_one(v,n):
    state=[x*1.0 for x in v]
    for _ in range(n):
        state=[0.5*x*x+v[0] for x in state]
    return sum(state)
@program(V)
def lists_joined_repeated_cut_and_copied(v):
    a=[v[0],v[1]]; b=[v[2]]*3
    c=a+b
    c.extend(a)
    d=c[1:4]
    e=c[::-1]
    f=c.copy()
    f[0]=5.0*v[3]
    return sum(c)*d[0]+e[0]*f[0]+c[0]*min(c)+len(e)
@program(V)
def a_comprehension_with_a_condition(v):
    l=[x*x for x in v if x>0]
    return np.array(l).sum()*l[0]
def fill(l,x):
    l.append(x); l.append(x*x)
@program(V)
def a_list_that_a_callee_lengthens(v):
    l=[v[0]]
    fill(l,v[1])
    return l[2]*l[1]
def makes(v):
    return [e*2 for e in v]
@program(V)
def a_list_that_a_callee_makes(v):
    l=makes(v)
    l.append(1.0)
    return l[2]*l[1]
@program(V)
def a_return_from_the_loop_that_appends(v):
    l=[]
    for x in v:
        l.append(x*x)
        if x>1: return l[-1]*l[0]
    return l[0]
@program(V+1j)
def a_list_of_complex_numbers(v):
    l=[z*z for z in v]
    l.append(2.0)
    return (l[0]*l[1]*l[-1]).real


@program(V)
def lengthened_in_place_under_two_names(v):
    l=[v[0]]
    m=l
    l+=[v[1]*v[2],v[3]]
    return m[1]*m[2]*len(m)
@program(V)
def lengthened_in_place_in_loops_and_branches(v):
    l=[v[0]]
    for i in range(4):
        if v[i]>0.0: l+=[v[i]*l[-1]]
        l+=[v[3]]
    return l[-2]*len(l)+l[2]
@program(V)
def one_made_in_every_iteration_carried_over_to_the_next(v):
    old=[v[0],v[1]]
    s=0.0
    for i in range(3):
        new=[v[i]*s,v[3]]
        new+=[old[1]*v[2]]
        s+=old[0]*new[2]+old[-1]
        old=new
    return s
@program(V)
def inserted_and_turned_around(v):
    l=[v[0],v[1]*v[2]]
    l.insert(0,v[3]); l.insert(-1,v[0]*v[3]); l.insert(9,v[1]); l.insert(-9,v[2])
    l.reverse()
    s=0.0
    for x in l: s=s*v[0]+x
    return s
@program(V)
def popped_at_a_place(v):
    l=[v[0],v[1],v[2],v[3],v[0]*v[1]]
    s=l.pop(0)*l.pop(-2)
    l.pop(1)
    for x in l: s=s*v[2]+x
    return s*len(l)
@program(V)
def a_list_of_tuples(v):
    l=[(v[0],v[1])]
    l.append((v[2],v[3]))
    a,b=l[1]
    return a*b*l[0][0]
@program(V)
def changed_while_iterated_over(v):
    l=[v[0]]
    for x in l:
        if len(l)<4: l.append(x*v[1])
    return sum(l)
@program(V)
def the_truth_of_a_list(v):
    l=[v[0],v[1],v[2]]
    s=v[3]
    while l: s=s*l.pop()+v[0]
    if not l: s*=v[1]
    return s
@program(V)
def the_truth_of_a_list_of_whole_numbers_that_is_emptied_later(v):
    l=[(1,2)]
    s=v[0]
    if l: s=s*s*v[1]
    l.pop()
    return s*len(l)+s
@program(V)
def as_many_iterations_as_a_list_has_elements_that_grows(v):
    l=[(1,2)]
    s=v[3]
    for i in range(40):
        for j in range(len(l)): s=np.sin(s+v[0])
        l.append((i,i))
    return s


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_goes_through_a_list_has_its_derivative(name):
    f, args = PROGRAMS[name]
    check(f, *args)


def test_a_list_that_grows_is_differentiated_when_compiled_too():
    f, args = PROGRAMS["a_stack"]
    found = plaingrad.grad(f, tier="native")(*args)
    np.testing.assert_allclose(found, plaingrad.grad(f, tier="plain")(*args), rtol=1e-13)


def of_two_lists_one_is_taken_and_changed(v):
    l=[v[0],v[1]]
    l.clear()
    l.append(v[2])
    if v[0]>0:
        l.append(v[3])
    else:
        l=[1.0]
    return l[-1]*l[0]
def a_list_of_lists(v):
    l=[[x*y for x in v] for y in v]
    return l[0][1]*l[2][1]
def a_list_repeated_in_place(v):
    l=[v[0],v[1]]
    m=l
    l*=2
    return m[2]*m[3]
def lists_exchanged_and_changed(v):
    l=[v[0]]
    m=[v[1]]
    for i in range(3):
        l,m=m,l
        l.append(v[i])
    return sum(l)*len(m)


REFUSED = (
    of_two_lists_one_is_taken_and_changed,
    lists_exchanged_and_changed,
    a_list_of_lists,
    a_list_repeated_in_place,
)


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_lists_of_other_kinds_are_refused_with_the_line(f):
    first = f.__code__.co_firstlineno
    with pytest.raises(plaingrad.NativeError, match=r"test_lists.py") as refused:
        plaingrad.grad(f, tier="native")(V.copy())
    lines = {int(n) for n in re.findall(r"test_lists.py:(\d+)", str(refused.value))}
    assert lines & set(range(first, first + 9)), str(refused.value)


def beyond(v):
    found = [v[0]]
    return found[1]


def below(v):
    found = [v[0]]
    return found[-2]


def popped_from_nothing(v):
    found = [v[0]]
    found.pop()
    return found.pop()


@pytest.mark.parametrize("f", [beyond, below, popped_from_nothing], ids=lambda f: f.__name__)
def test_what_is_not_there_raises_as_in_a_list(f):
    with pytest.raises(IndexError):
        gradient(f, (V,))
