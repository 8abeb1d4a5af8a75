"""Names that go while the file is open, and renames with flags."""
import errno
import os
import shutil

from base import CONTENT, EXCHANGE, NOREPLACE, SIZE, check, equal, fails, read, rename, write


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
