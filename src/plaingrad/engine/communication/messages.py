"""Communication between the ranks of an MPI program at a level: as ever one level out, and recorded as an exchange.

Every communication of a differentiated function is recorded, on every rank that takes part, whether anything in it is
active there or not: so the ranks agree on what is exchanged on the way back. `rules.mpi` says what that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.communication.other_processes import active_in, further_out, refuse_text
from plaingrad.engine.communication.per_derivative import PerDerivative
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values.nesting import depth_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


class Messages:
    """What a level knows of its messages.

    Attributes:
        run: stands for the derivative that is being taken; a level is used for several, one after the other.
        counts: how many messages there were between this rank and another, by communicator, direction, and tag or key.
        receiving: requests of messages that are to arrive, by identity, with what is known of them.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.counts: dict[Any, int] = {}
        self.receiving: dict[int, Any] = {}


_messages = PerDerivative(lambda run, _: Messages(run))


def messages_of(level: Level) -> Messages:
    """The messages of the derivative that `level` takes."""
    return _messages.of(level)


def key_of(level: Level, comm: Any, is_sent: bool, peer: int, tag: Any) -> Any:
    """What both sides call a message: how deep the level is, its tag, and how many with this tag there were before."""
    counts = messages_of(level).counts
    place = imported("plaingrad.rules.mpi.channel").place_of(comm), is_sent, peer, tag
    counts[place] = counts.get(place, 0) + 1
    return depth_of(level.parent), tag, counts[place]


def given(level: Level, f: Any, x: Any) -> list[Any]:
    """The numbers and arrays in what a rank gives away."""
    refuse_text(level, f, (x,))
    _, xs, strange = imported("plaingrad.rules.mpi.numbers").taken_apart(x)
    slot = None if any(one is x for one in xs) else level.slot_of(x)
    if slot is not None:
        taken = set().union(*[active_in(level.slot_of(one)) for one in xs])
        if strange or not active_in(slot) <= taken:
            what = strange or "an object that its class pickles in its own way"
            missing_rule(f, f"Among what it sends is {what}, in which a derivative would be lost.")
    return xs


def got(
    level: Level, value: Any, xs: list[Any], exchange: Callable[[list[int]], Any], parts: Any = None
) -> Any:
    """`value`, which has arrived, with derivatives; `parts` are those whose numbers are counted for `exchange`."""
    numbers = imported("plaingrad.rules.mpi.numbers")
    structure, ys, _ = numbers.taken_apart(value)
    counts = [len(numbers.taken_apart(part)[1]) for part in parts or ()]
    ys = level.by_exchange(xs, ys, exchange(counts))
    return numbers.with_numbers(structure, ys) if ys else value


def exchanges() -> Any:
    """The module of exchanges."""
    return imported("plaingrad.rules.mpi.exchanges")


def is_nobody(peer: int) -> bool:
    """Whether a message goes to, or comes from, no rank."""
    return bool(peer == imported("mpi4py.MPI").PROC_NULL)


# -- from one rank to another ----------------------------------------------------------------------------------------


def check_tag(level: Level, f: Any, comm: Any, tag: int) -> None:
    """Refuse a tag that messages of derivatives may have."""
    if tag >= imported("plaingrad.rules.mpi.channel").first_tag(comm):
        missing_rule(f, f"Its tag, {tag}, is among those that messages of derivatives have: the upper half.")


def send(level: Level, f: Any) -> Callable[..., Any]:
    """`send`, `isend`, `Send`, `Isend` and their variants."""

    def send_at_level(comm: Any, x: Any = None, dest: int = 0, tag: int = 0, **names: Any) -> Any:
        x = names.get("obj", names.get("buf", x))
        if is_nobody(dest):
            return f(comm, x, dest, tag)
        check_tag(level, f, comm, tag)
        if f.__name__[0].isupper():
            x = imported("plaingrad.rules.mpi.definitions").array_in(x)
        xs = given(level, f, x)
        result = further_out(level, f, comm, x, dest, tag)
        level.by_exchange(xs, [], exchanges().Sent(comm, dest, key_of(level, comm, True, dest, tag)))
        return result

    return send_at_level


