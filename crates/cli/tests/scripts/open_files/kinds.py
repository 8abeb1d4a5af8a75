"""Links, times, holes, copies, attributes, kinds of files."""
import ctypes
import errno
import os
import shutil
import socket
import subprocess

from base import CONTENT, LIBC, SIZE, TWIN, check, equal, fails, read, write


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
