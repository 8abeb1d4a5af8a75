"""Prints what is below a directory as one JSON object: the judge of change reports.

It shares no code with the product, and runs as an ordinary command. Files and directories that their
mode keeps closed are opened for the look and closed again. With `--all`, each entry ends with its
time, its extended attributes, and the first of its names when it has several.
"""
import base64
import errno
import hashlib
import json
import os
import stat
import sys


def opened(path, mode, needed, look):
    if mode & needed == needed:
        return look(path)
    os.chmod(path, mode | needed)
    try:
        return look(path)
    finally:
        os.chmod(path, mode)


BLOCK = 1 << 16


def content(path, mode):
    try:
        return opened(path, mode, 0o400, digest)
    except PermissionError:
        # Without root, a mode that was set by another name of a file counts for this one from its next chmod on: docs/posix.md.
        os.chmod(path, mode)
        return opened(path, mode, 0o400, digest)


def digest(path):
    """Of the blocks that are not all zeros, with their places: a hole costs nothing."""
    found = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        place, size = 0, os.fstat(file.fileno()).st_size
        while place < size:
            try:
                place = os.lseek(file.fileno(), place, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            block = os.pread(file.fileno(), BLOCK, place)
            if block.strip(b"\0"):
                found.update(b"%d:" % place + block.rstrip(b"\0"))
            place += BLOCK
    return found.hexdigest()


def text(path):
    """How a report writes a path."""
    raw = os.fsencode(path)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "b64:" + base64.b64encode(raw).decode()


def scan(path, found):
    for name in opened(path, stat.S_IMODE(os.lstat(path).st_mode), 0o500, os.listdir):
        child = os.path.join(path, name)
        entry(child, found)


def entry(path, found):
    parent = os.path.dirname(path)
    parent_mode = stat.S_IMODE(os.lstat(parent).st_mode)
    opened(parent, parent_mode, 0o500, lambda _: look(path, found))


def look(path, found):
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        found[path] = ["directory", mode]
        scan(path, found)
    elif stat.S_ISLNK(status.st_mode):
        found[path] = ["symlink", text(os.readlink(path))]
    elif stat.S_ISFIFO(status.st_mode):
        found[path] = ["fifo", mode]
    elif stat.S_ISREG(status.st_mode):
        found[path] = ["file", mode, status.st_size, content(path, mode)]


def more(path, names):
    status = os.lstat(path)
    xattrs = {}
    if not stat.S_ISLNK(status.st_mode):
        for name in os.listxattr(path):
            if name.startswith("user."):
                xattrs[name] = os.getxattr(path, name).hex()
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        names.setdefault((status.st_dev, status.st_ino), []).append(path)
    return {"mtime": status.st_mtime_ns, "xattrs": xattrs}


found = {}
look(sys.argv[1], found)
if sys.argv[2:] == ["--all"]:
    names = {}
    for path in sorted(found):
        found[path].append(more(path, names))
    for several in names.values():
        for path in several[1:]:
            found[path][-1]["same_as"] = several[0]
print(json.dumps({text(path): entry for path, entry in found.items()}))
