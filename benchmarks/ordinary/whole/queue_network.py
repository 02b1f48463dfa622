"""Queues in a clinic, simulated by events on a heap; gradients of mean waits follow each patient's path."""

import heapq
import math
import random
from collections import deque

ARRIVE, LEAVE = "arrive", "leave"


class Station:
    def __init__(self, name, servers, mean):
        self.name, self.mean = name, mean
        self.idle = servers
        self.waiting = deque()
        self.busy = 0.0

    def duration(self, draw):
        return self.mean * -math.log(1.0 - draw)


class Patient:
    count = 0

    def __init__(self, arrived, route, draws):
        Patient.count += 1
        self.number = Patient.count
        self.arrived, self.route, self.draws = arrived, list(route), draws
        self.waited = 0.0
        self.queued_at = arrived


class Clinic:
    def __init__(self, stations, lost_after):
        self.stations = {station.name: station for station in stations}
        self.lost_after = lost_after
        self.heap, self.done, self.lost = [], [], 0

    def schedule(self, time, kind, patient, place):
        heapq.heappush(self.heap, (time, patient.number, kind, patient, place))

    def start(self, now, patient, station):
        station.idle -= 1
        patient.waited += now - patient.queued_at
        takes = station.duration(patient.draws.pop())
        station.busy += takes
        self.schedule(now + takes, LEAVE, patient, station.name)

    def arrive(self, now, patient, station):
        patient.queued_at = now
        if station.idle:
            self.start(now, patient, station)
        elif len(station.waiting) >= self.lost_after:
            self.lost += 1
        else:
            station.waiting.append(patient)

    def leave(self, now, patient, station):
        station.idle += 1
        if station.waiting:
            self.start(now, station.waiting.popleft(), station)
        if patient.route:
            self.schedule(now + 0.1, ARRIVE, patient, patient.route.pop(0))
        else:
            self.done.append((patient, now))

    def run(self):
        while self.heap:
            now, _, kind, patient, place = heapq.heappop(self.heap)
            getattr(self, kind)(now, patient, self.stations[place])


def main(p):
    gap, desk, nurse, doctor = p
    draw = random.Random(8)
    Patient.count = 0
    clinic = Clinic(
        [Station("desk", 1, desk), Station("nurse", 2, nurse), Station("doctor", 2, doctor)], lost_after=6
    )
    time = 0.0
    for k in range(60):
        time = time + gap * -math.log(1.0 - draw.random())
        route = ["desk", "nurse", "doctor"] if k % 3 else ["desk", "doctor"]
        patient = Patient(time, route, [draw.random() for _ in range(4)])
        clinic.schedule(time, ARRIVE, patient, patient.route.pop(0))
    clinic.run()
    waits = sum(patient.waited for patient, _ in clinic.done) / len(clinic.done)
    stays = sum((left - patient.arrived) ** 2 for patient, left in clinic.done) / len(clinic.done)
    return waits + 0.05 * stays + 0.1 * clinic.stations["doctor"].busy / time


X = [1.0, 0.6, 1.1, 1.7]
