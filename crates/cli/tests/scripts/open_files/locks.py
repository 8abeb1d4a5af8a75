"""Durability calls, files without names, locks."""
import errno
import fcntl
import os
import stat
import struct

from base import LIBC, check, elsewhere, equal, fails, give_name, read, write


@check
def syncing_works_on_files_and_directories(file):
    opened = os.open(file, os.O_RDWR)
    os.pwrite(opened, b"synced", 0)
    os.fsync(opened)
    os.fdatasync(opened)
    directory = os.open(os.path.dirname(file), os.O_RDONLY)
    os.fsync(directory)
    equal(LIBC.syncfs(opened), 0)
    synced = os.open(file, os.O_WRONLY | os.O_SYNC)
    os.pwrite(synced, b"by itself", 0)
    equal(read(file)[:10], b"by itself9")


@check
def a_file_without_a_name_gets_one(file):
    directory = os.path.dirname(file)
    opened = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(opened, b"nameless")
    equal(os.listdir(directory), ["file"])
    give_name(opened, directory + "/named")
    equal(read(directory + "/named"), b"nameless")
    equal(stat.S_IMODE(os.stat(directory + "/named").st_mode), 0o640)


@check
def a_file_made_to_have_no_name_gets_none(file):
    directory = os.path.dirname(file)
    opened = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    fails(errno.ENOENT, give_name, opened, directory + "/named")


@check
def flock_keeps_others_out(file):
    held = os.open(file, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    wanted = os.open(file, os.O_RDWR)
    take = lambda kind: lambda: fcntl.flock(wanted, kind | fcntl.LOCK_NB)
    fails(errno.EWOULDBLOCK, take(fcntl.LOCK_SH))
    elsewhere(lambda: fails(errno.EWOULDBLOCK, take(fcntl.LOCK_EX)))
    os.pwrite(wanted, b"first write", 0)
    fails(errno.EWOULDBLOCK, take(fcntl.LOCK_EX))
    os.close(held)
    take(fcntl.LOCK_EX)()


@check
def record_locks_keep_others_out(file):
    held = os.open(file, os.O_RDWR)
    fcntl.lockf(held, fcntl.LOCK_EX, 10, 0)

    def other():
        wanted = os.open(file, os.O_RDWR)
        fails(errno.EAGAIN, fcntl.lockf, wanted, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        fcntl.lockf(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 10)

    elsewhere(other)
    fcntl.lockf(held, fcntl.LOCK_UN)
    elsewhere(lambda: fcntl.lockf(os.open(file, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB))


@check
def locks_of_a_description_keep_its_own_process_out(file):
    request = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    held, wanted = (os.open(file, os.O_RDWR) for _ in range(2))
    fcntl.fcntl(held, fcntl.F_OFD_SETLK, request)
    fails(errno.EAGAIN, fcntl.fcntl, wanted, fcntl.F_OFD_SETLK, request)
