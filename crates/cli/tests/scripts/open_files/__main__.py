"""How open files behave in a directory: usage python3 open_files DIR prepare|check|all.

Every check has a directory of its own, with a file in it, made by `prepare`; so `prepare`, a commit,
and `check` in another view of it is a test of stored files, and `all` one of new files. Prints one
JSON object: the name of each check, and null or what went wrong. It needs a directory, nothing else.
"""
import json
import os
import sys
import traceback

# What is checked may be a directory beside this one, which nothing else should change.
sys.dont_write_bytecode = True

# Each module adds its checks by being imported.
import descriptors, names, memory, locks, kinds
from base import CHECKS, CONTENT, TWIN, write


def prepare(top):
    os.makedirs(top, exist_ok=True)
    for name in CHECKS:
        os.mkdir(os.path.join(top, name))
        write(os.path.join(top, name, "file"), CONTENT)
    for function in (kinds.names_from_before_stay_one_file, kinds.a_removed_name_from_before_counts_no_more):
        file = os.path.join(top, function.__name__, "file")
        os.link(file, file + TWIN)


def run(function, file):
    """In a process of its own, so that what one leaves open is not in another's way."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            function(file)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[1]
            place = "%s line %d" % (os.path.basename(place.filename), place.lineno)
            os.write(into, ("%s: %s" % (place, error or type(error).__name__)).encode()[:4000])
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    return said or (None if status == 0 else "wait status %d" % status)


top, what = sys.argv[1], sys.argv[2]
if what in ("prepare", "all"):
    prepare(top)
if what in ("check", "all"):
    results = {name: run(function, os.path.join(top, name, "file")) for name, function in CHECKS.items()}
    print(json.dumps(results, indent=1))
