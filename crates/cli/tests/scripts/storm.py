"""Random file operations by several threads below a directory: usage storm.py DIR SEED OPERATIONS."""
import mmap
import os
import random
import stat
import sys
import threading

top, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def pick(rng, want):
    """A random existing path of the wanted kind, or None."""
    found = []
    for path, directories, files in os.walk(top):
        if want == "directory":
            found.append(path)
        else:
            # FIFOs keep names of their own: opening one would wait for ever.
            found.extend(os.path.join(path, name) for name in files if name[0] != "f")
            if want == "any":
                found.extend(os.path.join(path, name) for name in directories)
    return rng.choice(sorted(found)) if found else None


def fresh(rng):
    return os.path.join(pick(rng, "directory") or top, "n%d" % rng.randrange(40))


def create(rng):
    with open(fresh(rng), "wb") as file:
        file.write(rng.randbytes(rng.choice([0, 1, 100, 5000, 200000])))


def append(rng):
    with open(pick(rng, "file"), "ab") as file:
        file.write(b"more")


def rewrite_the_same(rng):
    path = pick(rng, "file")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content)


def truncate(rng):
    os.truncate(pick(rng, "file"), rng.randrange(50))


def through_memory(rng):
    with open(pick(rng, "file"), "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[0:1] = bytes([rng.randrange(256)])


def replace(rng):
    temporary = fresh(rng) + ".tmp"
    with open(temporary, "wb") as file:
        file.write(rng.randbytes(20))
    os.replace(temporary, pick(rng, "file") or fresh(rng))


def rename(rng):
    os.rename(pick(rng, "any"), fresh(rng))


def link(rng):
    os.link(pick(rng, "file"), fresh(rng))


def symlink(rng):
    os.symlink(rng.choice(["nowhere", "n1", "/etc/passwd", "."]), fresh(rng))


def mode(rng):
    os.chmod(pick(rng, "file"), rng.choice([0o000, 0o444, 0o600, 0o755, 0o644]))


def directory_mode(rng):
    os.chmod(pick(rng, "directory"), rng.choice([0o700, 0o755, 0o777]))


def remove(rng):
    path = pick(rng, "any")
    if stat.S_ISDIR(os.lstat(path).st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


operations = [
    create, create, create, append, rewrite_the_same, truncate, through_memory, replace, rename, rename,
    link, symlink, mode, directory_mode, remove,
    lambda rng: os.mkdir(fresh(rng)),
    lambda rng: os.mkdir(fresh(rng)),
    lambda rng: os.mkfifo(os.path.join(pick(rng, "directory"), "f%d" % rng.randrange(5))),
]


def work(number):
    rng = random.Random("%d/%d" % (seed, number))
    for _ in range(count):
        try:
            rng.choice(operations)(rng)
        except (OSError, ValueError, TypeError):
            pass  # An operation that does not apply to what is there.


threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
