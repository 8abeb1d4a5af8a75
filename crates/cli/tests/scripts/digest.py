"""Prints one digest of all that is below a directory: names, modes, contents and targets."""
import hashlib
import os
import sys

top, total = os.fsencode(sys.argv[1]), hashlib.sha256()
for path, directories, files in os.walk(top):
    directories.sort()
    for name in sorted(directories + files):
        full = os.path.join(path, name)
        total.update(full[len(top):] + b"\0%o\0" % os.lstat(full).st_mode)
        if os.path.islink(full):
            total.update(os.readlink(full))
        elif name in files:
            with open(full, "rb") as file:
                total.update(hashlib.sha256(file.read()).digest())
print(total.hexdigest())
