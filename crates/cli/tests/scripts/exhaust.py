"""More than a vault may have, of one kind: usage exhaust.py DIR SEED. How it ends does not matter."""
import ctypes
import os
import random
import signal
import sys

top, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)


def giant_hole():
    with open(os.path.join(top, "giant"), "wb") as file:
        file.truncate(rng.choice([4 << 40, (1 << 44) - 4096]))


def scattered():
    with open(os.path.join(top, "scattered"), "wb") as file:
        for number in range(20_000):
            os.pwrite(file.fileno(), b"x", number << 24)


def attributes():
    first = os.path.join(top, "first")
    open(first, "w").close()
    for number in range(20):
        try:
            os.setxattr(first, "user." + "n%d" % number, b"v" * rng.choice([100, 3000, 60000]))
        except OSError:
            pass
    for number in range(2_400):
        os.link(first, os.path.join(top, "link%d" % number))


def attribute_names():
    path = os.path.join(top, "named")
    open(path, "w").close()
    try:
        for number in range(300):
            os.setxattr(path, "user." + "n" * 240 + str(number), b"")
    except OSError:
        pass


def deep():
    os.chdir(top)
    for _ in range(5_000):
        os.mkdir("d")
        os.chdir("d")


def many_files():
    for number in range(60_000):
        os.close(os.open(os.path.join(top, str(number)), os.O_CREAT | os.O_WRONLY))


def data():
    with open(os.path.join(top, "data"), "wb") as file:
        while True:
            file.write(rng.randbytes(1 << 20))


def shared_memory():
    libc = ctypes.CDLL(None)
    held = [os.memfd_create("m") for _ in range(4)]
    for memory in held:
        os.ftruncate(memory, 1 << 28)
        for place in range(0, 1 << 28, 1 << 20):
            os.pwrite(memory, b"m" * (1 << 20), place)
    libc.shmget(0, 1 << 28, 0o1600)


def processes():
    while True:
        if os.fork() == 0:
            signal.pause()


def output():
    while True:
        os.write(1, b"o" * (1 << 16))


def scratch():
    with open("/tmp/s%d" % seed, "wb") as file:
        while True:
            file.write(b"s" * (1 << 20))


kinds = [giant_hole, scattered, attributes, attribute_names, deep, many_files, data, shared_memory, processes, output, scratch]
kind = kinds[seed % len(kinds)]
print(kind.__name__, flush=True)
os.makedirs(top, exist_ok=True)
kind()
