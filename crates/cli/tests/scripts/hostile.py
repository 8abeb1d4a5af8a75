"""What a command may do to confuse whoever stores and reports its files: usage hostile.py DIR SEED.

All of it is left below DIR, small enough for a scan, and none of it may be missing from the report.
"""
import ctypes
import os
import random
import socket
import sys
import threading

top, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
libc = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE = 2


def at(*names):
    return os.path.join(top, *names)


def write(path, content=b"x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def forged_exchange():
    """A record as a mover might have written it: the names must mean what they meant."""
    name = rng.choice([".avfs-moving-%d", ".avfs-moving-%x-first", ".avfs-writing-%d", ".avfs-export-%d", ".moved-%d"])
    record = at(name % rng.randrange(1000))
    os.makedirs(record, exist_ok=True)
    write(at("deploy.sh"), b"good %d" % seed)
    write(at("decoy"), b"evil %d" % seed)
    for end, goal in [("first", at("deploy.sh")), ("second", at("decoy"))]:
        if not os.path.lexists(os.path.join(record, end)):
            os.symlink(goal, os.path.join(record, end))
    write(os.path.join(record, "to-first"), b"evil")
    write(os.path.join(record, "to-second"), b"good")


def names():
    for name in [b"\xff\xfe", "\u202egpj.exe".encode(), b"new\nline", b"tab\t", b"-rf", b"n" * 255, b" ", b"...", b".wh.gone",
                 b".wh..wh..opq", "e\u0301".encode(), "\u00e9".encode(), b".GIT", b"\x1b[2J", b"\\x41"]:
        if rng.random() < 0.4:
            with open(os.path.join(os.fsencode(top), name), "wb") as file:
                file.write(b"%d" % rng.randrange(9))


def holes():
    path = at("hole%d" % rng.randrange(4))
    with open(path, "ab") as file:
        os.truncate(path, rng.choice([1, 1 << 20, 1 << 32, 1 << 42, (1 << 42) + 12345]))
        size = os.path.getsize(path)
        for _ in range(rng.randrange(5)):
            os.pwrite(os.open(path, os.O_WRONLY), rng.choice([b"data", b"\0" * 9000, b"z" * 70000]), rng.randrange(size))


def links_with_attributes():
    first = at("linked%d" % rng.randrange(1000))
    write(first)
    for number in range(rng.randrange(1, 20)):
        try:
            os.setxattr(first, "user.a%d" % number, rng.randbytes(rng.choice([1, 100, 3000])))
        except OSError:
            break
    for number in range(rng.randrange(1, 60)):
        os.link(first, at("l%d-%d" % (seed, number)))


def modes():
    directory = at("closed%d" % rng.randrange(1000), "inner")
    os.makedirs(directory, exist_ok=True)
    write(os.path.join(directory, "file"))
    os.chmod(os.path.join(directory, "file"), 0)
    os.chmod(directory, rng.choice([0, 0o100, 0o444]))


def kinds():
    directory = at("kinds")
    os.makedirs(directory, exist_ok=True)
    for make in [lambda path: os.mkfifo(path), lambda path: os.mknod(path, 0o20000, 0), lambda path: os.mknod(path, 0o60000, 0x800),
                 lambda path: socket.socket(socket.AF_UNIX).bind(path), lambda path: os.symlink("/proc/self/root", path),
                 lambda path: os.symlink(b"\xff" * 4000, os.fsencode(path))]:
        try:
            make(os.path.join(directory, "k%d" % rng.randrange(30)))
        except OSError:
            pass


def marks():
    directory = at("marked")
    os.makedirs(directory, exist_ok=True)
    for name, value in [("opaque", b"y"), ("redirect", b"/w/kinds"), ("whiteout", b"y"), ("metacopy", b""), ("origin", b"\0" * 20)]:
        for prefix in ["user.overlay.", "trusted.overlay."]:
            try:
                os.setxattr(directory, prefix + name, value)
            except OSError:
                pass
    write(os.path.join(directory, "f%d" % rng.randrange(5)))


def exchanges():
    """Two threads exchange the same names while a third removes and makes them."""
    pair = [at("swap", "a"), at("swap", "b")]
    for path in pair:
        write(os.path.join(path, "f"), path.encode())

    def swap():
        for _ in range(rng.choice([3, 20])):
            libc.renameat2(-100, os.fsencode(pair[0]), -100, os.fsencode(pair[1]), RENAME_EXCHANGE)

    def disturb():
        for number in range(5):
            try:
                os.rename(pair[number % 2], at("swap", "c"))
                os.rename(at("swap", "c"), pair[(number + 1) % 2])
            except OSError:
                pass

    threads = [threading.Thread(target=target) for target in [swap, swap, disturb]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def removals():
    for path, directories, files in os.walk(top):
        for name in files + directories:
            if rng.random() < 0.15:
                try:
                    os.unlink(os.path.join(path, name))
                except OSError:
                    pass


attacks = [forged_exchange, names, holes, links_with_attributes, modes, kinds, marks, exchanges, removals]
for attack in rng.sample(attacks, rng.randrange(2, len(attacks) + 1)):
    try:
        attack()
    except OSError as error:
        print(attack.__name__, error)
