#!/usr/bin/env python3
"""A brushed motor under changing voltage and load, as its controller's ADC sees it.

    examples/motor/simulate.py FOLDER      writes train.csv, winding.csv, stream.bin; pump.csv and taught.bin

    L di/dt = V - R i - k w (1 + ripple(angle)),   J dw/dt = k i - b w - load

One window is 24 samples of the current (ADC counts, 800 Hz: a turn or more) and one of the voltage. The model sees how
the samples differ from their mean, the mean and the voltage; its target is the speed, for which there is no sensor. One
fault is never trained on: a winding that opens, so that the current drops once a turn. Nor is one load: a pump that
strokes, which is no fault, and which the firmware of `../cortex-m/src/bin/taught.rs` is taught. Only the standard library, and
counts are whole numbers: every machine writes the same files.
"""
import math
import random
import struct
import sys

RESISTANCE, INDUCTANCE, CONSTANT = 0.8, 0.6e-3, 0.022  # ohm, H, V s/rad
INERTIA, FRICTION = 4e-5, 2e-5  # kg m2, N m s
SEGMENTS, RIPPLE = 6, 0.06  # bars of the commutator, share of the back-EMF
RATE, SUBSTEPS, WINDOW = 800, 20, 24  # Hz, steps between samples, samples
AMPERE, VOLT, NOISE = 200.0, 250.0, 2.0  # counts per A, counts per V, counts
LOAD = 0.06  # N m, the most in training
PUMP, PUMP_RATE = 0.09, 30.0  # N m, strokes a second: a load that was never trained on


class Motor:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.current = self.speed = self.angle = 0.0
        self.voltage = self.voltage_goal = 9.0
        self.load = self.load_goal = 0.03
        self.winding = self.pump = False
        self.stroke = 0.0
        for _ in range(40):
            self.window()

    def step(self, dt):
        bar = int(self.angle / (2 * math.pi) * SEGMENTS) % SEGMENTS
        ripple = RIPPLE * math.cos(2 * SEGMENTS * self.angle)
        resistance = 6 * RESISTANCE if self.winding and bar == 0 else RESISTANCE
        drop = resistance * self.current + CONSTANT * self.speed * (1 + ripple)
        self.current += dt * (self.voltage - drop) / INDUCTANCE
        load = self.load
        if self.pump:
            self.stroke += dt * PUMP_RATE
            load += PUMP * (1 + math.sin(2 * math.pi * self.stroke))
        self.speed += dt * (CONSTANT * self.current - FRICTION * self.speed - load) / INERTIA
        self.angle += dt * self.speed

    def window(self):
        """Counts of one window, and the mean speed in rad/s."""
        if self.random.random() < 0.15:
            self.voltage_goal = self.random.uniform(6.0, 12.0)
        if self.random.random() < 0.15:
            self.load_goal = self.random.uniform(0.0, LOAD)
        counts, speed = [], 0.0
        for _ in range(WINDOW):
            self.voltage += 0.025 * (self.voltage_goal - self.voltage)
            self.load += 0.025 * (self.load_goal - self.load)
            for _ in range(SUBSTEPS):
                self.step(1.0 / (RATE * SUBSTEPS))
            counts.append(self.count(AMPERE * self.current + 1000))
            speed += self.speed / WINDOW
        return counts + [self.count(VOLT * self.voltage)], speed

    def count(self, value):
        return max(0, min(4095, round(value + self.random.gauss(0.0, NOISE))))


def inputs(counts):
    """What the model sees of a window; the firmware does the same."""
    *currents, voltage = counts
    mean = sum(currents) // WINDOW
    return [i - mean for i in currents] + [mean, voltage]


def write(path, windows):
    with open(path, "w") as file:
        names = [f"i{n}" for n in range(WINDOW)] + ["mean", "voltage", "speed"]
        file.write(",".join(names) + "\n")
        for counts, speed in windows:
            file.write(",".join(map(str, inputs(counts))) + f",{speed:.3f}\n")


def main(folder):
    healthy = Motor(1)
    write(f"{folder}/train.csv", [healthy.window() for _ in range(4000)])
    faulty = Motor(2)
    faulty.winding = True
    write(f"{folder}/winding.csv", [faulty.window() for _ in range(500)])
    # The stream of the firmware: well, the winding opens, it is mended.
    motor, stream = Motor(3), b""
    for n in range(150):
        motor.winding = 50 <= n < 100
        stream += struct.pack(f"<{WINDOW + 1}H", *motor.window()[0])
    with open(f"{folder}/stream.bin", "wb") as file:
        file.write(stream)
    # A pump is coupled, and taught from 60 to 109; from 160 to 199 there is no pump, and the winding is open.
    motor, stream = Motor(4), b""
    for n in range(220):
        motor.pump, motor.winding = 30 <= n < 140, 160 <= n < 200
        stream += struct.pack(f"<{WINDOW + 1}H", *motor.window()[0])
    with open(f"{folder}/taught.bin", "wb") as file:
        file.write(stream)
    motor = Motor(5)
    motor.pump = True
    write(f"{folder}/pump.csv", [motor.window() for _ in range(500)])


if __name__ == "__main__":
    main(sys.argv[1])
