"""Mapped memory."""
import mmap
import os

from base import CONTENT, SIZE, check, elsewhere, equal, read


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
