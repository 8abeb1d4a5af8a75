"""How open files behave in a directory: usage open_files.py DIR prepare|check|all.

Every check has a directory of its own, with a file in it, made by `prepare`; so `prepare`, a commit,
and `check` in another view of it is a test of stored files, and `all` one of new files. Prints one
JSON object: the name of each check, and null or what went wrong. It needs a directory, nothing else.
"""
import ctypes
import errno
import fcntl
import json
import mmap
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
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


# Descriptors.

@check
def two_descriptors_see_each_other(file):
    one, two = os.open(file, os.O_RDWR), os.open(file, os.O_RDWR)
    os.pwrite(one, b"first", 0)
    equal(os.pread(two, 7, 0), b"first56")
    os.pwrite(two, b"end", SIZE)
    equal(os.fstat(one).st_size, SIZE + 3)
    equal(os.pread(one, 9, SIZE), b"end")
    os.lseek(one, 100, os.SEEK_SET)
    equal(os.lseek(two, 0, os.SEEK_CUR), 0)
    equal(os.lseek(os.dup(one), 0, os.SEEK_CUR), 100)


@check
def a_reader_from_before_the_first_write_sees_it(file):
    reader = os.open(file, os.O_RDONLY)
    equal(os.pread(reader, 4, 0), b"0123")
    writer = os.open(file, os.O_WRONLY)
    os.pwrite(writer, b"new!", 0)
    equal(os.pread(reader, 6, 0), b"new!45")
    os.ftruncate(writer, 2)
    equal(os.pread(reader, 6, 0), b"ne")
    equal(os.fstat(reader).st_size, 2)


@check
def appending_processes_do_not_tear_each_others_lines(file):
    children = []
    for letter in "abcd":
        child = os.fork()
        if child == 0:
            appended = os.open(file, os.O_WRONLY | os.O_APPEND)
            for _ in range(200):
                os.write(appended, letter.encode() * 49 + b"\n")
            os._exit(0)
        children.append(child)
    for child in children:
        equal(os.waitpid(child, 0)[1], 0)
    content = read(file)
    equal(len(content), SIZE + 4 * 200 * 50)
    lines = content[SIZE:].splitlines()
    equal(sorted(set(lines)), [letter * 49 for letter in (b"a", b"b", b"c", b"d")])


@check
def an_appending_descriptor_writes_at_the_end_whatever_its_offset(file):
    one, two = (os.open(file, os.O_RDWR | os.O_APPEND) for _ in range(2))
    os.write(one, b"1")
    os.lseek(two, 0, os.SEEK_SET)
    os.write(two, b"2")
    os.write(one, b"3")
    equal(read(file), CONTENT + b"123")


@check
def truncating_by_open_is_seen_by_those_who_have_it_open(file):
    before = os.open(file, os.O_RDWR)
    os.lseek(before, 10, os.SEEK_SET)
    os.close(os.open(file, os.O_WRONLY | os.O_TRUNC))
    equal(os.fstat(before).st_size, 0)
    equal(os.read(before, 10), b"")
    os.write(before, b"x")
    equal(read(file), b"\0" * 10 + b"x")


@check
def what_a_file_is_extended_by_is_zero(file):
    opened = os.open(file, os.O_RDWR)
    os.ftruncate(opened, 3)
    os.ftruncate(opened, 9000)
    equal(read(file), b"012" + b"\0" * 8997)


@check
def what_one_process_wrote_and_closed_another_reads(file):
    for round in range(20):
        text = b"round %d" % round
        elsewhere(lambda: write(file, text))
        equal(read(file), text)


@check
def permissions_are_asked_at_open_only(file):
    opened = os.open(file, os.O_RDWR)
    os.chmod(file, 0)
    os.pwrite(opened, b"still", 0)
    equal(os.pread(opened, 5, 0), b"still")
    os.chmod(file, 0o644)
    equal(read(file)[:6], b"still5")


# Names that go while the file is open.

@check
def an_unlinked_open_file_lives_on(file):
    opened = os.open(file, os.O_RDWR)
    os.unlink(file)
    equal(os.path.lexists(file), False)
    equal(os.fstat(opened).st_nlink, 0)
    equal(os.pread(opened, 10, 0), b"0123456789")
    os.pwrite(opened, b"ghost", 0)
    write(file, b"another")
    equal(os.pread(opened, 5, 0), b"ghost")
    equal(read(file), b"another")


@check
def a_file_unlinked_before_its_first_write_can_be_written(file):
    opened = os.open(file, os.O_RDONLY)
    os.unlink(file)
    equal(os.pread(opened, SIZE, 0), CONTENT)
    write(file, b"another")
    equal(os.pread(opened, 10, 0), b"0123456789")


