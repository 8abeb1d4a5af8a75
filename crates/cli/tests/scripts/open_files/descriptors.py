"""Descriptors."""
import os

from base import CONTENT, SIZE, check, elsewhere, equal, read, write


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
