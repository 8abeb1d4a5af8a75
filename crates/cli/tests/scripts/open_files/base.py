"""What all checks use."""
import ctypes
import errno
import os
import traceback

CONTENT = b"0123456789" * 1000
SIZE = len(CONTENT)
LIBC = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2
# A second name that some files have from the beginning.
TWIN = ".twin from before"
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def equal(found, expected):
    assert found == expected, "found %.80r, expected %.80r" % (found, expected)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def fails(number, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        equal(errno.errorcode.get(error.errno), errno.errorcode[number])
        return
    raise AssertionError("succeeded instead of %s" % errno.errorcode[number])


def rename(old, new, flags):
    at = -100
    if LIBC.renameat2(at, os.fsencode(old), at, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def give_name(opened, name):
    at, follow = -100, 0x400
    if LIBC.linkat(at, b"/proc/self/fd/%d" % opened, at, os.fsencode(name), follow) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def elsewhere(function):
    """Runs it in another process, whose failure is ours."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