@check
def a_file_replaced_while_open_lives_on(file):
    opened = os.open(file, os.O_RDWR)
    write(file + ".new", b"new content")
    os.rename(file + ".new", file)
    equal(read(file), b"new content")
    equal(os.pread(opened, 10, 0), b"0123456789")
    os.pwrite(opened, b"old", 0)
    equal(read(file), b"new content")
    equal(os.listdir(os.path.dirname(file)), ["file"])


@check
def a_file_renamed_while_open_keeps_its_descriptor(file):
    opened = os.open(file, os.O_RDWR)
    os.rename(file, file + ".moved")
    os.pwrite(opened, b"moved", 0)
    equal(read(file + ".moved")[:6], b"moved5")
    fails(errno.ENOENT, os.stat, file)


@check
def a_read_only_descriptor_follows_a_renamed_file(file):
    opened = os.open(file, os.O_RDONLY)
    os.rename(file, file + ".moved")
    with open(file + ".moved", "r+b") as moved:
        moved.write(b"moved")
    equal(os.pread(opened, 6, 0), b"moved5")


@check
def an_open_file_follows_its_renamed_directory(file):
    directory = os.path.dirname(file)
    opened = os.open(file, os.O_RDWR)
    os.rename(directory, directory + ".moved")
    os.pwrite(opened, b"moved", 0)
    equal(read(directory + ".moved/file")[:6], b"moved5")


@check
def a_directory_is_worked_in_after_its_renaming(file):
    directory = os.path.dirname(file)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.rename(directory, directory + ".moved")
    made = os.open("made", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=opened)
    os.write(made, b"x")
    equal(sorted(os.listdir(directory + ".moved")), ["file", "made"])


@check
def a_removed_open_directory_is_empty(file):
    directory = os.path.dirname(file)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    shutil.rmtree(directory)
    equal(os.listdir(opened), [])
    fails(errno.ENOENT, lambda: os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=opened))


@check
def a_removed_directory_comes_back_empty(file):
    directory = os.path.dirname(file)
    shutil.rmtree(directory)
    os.mkdir(directory)
    equal(os.listdir(directory), [])
    write(file, b"again")
    equal(os.listdir(directory), ["file"])


@check
def a_directory_takes_the_place_of_a_file_and_back(file):
    os.unlink(file)
    os.mkdir(file)
    write(file + "/inner", b"x")
    os.unlink(file + "/inner")
    os.rmdir(file)
    write(file, b"a file again")
    equal(read(file), b"a file again")


@check
def names_removed_while_listing_are_listed_once_at_most(file):
    directory = os.path.dirname(file)
    for number in range(2000):
        write("%s/%d" % (directory, number), b"")
    seen = []
    with os.scandir(directory) as entries:
        for entry in entries:
            seen.append(entry.name)
            if entry.name != "file":
                os.unlink(entry.path)
    equal(len(seen), len(set(seen)))
    equal(len(seen), 2001)
    equal(os.listdir(directory), ["file"])


# Renames with flags.

@check
def noreplace_refuses_an_existing_name(file):
    write(file + ".other", b"other")
    fails(errno.EEXIST, rename, file, file + ".other", NOREPLACE)
    rename(file, file + ".free", NOREPLACE)
    equal(read(file + ".free"), CONTENT)
    equal(read(file + ".other"), b"other")


@check
def exchange_swaps_two_files(file):
    write(file + ".other", b"other")
    rename(file, file + ".other", EXCHANGE)
    equal(read(file), b"other")
    equal(read(file + ".other"), CONTENT)


@check
def exchange_swaps_two_directories(file):
    directory = os.path.dirname(file)
    os.mkdir(directory + ".other")
    rename(directory, directory + ".other", EXCHANGE)
    equal(os.listdir(directory), [])
    equal(os.listdir(directory + ".other"), ["file"])


@check
def a_directory_replaces_an_empty_one_only(file):
    directory = os.path.dirname(file)
    os.mkdir(directory + ".empty")
    os.mkdir(directory + ".full")
    write(directory + ".full/x", b"")
    fails(errno.ENOTEMPTY, os.rename, directory, directory + ".full")
    os.rename(directory, directory + ".empty")
    equal(os.listdir(directory + ".empty"), ["file"])
    fails(errno.ENOENT, os.stat, directory)


# Memory.

@check
def processes_share_mapped_memory(file):
    opened = os.open(file, os.O_RDWR)
    memory = mmap.mmap(opened, SIZE)

    def change():
        with open(file, "r+b") as again, mmap.mmap(again.fileno(), SIZE) as other:
            equal(other[:3], b"012")
            other[:5] = b"child"

    elsewhere(change)
    equal(memory[:6], b"child5")
    memory[5:7] = b"!!"
    equal(read(file)[:8], b"child!!7")


