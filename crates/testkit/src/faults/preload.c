/* A disk that fails: preloaded into a test's child process, it lets one write or sync of a directory's files fail.
 *
 * AVFS_FAULT="DIR:OPERATION:NUMBER:KIND" with OPERATION write, sync or any, and KIND
 *   eio, enospc, edquot   the call fails (a sync once; writes from then on until 8 have failed)
 *   short         half is written, and the call says so
 *   torn          half is written, and the process ends
 *   dropped       the call says that all is written, and nothing is
 *   end           the process ends before the call
 * AVFS_FAULT_COUNT=FILE gets the number of calls seen, when the process exits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum operation { WRITE = 1, SYNC = 2 };

static char directory[4096], kind[16];
static int wanted;
static long number;
static atomic_long seen, failed;

__attribute__((constructor)) static void begin(void) {
    char word[16];
    const char *fault = getenv("AVFS_FAULT");
    if (!fault || sscanf(fault, "%4095[^:]:%15[^:]:%ld:%15s", directory, word, &number, kind) != 4)
        return;
    wanted = !strcmp(word, "write") ? WRITE : !strcmp(word, "sync") ? SYNC : WRITE | SYNC;
}

__attribute__((destructor)) static void finish(void) {
    const char *path = getenv("AVFS_FAULT_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", (long)seen);
        fclose(file);
    }
}

static int concerns(int fd) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    return length > 0 && !strncmp(path, directory, strlen(directory));
}

/* Whether this very call is to fail. */
static int fails(enum operation operation, int fd) {
    if (!(wanted & operation) || !concerns(fd))
        return 0;
    long now = atomic_fetch_add(&seen, 1) + 1;
    if (now < number)
        return 0;
    int lasting = operation == WRITE && (!strcmp(kind, "eio") || !strcmp(kind, "enospc") || !strcmp(kind, "edquot"));
    if (!lasting && now > number)
        return 0;
    if (lasting && atomic_fetch_add(&failed, 1) >= 8)
        return 0;
    if (!strcmp(kind, "end"))
        _exit(9);
    errno = !strcmp(kind, "enospc") ? ENOSPC : !strcmp(kind, "edquot") ? EDQUOT : EIO;
    return 1;
}

static ssize_t broken(int fd, const void *bytes, size_t length, off64_t place, int placed) {
    static ssize_t (*real_write)(int, const void *, size_t);
    static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
    if (!real_write) {
        real_write = dlsym(RTLD_NEXT, "write");
        real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    }
    int error = errno;
    if (fails(WRITE, fd)) {
        if (!strcmp(kind, "dropped")) {
            if (!placed)
                lseek64(fd, length, SEEK_CUR);
            return length;
        }
        if (strcmp(kind, "short") && strcmp(kind, "torn"))
            return -1;
        length = length / 2 ? length / 2 : length;
        errno = error;
        ssize_t half = placed ? real_pwrite(fd, bytes, length, place) : real_write(fd, bytes, length);
        if (!strcmp(kind, "torn"))
            _exit(9);
        return half;
    }
    return placed ? real_pwrite(fd, bytes, length, place) : real_write(fd, bytes, length);
}

ssize_t write(int fd, const void *bytes, size_t length) { return broken(fd, bytes, length, 0, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t place) {
    return broken(fd, bytes, length, place, 1);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t place) {
    return broken(fd, bytes, length, place, 1);
}

static int sync_or_fail(const char *name, int fd) {
    if (fails(SYNC, fd))
        return -1;
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd) { return sync_or_fail("fsync", fd); }
int fdatasync(int fd) { return sync_or_fail("fdatasync", fd); }
