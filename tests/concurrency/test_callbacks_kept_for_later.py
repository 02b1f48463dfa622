"""Callbacks that C code keeps and calls later: signals, weak references, exits, readers of sockets, schedulers.

They stay the objects they were, and what they compute counts.
"""

import asyncio
import atexit
import contextlib
import gc
import sched
import signal
import socket
import socketserver
import threading
import weakref

import pytest
from cases_b import check

import plaingrad

needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")


@needs_signals
def test_signal_handlers():
    def f(x):
        seen = []

        def handler(number, frame):
            seen.append(x * x)

        before = signal.signal(signal.SIGUSR1, handler)
        assert signal.getsignal(signal.SIGUSR1) is handler
        signal.raise_signal(signal.SIGUSR1)
        assert signal.signal(signal.SIGUSR1, before) is handler
        return sum(seen)

    check(f, 1.5, 3.0)


@needs_signals
def test_signal_handlers_and_readers_of_a_loop():
    async def main(x):
        loop, seen = asyncio.get_running_loop(), []
        loop.add_signal_handler(signal.SIGUSR1, lambda: seen.append(x * x))
        signal.raise_signal(signal.SIGUSR1)
        here, there = socket.socketpair()
        with here, there:
            here.setblocking(False)
            loop.add_reader(here, lambda k: (seen.append(x * k), loop.remove_reader(here)), 5.0)
            there.send(b"1")
            while len(seen) < 2:
                await asyncio.sleep(0.001)
        loop.remove_signal_handler(signal.SIGUSR1)
        return sum(seen)

    check(lambda x: asyncio.run(main(x)), 1.5, 3 + 5)


def test_weak_references():
    class Thing:
        pass

    def f(x):
        seen = []
        thing, other = Thing(), Thing()

        def gone(reference):
            seen.append(x * x)

        reference = weakref.ref(thing, gone)
        assert reference.__callback__ is gone
        assert reference() is thing
        weakref.finalize(other, lambda k: seen.append(x * k), x * 3.0)
        kept = weakref.WeakKeyDictionary({thing: x})
        assert kept[thing] is x
        del thing, other
        gc.collect()
        assert len(kept) == 0
        return sum(seen)

    check(f, 1.5, 8 * 1.5)


def test_exit_functions_can_be_taken_back():
    def f(x):
        def leave():
            raise AssertionError("taken back")

        assert atexit.register(leave, x) is leave
        atexit.unregister(leave)
        return x * x

    check(f, 1.5, 3.0)


def test_the_code_of_a_callback_is_put_back():
    def gone(reference):
        pass

    class Thing:
        pass

    code = gone.__code__

    def f(x):
        weakref.ref(Thing(), gone)
        return x * x

    assert plaingrad.grad(f)(1.5) == 3.0
    assert gone.__code__ is code


def test_a_scheduler():
    def f(x):
        line, seen = sched.scheduler(), []
        line.enter(0.001, 1, seen.append, (x * 3.0,))
        line.enter(x * 1e-4, 1, lambda: seen.append(x * x))
        line.cancel(line.enter(1000, 1, seen.append, (x * 1e9,)))
        line.run()
        return sum(seen)

    check(f, 1.5, 3 + 3)


def test_streams():
    async def main(x):
        seen = []

        async def serve(reader, writer):
            line = await reader.readline()
            seen.append(x * len(line))
            writer.write(line.upper())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            assert await reader.readline() == b"HELLO\n"
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        return seen[0]

    check(lambda x: asyncio.run(main(x)), 1.5, 6.0)


def test_a_server_with_a_thread_for_each_request():
    def f(x):
        seen = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                seen.append(x * float(self.rfile.readline()))
                self.wfile.write(b"done\n")

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            with socket.create_connection(server.server_address) as client, client.makefile("rwb") as line:
                line.write(b"7.5\n")
                line.flush()
                assert line.readline() == b"done\n"
            server.shutdown()
            thread.join()
        return seen[0]

    check(f, 1.5, 7.5)