@check
def writes_show_in_mapped_memory(file):
    opened = os.open(file, os.O_RDWR)
    memory = mmap.mmap(opened, SIZE)
    other = os.open(file, os.O_WRONLY)
    os.pwrite(other, b"written", 0)
    equal(memory[:8], b"written7")


@check
def writes_show_in_memory_mapped_before_the_first_of_them(file):
    memory = mmap.mmap(os.open(file, os.O_RDONLY), SIZE, prot=mmap.PROT_READ)
    equal(memory[:3], b"012")
    with open(file, "r+b") as other:
        other.write(b"written")
    equal(memory[:8], b"written7")


@check
def private_memory_stays_private(file):
    opened = os.open(file, os.O_RDONLY)
    memory = mmap.mmap(opened, SIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    memory[:4] = b"mine"
    equal(read(file), CONTENT)


@check
def mapped_memory_outlives_descriptor_and_name(file):
    opened = os.open(file, os.O_RDWR)
    memory = mmap.mmap(opened, SIZE)
    os.close(opened)
    os.unlink(file)
    memory[:2] = b"ok"
    equal(memory[:3], b"ok2")


@check
def what_is_written_by_memory_alone_is_in_the_file(file):
    with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), SIZE) as memory:
        memory[SIZE - 6:] = b"memory"
    equal(read(file), CONTENT[:-6] + b"memory")


# Durability calls, locks, kinds of files.

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


@check
def names_of_one_file_show_the_same(file):
    os.link(file, file + ".twin")
    equal(os.stat(file).st_nlink, 2)
    with open(file + ".twin", "r+b") as twin:
        twin.write(b"twin")
    equal(read(file)[:5], b"twin4")
    equal(os.path.samefile(file, file + ".twin"), True)
    os.unlink(file)
    equal(os.stat(file + ".twin").st_nlink, 1)


@check
def names_from_before_stay_one_file(file):
    equal(os.stat(file).st_nlink, 2)
    equal(os.path.samefile(file, file + TWIN), True)
    with open(file + TWIN, "r+b") as twin:
        twin.write(b"twin")
    equal(read(file)[:5], b"twin4")


@check
def a_removed_name_from_before_counts_no_more(file):
    os.unlink(file + TWIN)
    equal(os.stat(file).st_nlink, 1)


@check
def the_inode_number_survives_the_first_write(file):
    before = os.stat(file)
    opened = os.open(file, os.O_RDWR)
    os.pwrite(opened, b"x", 0)
    for after in (os.stat(file), os.fstat(opened)):
        equal((after.st_ino, after.st_dev), (before.st_ino, before.st_dev))


@check
def times_are_kept_to_the_nanosecond_and_move_with_writes(file):
    os.utime(file, ns=(1_000_000_001, 1_234_567_890_123_456_789))
    equal(os.stat(file).st_mtime_ns, 1_234_567_890_123_456_789)
    read(file)
    equal(os.stat(file).st_mtime_ns, 1_234_567_890_123_456_789)
    with open(file, "ab") as opened:
        opened.write(b"x")
    assert os.stat(file).st_mtime_ns > 1_500_000_000_000_000_000


@check
def holes_are_holes(file):
    opened = os.open(file, os.O_RDWR | os.O_TRUNC)
    os.pwrite(opened, b"end", 1 << 20)
    assert os.fstat(opened).st_blocks * 512 < 1 << 19, "a hole takes room"
    equal(os.lseek(opened, 1 << 20, os.SEEK_HOLE), (1 << 20) + 3)
    equal(os.lseek(opened, 0, os.SEEK_DATA), 1 << 20)
    os.pwrite(opened, b"x" * 65536, 0)
    equal(LIBC.fallocate(opened, 3, ctypes.c_long(4096), ctypes.c_long(8192)), 0)
    equal(os.pread(opened, 4, 4094), b"xx\0\0")
    os.posix_fallocate(opened, 0, (1 << 20) + 100)
    equal(os.fstat(opened).st_size, (1 << 20) + 100)


@check
def ranges_are_copied_within_the_kernel(file):
    source, target = os.open(file, os.O_RDONLY), os.open(file + ".copy", os.O_CREAT | os.O_RDWR)
    equal(os.copy_file_range(source, target, 100, 5), 100)
    equal(read(file + ".copy"), CONTENT[5:105])


@check
def files_are_sent_within_the_kernel(file):
    source, target = os.open(file, os.O_RDONLY), os.open(file + ".copy", os.O_CREAT | os.O_RDWR)
    equal(os.sendfile(target, source, 0, SIZE), SIZE)
    equal(read(file + ".copy"), CONTENT)


