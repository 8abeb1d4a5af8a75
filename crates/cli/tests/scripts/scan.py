"""Prints what is below a directory as one JSON object: the judge of change reports.

It shares no code with the product, and runs as an ordinary command. Files and directories that their
mode keeps closed are opened for the look and closed again. With `--all`, each entry ends with its
time, its extended attributes, and the first of its names when it has several.
"""
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


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


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
        found[path] = ["symlink", os.readlink(path)]
    elif stat.S_ISFIFO(status.st_mode):
        found[path] = ["fifo", mode]
    elif stat.S_ISREG(status.st_mode):
        found[path] = ["file", mode, status.st_size, opened(path, mode, 0o400, digest)]


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
print(json.dumps(found))