def receive(level: Level, f: Any) -> Callable[..., Any]:
    """`recv` and `Recv`."""

    def receive_at_level(
        comm: Any, buf: Any = None, source: Any = None, tag: Any = None, status: Any = None
    ) -> Any:
        mpi, channel = imported("mpi4py.MPI"), imported("plaingrad.rules.mpi.channel")
        source = mpi.ANY_SOURCE if source is None else source
        tag = mpi.ANY_TAG if tag is None else tag
        if is_nobody(source):
            return f(comm, buf, source, tag, status)
        status = mpi.Status() if status is None else status
        if f.__name__ == "Recv":
            array = imported("plaingrad.rules.mpi.definitions").array_in(buf)
            value: Any = np.empty_like(array)
            further_out(level, channel.receive_buffer, comm, value, source, tag, status)
        else:
            value = further_out(level, channel.receive_object, comm, source, tag, status)
        source, tag = status.Get_source(), status.Get_tag()
        key = key_of(level, comm, False, source, tag)
        value = got(level, value, [], lambda counts: exchanges().Received(comm, source, key))
        return write(level, array, value, status) if f.__name__ == "Recv" else value

    return receive_at_level


def write(level: Level, array: np.ndarray, value: np.ndarray, status: Any) -> None:
    """Write what has arrived into the program's buffer, which may be longer."""
    count = status.Get_count(imported("mpi4py.MPI").BYTE) // array.itemsize
    level.calls.inside(written)(array, value, count)


def written(array: np.ndarray, value: np.ndarray, count: int) -> None:
    """The first elements of an array, overwritten."""
    array.reshape(-1)[:count] = value.reshape(-1)[:count]


def begin_to_receive(level: Level, f: Any) -> Callable[..., Any]:
    """`irecv` and `Irecv`."""

    def begin(comm: Any, buf: Any = None, source: Any = None, tag: Any = None) -> Any:
        mpi = imported("mpi4py.MPI")
        source = mpi.ANY_SOURCE if source is None else source
        tag = mpi.ANY_TAG if tag is None else tag
        if is_nobody(source):
            return f(comm, buf, source, tag)
        if source == mpi.ANY_SOURCE or tag == mpi.ANY_TAG:
            missing_rule(f, "It begins to receive from any source or with any tag: say which, or use recv.")
        array, value = None, buf
        if f.__name__ == "Irecv":
            array = imported("plaingrad.rules.mpi.definitions").array_in(buf)
            value = np.empty_like(array)
        request = further_out(level, f, comm, value, source, tag)
        key = key_of(level, comm, False, source, tag)
        messages_of(level).receiving[id(request)] = request, comm, source, key, array, value
        return request

    return begin


def finish(level: Level, f: Any) -> Callable[..., Any]:
    """`wait` and `Wait` of a request."""

    def finish_at_level(request: Any, status: Any = None) -> Any:
        entry = messages_of(level).receiving.pop(id(request), None)
        if entry is None:
            return further_out(level, f, request, status)
        status = imported("mpi4py.MPI").Status() if status is None else status
        return arrived(level, entry, further_out(level, f, request, status), status)

    return finish_at_level


def arrived(level: Level, entry: Any, value: Any, status: Any) -> Any:
    """What a request has waited for, with derivatives."""
    _, comm, source, key, array, buffer = entry
    if array is not None:
        value, result = buffer, value
    value = got(level, value, [], lambda counts: exchanges().Received(comm, source, key))
    if array is None:
        return value
    write(level, array, value, status)
    return result


def ask(level: Level, f: Any) -> Callable[..., Any]:
    """`test` and `Test` of a request."""

    def ask_at_level(request: Any, status: Any = None) -> Any:
        receiving = messages_of(level).receiving
        status = imported("mpi4py.MPI").Status() if status is None else status
        answer = further_out(level, f, request, status)
        if id(request) not in receiving or not (answer[0] if type(answer) is tuple else answer):
            return answer
        value = arrived(
            level, receiving.pop(id(request)), answer[1] if type(answer) is tuple else None, status
        )
        return (True, value) if type(answer) is tuple else answer

    return ask_at_level


def finish_all(level: Level, f: Any) -> Callable[..., Any]:
    """`waitall` and `Waitall`: each in turn."""
    of_one = "wait" if f.__name__ == "waitall" else "Wait"

    def finish_all_at_level(cls: Any, requests: Any, statuses: Any = None) -> Any:
        values = []
        for n, request in enumerate(requests):
            wait = finish(level, getattr(type(request), of_one))
            values.append(wait(request, None if statuses is None else statuses[n]))
        return values if of_one == "wait" else True

    return finish_all_at_level


def refused_for_some(level: Level, f: Any) -> Callable[..., Any]:
    """Functions of several requests that are not followed."""

    def of_some(*args: Any, **kwargs: Any) -> Any:
        if messages_of(level).receiving:
            missing_rule(f, "Of requests wait, waitall and test are followed.")
        return f(*args, **kwargs)

    return of_some


