"""The CIEDE2000 colour difference (Sharma, Wu, Dalal 2005, equations 2 to 22) of a palette, by scalars and degrees."""

import math


def xyz_to_lab(x, y, z, white=(0.95047, 1.0, 1.08883)):
    def f(t):
        if t > (6 / 29) ** 3:
            return t ** (1 / 3)
        return t / (3 * (6 / 29) ** 2) + 4 / 29

    fx, fy, fz = f(x / white[0]), f(y / white[1]), f(z / white[2])
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def rgb_to_xyz(r, g, b):
    def linear(c):
        return ((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92

    r, g, b = linear(r), linear(g), linear(b)
    return (
        0.4124564 * r + 0.3575761 * g + 0.1804375 * b,
        0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
        0.0193339 * r + 0.1191920 * g + 0.9503041 * b,
    )


def hue(a, b):
    if a == 0.0 and b == 0.0:
        return 0.0
    angle = math.degrees(math.atan2(b, a))
    return angle if angle >= 0 else angle + 360


def ciede2000(lab1, lab2, kl=1.0, kc=1.0, kh=1.0):
    l1, a1, b1 = lab1
    l2, a2, b2 = lab2
    c_mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(c_mean**7 / (c_mean**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = hue(a1, b1), hue(a2, b2)

    dl, dc = l2 - l1, c2 - c1
    dh = h2 - h1
    if c1 * c2 == 0:
        dh = 0.0
    elif dh > 180:
        dh -= 360
    elif dh < -180:
        dh += 360
    dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh / 2))

    l_mean, c_mean = (l1 + l2) / 2, (c1 + c2) / 2
    if c1 * c2 == 0:
        h_mean = h1 + h2
    elif abs(h1 - h2) <= 180:
        h_mean = (h1 + h2) / 2
    elif h1 + h2 < 360:
        h_mean = (h1 + h2 + 360) / 2
    else:
        h_mean = (h1 + h2 - 360) / 2
    t = (
        1
        - 0.17 * math.cos(math.radians(h_mean - 30))
        + 0.24 * math.cos(math.radians(2 * h_mean))
        + 0.32 * math.cos(math.radians(3 * h_mean + 6))
        - 0.20 * math.cos(math.radians(4 * h_mean - 63))
    )
    turn = 30 * math.exp(-(((h_mean - 275) / 25) ** 2))
    rc = 2 * math.sqrt(c_mean**7 / (c_mean**7 + 25.0**7))
    sl = 1 + 0.015 * (l_mean - 50) ** 2 / math.sqrt(20 + (l_mean - 50) ** 2)
    sc = 1 + 0.045 * c_mean
    sh = 1 + 0.015 * c_mean * t
    rt = -math.sin(math.radians(2 * turn)) * rc
    x, y, z = dl / (kl * sl), dc / (kc * sc), dh / (kh * sh)
    return math.sqrt(x * x + y * y + z * z + rt * y * z)


def main(p):
    """A palette is good whose nearest colours are far apart and of even lightness."""
    labs = [xyz_to_lab(*rgb_to_xyz(*p[k : k + 3])) for k in range(0, len(p), 3)]
    close = 0.0
    for i, first in enumerate(labs):
        for second in labs[:i]:
            close += math.exp(-ciede2000(first, second) / 20)
    mean = sum(lab[0] for lab in labs) / len(labs)
    return close + 1e-4 * sum((lab[0] - mean) ** 2 for lab in labs)


X = [0.9, 0.2, 0.1, 0.1, 0.8, 0.3, 0.2, 0.3, 0.85, 0.9, 0.8, 0.15, 0.6, 0.1, 0.7, 0.1, 0.7, 0.75]