@check
def copying_and_moving_tools_cope(file):
    shutil.copy2(file, file + ".python")
    subprocess.check_call(["cp", "-a", file, file + ".cp"])
    subprocess.check_call(["mv", file + ".cp", file + ".mv"])
    directory = os.path.dirname(file)
    subprocess.check_call(["cp", "-a", directory, directory + ".copy"])
    for name in ("file", "file.python", "file.mv"):
        equal(read(directory + ".copy/" + name), CONTENT)


@check
def one_directory_is_one_filesystem(file):
    write(file + ".new", b"new")
    directory = os.path.dirname(file)
    devices = {os.lstat(path).st_dev for path in (directory, file, file + ".new")}
    equal(len(devices), 1)
    listed = ["tar", "-C", directory, "--one-file-system", "-cf", "-", "."]
    packed = subprocess.run(listed, capture_output=True, check=True).stdout
    names = subprocess.run(["tar", "-tf", "-"], input=packed, capture_output=True, check=True).stdout
    equal(sorted(names.split()), [b"./", b"./file", b"./file.new"])


@check
def extended_attributes_are_kept(file):
    equal(os.listxattr(file) + os.listxattr(os.path.dirname(file)), [])
    os.setxattr(file, "user.one", b"1")
    os.setxattr(file, "user.two", b"2")
    os.setxattr(os.path.dirname(file), "user.three", b"3")
    fails(errno.EEXIST, os.setxattr, file, "user.one", b"", os.XATTR_CREATE)
    equal(sorted(os.listxattr(file)), ["user.one", "user.two"])
    os.removexattr(file, "user.one")
    fails(errno.ENODATA, os.getxattr, file, "user.one")
    equal(os.getxattr(file, "user.two"), b"2")
    equal(os.listxattr(os.path.dirname(file)), ["user.three"])


@check
def an_attribute_that_is_not_there_is_missing(file):
    fails(errno.ENODATA, os.getxattr, file, "user.none")


@check
def fifos_and_sockets_connect(file):
    os.mkfifo(file + ".fifo")
    child = os.fork()
    if child == 0:
        write(file + ".fifo", b"through")
        os._exit(0)
    equal(read(file + ".fifo"), b"through")
    equal(os.waitpid(child, 0)[1], 0)
    # A socket's address is short; a mounted directory's path may not be.
    os.chdir(os.path.dirname(file))
    server, client = (socket.socket(socket.AF_UNIX) for _ in range(2))
    server.bind("s")
    server.listen()
    client.connect("s")
    client.send(b"hello")
    equal(server.accept()[0].recv(5), b"hello")


@check
def names_may_be_long_and_of_any_bytes(file):
    directory = os.fsencode(os.path.dirname(file))
    names = sorted([b"file", b"x" * 255, b"\xff\xfe", b"new\nline", " ü".encode(), b"\\"])
    for name in names:
        if name != b"file":
            write(directory + b"/" + name, name)
    equal(sorted(os.listdir(directory)), names)
    fails(errno.ENAMETOOLONG, write, directory + b"/" + b"x" * 256, b"")


@check
def a_running_program_is_not_written(file):
    shutil.copy("/bin/sleep", file)
    os.chmod(file, 0o755)
    child = subprocess.Popen([file, "60"])
    try:
        fails(errno.ETXTBSY, os.open, file, os.O_WRONLY)
        os.unlink(file)
        write(file, b"a new one")
    finally:
        child.kill()
        child.wait()


@check
def opening_says_what_is_in_the_way(file):
    fails(errno.EEXIST, os.open, file, os.O_CREAT | os.O_EXCL)
    os.symlink("file", file + ".link")
    fails(errno.ELOOP, os.open, file + ".link", os.O_NOFOLLOW)
    fails(errno.EEXIST, os.open, file + ".link", os.O_CREAT | os.O_EXCL)
    fails(errno.ENOTDIR, os.open, file, os.O_DIRECTORY)
    fails(errno.EISDIR, os.open, os.path.dirname(file), os.O_WRONLY)
    fails(errno.ENOTDIR, os.open, file + "/x", os.O_RDONLY)


@check
def three_hundred_files_are_open_at_once(file):
    opened = []
    for number in range(300):
        name = "%s.%d" % (file, number)
        opened.append(os.open(name, os.O_CREAT | os.O_RDWR))
        os.write(opened[-1], name.encode())
        os.unlink(name)
    for number, one in enumerate(opened):
        equal(os.pread(one, 1000, 0), ("%s.%d" % (file, number)).encode())
        os.close(one)


def prepare(top):
    os.makedirs(top, exist_ok=True)
    for name in CHECKS:
        os.mkdir(os.path.join(top, name))
        write(os.path.join(top, name, "file"), CONTENT)
    for function in (names_from_before_stay_one_file, a_removed_name_from_before_counts_no_more):
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
            place = traceback.extract_tb(error.__traceback__)[1].lineno
            os.write(into, ("line %d: %s" % (place, error or type(error).__name__)).encode()[:4000])
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