def post(level: Level, f: Any) -> Callable[..., Any]:
    """A message of a derivative that is taken at a level inside this one."""

    def post_at_level(comm: Any, values: list[Any], dest: int, key: Any) -> None:
        xs = given(level, f, values)
        further_out(level, f, comm, values, dest, key)
        level.by_exchange(xs, [], exchanges().Sent(comm, dest, key_of(level, comm, True, dest, key)))

    return post_at_level


def receive_posted(level: Level, f: Any) -> Callable[..., Any]:
    """The other side of it."""

    def receive_at_level(comm: Any, source: int, key: Any) -> Any:
        value = further_out(level, f, comm, source, key)
        own = key_of(level, comm, False, source, key)
        return got(level, value, [], lambda counts: exchanges().Received(comm, source, own))

    return receive_at_level


def received_beside(level: Level, f: Any) -> Callable[..., Any]:
    """`receive_object` and `receive_buffer` of a level inside this one: as the program's own `recv` and `Recv`."""

    def at_level(comm: Any, *args: Any) -> Any:
        if f.__name__ == "receive_object":
            return receive(level, type(comm).recv)(comm, None, *args)
        return receive(level, type(comm).Recv)(comm, *args)

    return at_level


# -- which they are ------------------------------------------------------------------------------------------------


def composed(level: Level, f: Any) -> Callable[..., Any]:
    """What has a definition in terms of others."""
    definition = imported("plaingrad.rules.mpi.definitions").DEFINITIONS[f.__name__]
    return level.calls.inside(definition)


def refused(level: Level, f: Any) -> Callable[..., Any]:
    """What is not followed."""

    def refuse_at_level(*args: Any, **kwargs: Any) -> Any:
        missing_rule(
            f, "Communication of this kind is not followed: what it brings here would lose its derivative."
        )

    return refuse_at_level


Maker = Callable[..., Callable[..., Any]]
OWNERS = ("Comm", "Intracomm", "Topocomm")  # the classes that may define a method
_OF_COMMUNICATORS: dict[Maker, str] = {
    send: "send ssend bsend isend issend ibsend Send Ssend Bsend Rsend Isend Issend Ibsend Irsend",
    receive: "recv Recv",
    begin_to_receive: "irecv Irecv",
    composed: "Bcast Scatter Scatterv Gather Gatherv Allgather Allgatherv Alltoall Alltoallv Neighbor_allgather "
    "Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv "
    "sendrecv Sendrecv Sendrecv_replace",
    refused: "Alltoallw Iallgather Iallgatherv Iallreduce Ialltoall Ialltoallv Ialltoallw Ibcast Iexscan Igather "
    "Igatherv Improbe Ireduce Ireduce_scatter Ireduce_scatter_block Iscan Iscatter Iscatterv Isendrecv "
    "Isendrecv_replace Mprobe Precv_init Psend_init Recv_init Send_init Bsend_init Rsend_init Ssend_init Bcast_init "
    "Allgather_init Allgatherv_init Allreduce_init Alltoall_init Alltoallv_init Alltoallw_init Exscan_init Gather_init "
    "Gatherv_init Reduce_init Reduce_scatter_block_init Reduce_scatter_init "
    "Scan_init Scatter_init Scatterv_init improbe mprobe "
    "Neighbor_alltoallw Ineighbor_allgather "
    "Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw",
}
_OF_REQUESTS: dict[Maker, str] = {
    finish: "wait Wait",
    ask: "test Test",
    finish_all: "waitall Waitall",
    refused_for_some: "waitany waitsome testany testall testsome Waitany Waitsome Testany Testall Testsome",
}
_REFUSED = {
    "Win": "Get Put Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rget Rput Raccumulate Rget_accumulate "
    "tomemory",
    "Message": "recv irecv Recv Irecv",
    "File": "Write Write_at Write_all Write_at_all Write_shared Iwrite Iwrite_at",
}
#: What to call instead, by module and qualified name.
FUNCTIONS: dict[tuple[str, str], Maker] = {
    ("plaingrad.rules.mpi.channel", "post"): post,
    ("plaingrad.rules.mpi.channel", "receive"): receive_posted,
    ("plaingrad.rules.mpi.channel", "receive_object"): received_beside,
    ("plaingrad.rules.mpi.channel", "receive_buffer"): received_beside,
    **{
        ("mpi4py.MPI", f"{cls}.{name}"): make
        for make, names in _OF_COMMUNICATORS.items()
        for cls in OWNERS
        for name in names.split()
    },
    **{
        ("mpi4py.MPI", f"Request.{name}"): make
        for make, names in _OF_REQUESTS.items()
        for name in names.split()
    },
    **{("mpi4py.MPI", f"{cls}.{name}"): refused for cls, names in _REFUSED.items() for name in names.split()},
}
