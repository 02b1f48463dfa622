"""simpy: discrete events, where generators wait in a heap whose keys are active numbers."""

import pytest

import plaingrad

simpy = pytest.importorskip("simpy")


def mean_wait(arrival_gap, service_time):
    """The mean wait of six customers before one counter."""
    waits = []

    def customer(env, counter):
        arrived = env.now
        with counter.request() as turn:
            yield turn
            waits.append(env.now - arrived)
            yield env.timeout(service_time)

    def source(env, counter):
        for _ in range(6):
            env.process(customer(env, counter))
            yield env.timeout(arrival_gap)

    env = simpy.Environment()
    counter = simpy.Resource(env, capacity=1)
    env.process(source(env, counter))
    env.run()
    return sum(waits) / len(waits)


def test_a_queue_that_grows():
    """Customer k waits k (service - gap) when the service is slower than the arrivals: 2.5 on average."""
    gradients = plaingrad.grad(mean_wait, argnums=(0, 1))(1.0, 1.45)  # no two events at the same moment
    assert gradients == pytest.approx((-2.5, 2.5))


def test_a_queue_that_stays_empty():
    assert plaingrad.grad(mean_wait, argnums=(0, 1))(2.0, 1.5) == (0.0, 0.0)


def test_a_race_between_two_events(agrees):
    def finish(first, second):
        env = simpy.Environment()
        log = []

        def racer(env):
            done = yield env.timeout(first, value=first * first) | env.timeout(second, value=3.0 * second)
            log.extend(done.values())
            yield env.timeout(log[0])

        env.process(racer(env))
        env.run()
        return env.now + log[0]

    agrees(finish, 1.2, 2.0)
    assert plaingrad.grad(finish, argnums=(0, 1))(3.0, 2.0) == pytest.approx((0.0, 7.0))


def test_a_machine_that_is_interrupted(agrees):
    def made(work, repair):
        env = simpy.Environment()

        def machine(env):
            done = 0.0
            while done < 10.0:
                started = env.now
                try:
                    yield env.timeout(work)
                    done += work
                except simpy.Interrupt:
                    done += 0.5 * (env.now - started)
                    yield env.timeout(repair)
            return env.now

        def breaker(env, victim):
            yield env.timeout(7.0)
            victim.interrupt()

        victim = env.process(machine(env))
        env.process(breaker(env, victim))
        return env.run(until=victim)

    agrees(made, 1.6, 0.7)


def test_a_tank_that_is_filled_and_drained(agrees):
    def level(rate, demand):
        env = simpy.Environment()
        tank = simpy.Container(env, init=5.0, capacity=100.0)

        def pump(env):
            for _ in range(5):
                yield env.timeout(1.0)
                yield tank.put(rate)

        def user(env):
            for _ in range(3):
                yield tank.get(demand)
                yield env.timeout(1.3)

        env.process(pump(env))
        env.process(user(env))
        env.run(until=10)
        return tank.level ** 2

    agrees(level, 2.0, 3.0)
