/* Preloaded into a process: from the n-th operation on files below a folder on, the disk is full, or may not be written.
 *
 * Calls to the C library are counted, so that what libraries write by themselves counts, too. A full disk still lets
 * files be read and removed; a read-only one neither changes nor removes anything. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char place[PATH_MAX];
static long left = -1;      /* operations that still succeed; negative: all of them */
static long done = 0;
static int with = ENOSPC, is_once = 0, is_on = 0, is_torn = 0;

void disk_is_full_after(const char *folder, long operations, int number, int once, int torn) {
    strncpy(place, folder, sizeof place - 1);
    left = operations, with = number, is_once = once, is_torn = torn, done = 0, is_on = 1;
}

/* For a process that is started so: nothing below a folder may be written from the beginning on. */
__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("FULL_DISK_FOLDER");
    if (folder) disk_is_full_after(folder, 0, EROFS, 0, 0);
}

long disk_operations(void) { is_on = 0; return done; }

/* Whether this operation fails. */
static int refused(void) {
    done++;
    if (left < 0) return 0;
    if (left > 0) { left--; return 0; }
    if (is_once) left = -1;
    errno = with;
    return 1;
}

static int below(const char *path) { return !strncmp(path, place, strlen(place)); }

static int is_here(int folder, const char *name) {
    char base[PATH_MAX] = "", whole[2 * PATH_MAX], link[64];
    if (!is_on || !name) return 0;
    if (name[0] == '/') return below(name);
    if (folder == AT_FDCWD) { if (!getcwd(base, sizeof base)) return 0; }
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", base, name);
    return below(whole);
}

/* Whether a descriptor leads below the folder and may be written. */
static int is_ours(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!is_on) return 0;
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define CHANGES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        if (CHANGES(flags) && is_here(AT_FDCWD, path) && refused()) return -1; \
        return real(path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(name); va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        if (CHANGES(flags) && is_here(folder, path) && refused()) return -1; \
        return real(folder, path, flags, mode); \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        REAL(name); \
        if (strpbrk(mode, "wa+") && is_here(AT_FDCWD, path) && refused()) return NULL; \
        return real(path, mode); \
    }
FOPEN(fopen) FOPEN(fopen64)

/* Of a write that meets the end of the disk, half may still be taken. */
ssize_t write(int d, const void *data, size_t size) {
    REAL(write);
    if (!is_ours(d)) return real(d, data, size);
    if (is_torn && left == 0 && size > 1) { is_torn = 0; done++; return real(d, data, size / 2); }
    return refused() ? -1 : real(d, data, size);
}
ssize_t writev(int d, const struct iovec *v, int n) { REAL(writev); return is_ours(d) && refused() ? -1 : real(d, v, n); }
ssize_t pwrite(int d, const void *p, size_t n, off_t at) { REAL(pwrite); return is_ours(d) && refused() ? -1 : real(d, p, n, at); }
ssize_t pwrite64(int d, const void *p, size_t n, off64_t at) { REAL(pwrite64); return is_ours(d) && refused() ? -1 : real(d, p, n, at); }
int fsync(int d) { REAL(fsync); return is_ours(d) && refused() ? -1 : real(d); }
int fdatasync(int d) { REAL(fdatasync); return is_ours(d) && refused() ? -1 : real(d); }
/* It is closed all the same, as a network's file system does that tells only then that there was no room. */
int close(int d) { REAL(close); int fails = is_ours(d) && refused(); int code = real(d); if (fails) errno = with; return fails ? -1 : code; }
int rename(const char *a, const char *b) { REAL(rename); return is_here(AT_FDCWD, b) && refused() ? -1 : real(a, b); }
int renameat(int x, const char *a, int y, const char *b) { REAL(renameat); return is_here(y, b) && refused() ? -1 : real(x, a, y, b); }
int link(const char *a, const char *b) { REAL(link); return is_here(AT_FDCWD, b) && refused() ? -1 : real(a, b); }
int symlink(const char *a, const char *b) { REAL(symlink); return is_here(AT_FDCWD, b) && refused() ? -1 : real(a, b); }
int mkdir(const char *p, mode_t m) { REAL(mkdir); return is_here(AT_FDCWD, p) && refused() ? -1 : real(p, m); }
int mkdirat(int f, const char *p, mode_t m) { REAL(mkdirat); return is_here(f, p) && refused() ? -1 : real(f, p, m); }

static int is_fixed(int folder, const char *path) { return (with == EROFS || with == EACCES) && is_here(folder, path) && refused(); }
int unlink(const char *p) { REAL(unlink); return is_fixed(AT_FDCWD, p) ? -1 : real(p); }
int unlinkat(int f, const char *p, int n) { REAL(unlinkat); return is_fixed(f, p) ? -1 : real(f, p, n); }
int rmdir(const char *p) { REAL(rmdir); return is_fixed(AT_FDCWD, p) ? -1 : real(p); }
int chmod(const char *p, mode_t m) { REAL(chmod); return is_fixed(AT_FDCWD, p) ? -1 : real(p, m); }
