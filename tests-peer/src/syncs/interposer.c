/* Loaded before the C library into the process under test (LD_PRELOAD). Traces the process's writes
 * and flushes of the pool's file (by system calls and by io_uring), their completions, and answers
 * to hosts. It has no effect on the process, except that it can refuse io_uring.
 *
 *   W id offset bytes durable head,head,...   a write, with the first 8 bytes of each 4 KiB
 *   F id                                      a flush of the whole file
 *   D id result                               the completion of a write or flush
 *   A opcode                                  a PDU with this opcode is sent to a host
 *   R descriptor                              an io_uring was created
 *   X what                                    an operation that is not supported here
 *
 * A line is in the trace before its operation continues. TRACE_FILE is the path of the trace,
 * TRACE_POOL that of the pool's file; TRACE_NO_URING refuses io_uring. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define RINGS 64
#define SLOTS 4096
#define LINE (1 << 20)

struct ring {
    int fd;
    struct io_uring_params params;
    char *sq, *cq, *sqes;
    uint32_t sq_seen, cq_seen;
    /* The id of the transfer of each `user_data`. */
    uint64_t ids[SLOTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring rings[RINGS];
static int ring_count;
static uint64_t next_id = 1;
static int trace = -1;
static struct stat pool;
static int pool_known;
static char line[LINE];

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }
#define REAL(type, name) ((type)real(name))

typedef ssize_t (*write_fn)(int, const void *, size_t);

static void put(size_t length) {
    if (trace < 0) {
        const char *path = getenv("TRACE_FILE");
        trace = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        if (trace < 0)
            abort();
    }
    if (REAL(write_fn, "write")(trace, line, length) != (ssize_t)length)
        abort();
}

#define TELL(...) put((size_t)snprintf(line, LINE, __VA_ARGS__))

static int is_pool(int fd) {
    struct stat found;
    const char *path = getenv("TRACE_POOL");
    if (!pool_known)
        pool_known = path && stat(path, &pool) == 0;
    return pool_known && fstat(fd, &found) == 0 && found.st_dev == pool.st_dev &&
           found.st_ino == pool.st_ino;
}

static void tell_write(uint64_t id, const struct iovec *vectors, size_t count, uint64_t offset,
                       int durable) {
    uint64_t bytes = 0;
    for (size_t at = 0; at < count; at++)
        bytes += vectors[at].iov_len;
    size_t length = (size_t)snprintf(line, LINE, "W %llu %llu %llu %d ", (unsigned long long)id,
                                     (unsigned long long)offset, (unsigned long long)bytes,
                                     durable);
    for (size_t at = 0; at < count; at++)
        for (size_t from = 0; from + 8 <= vectors[at].iov_len && length + 32 < LINE; from += 4096) {
            uint64_t head;
            memcpy(&head, (const char *)vectors[at].iov_base + from, 8);
            length += (size_t)snprintf(line + length, LINE - length, "%016llx,",
                                       (unsigned long long)head);
        }
    line[length++] = '\n';
    put(length);
}

/* Traces completions since the last call. */
static void ended(void) {
    for (int at = 0; at < ring_count; at++) {
        struct ring *ring = &rings[at];
        if (!ring->cq)
            continue;
        struct io_cqring_offsets *offsets = &ring->params.cq_off;
        uint32_t tail = __atomic_load_n((uint32_t *)(ring->cq + offsets->tail), __ATOMIC_ACQUIRE);
        uint32_t mask = *(uint32_t *)(ring->cq + offsets->ring_mask);
        struct io_uring_cqe *entries = (struct io_uring_cqe *)(ring->cq + offsets->cqes);
        for (; ring->cq_seen != tail; ring->cq_seen++) {
            struct io_uring_cqe *entry = &entries[ring->cq_seen & mask];
            uint64_t id = entry->user_data < SLOTS ? ring->ids[entry->user_data] : 0;
            if (id)
                TELL("D %llu %d\n", (unsigned long long)id, entry->res);
        }
    }
}

/* Traces submissions to a ring since the last call. */
static void begun(struct ring *ring) {
    if (!ring->sq || !ring->sqes)
        return;
    struct io_sqring_offsets *offsets = &ring->params.sq_off;
    uint32_t tail = __atomic_load_n((uint32_t *)(ring->sq + offsets->tail), __ATOMIC_ACQUIRE);
    uint32_t mask = *(uint32_t *)(ring->sq + offsets->ring_mask);
    uint32_t *array = (uint32_t *)(ring->sq + offsets->array);
    for (; ring->sq_seen != tail; ring->sq_seen++) {
        struct io_uring_sqe *entry =
            (struct io_uring_sqe *)ring->sqes + array[ring->sq_seen & mask];
        uint64_t id = next_id++;
        if (entry->user_data >= SLOTS) {
            TELL("X user data %llu\n", (unsigned long long)entry->user_data);
            continue;
        }
        ring->ids[entry->user_data] = 0;
        switch (entry->opcode) {
        case IORING_OP_NOP:
        case IORING_OP_READV:
            break;
        case IORING_OP_WRITEV:
            ring->ids[entry->user_data] = id;
            tell_write(id, (const struct iovec *)(uintptr_t)entry->addr, entry->len, entry->off,
                       (entry->rw_flags & (RWF_DSYNC | RWF_SYNC)) != 0);
            break;
        case IORING_OP_FSYNC:
            ring->ids[entry->user_data] = id;
            TELL("F %llu\n", (unsigned long long)id);
            break;
        default:
            TELL("X io_uring operation %d\n", entry->opcode);
        }
    }
}

static struct ring *ring_of(int fd) {
    for (int at = ring_count; at-- > 0;)
        if (rings[at].fd == fd)
            return &rings[at];
    return NULL;
}

long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int at = 0; at < 6; at++)
        a[at] = va_arg(list, long);
    va_end(list);
    typedef long (*syscall_fn)(long, ...);
    syscall_fn call = REAL(syscall_fn, "syscall");
    if (number == SYS_io_uring_setup && getenv("TRACE_NO_URING")) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_io_uring_enter) {
        pthread_mutex_lock(&lock);
        ended();
        struct ring *ring = ring_of((int)a[0]);
        if (ring)
            begun(ring);
        pthread_mutex_unlock(&lock);
    }
    long result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_uring_setup && result >= 0) {
        pthread_mutex_lock(&lock);
        if (ring_count < RINGS) {
            struct ring *ring = &rings[ring_count++];
            memset(ring, 0, sizeof *ring);
            ring->fd = (int)result;
            ring->params = *(struct io_uring_params *)a[1];
            TELL("R %d\n", ring->fd);
        } else
            TELL("X too many rings\n");
        pthread_mutex_unlock(&lock);
    }
    return result;
}

static void *mapped(const char *name, void *at, size_t length, int protection, int flags, int fd,
                    off_t offset) {
    typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);
    char *found = REAL(mmap_fn, name)(at, length, protection, flags, fd, offset);
    if (fd < 0 || found == MAP_FAILED || !ring_count)
        return found;
    pthread_mutex_lock(&lock);
    struct ring *ring = ring_of(fd);
    if (ring) {
        if (offset == IORING_OFF_SQ_RING) {
            ring->sq = found;
            if (ring->params.features & IORING_FEAT_SINGLE_MMAP)
                ring->cq = found;
        } else if (offset == IORING_OFF_CQ_RING)
            ring->cq = found;
        else if (offset == IORING_OFF_SQES)
            ring->sqes = found;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return mapped("mmap", at, length, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return mapped("mmap64", at, length, protection, flags, fd, offset);
}

/* Forgets a closed ring, because its descriptor may be reused. */
int close(int fd) {
    typedef int (*close_fn)(int);
    pthread_mutex_lock(&lock);
    struct ring *ring = ring_of(fd);
    if (ring) {
        ended();
        ring->fd = -1;
        ring->sq = ring->cq = ring->sqes = NULL;
    }
    pthread_mutex_unlock(&lock);
    return REAL(close_fn, "close")(fd);
}

/* Traces completions before the memory of a ring is unmapped. */
int munmap(void *at, size_t length) {
    typedef int (*munmap_fn)(void *, size_t);
    if (ring_count) {
        pthread_mutex_lock(&lock);
        for (int index = 0; index < ring_count; index++) {
            struct ring *ring = &rings[index];
            if (at == ring->sq || at == ring->cq || at == ring->sqes) {
                ended();
                ring->sq = ring->cq = ring->sqes = NULL;
            }
        }
        pthread_mutex_unlock(&lock);
    }
    return REAL(munmap_fn, "munmap")(at, length);
}

static uint64_t write_begins(const struct iovec *vectors, size_t count, off_t offset, int durable) {
    pthread_mutex_lock(&lock);
    ended();
    uint64_t id = next_id++;
    tell_write(id, vectors, count, (uint64_t)offset, durable);
    pthread_mutex_unlock(&lock);
    return id;
}

static void call_ended(uint64_t id, long result) {
    int kept = errno;
    pthread_mutex_lock(&lock);
    TELL("D %llu %ld\n", (unsigned long long)id, result < 0 ? (long)-kept : result);
    pthread_mutex_unlock(&lock);
    errno = kept;
}

ssize_t pwritev2(int fd, const struct iovec *vectors, int count, off_t offset, int flags) {
    typedef ssize_t (*fn)(int, const struct iovec *, int, off_t, int);
    fn call = REAL(fn, "pwritev2");
    if (!is_pool(fd))
        return call(fd, vectors, count, offset, flags);
    int durable = (flags & (RWF_DSYNC | RWF_SYNC)) != 0;
    uint64_t id = write_begins(vectors, (size_t)count, offset, durable);
    ssize_t result = call(fd, vectors, count, offset, flags);
    call_ended(id, result);
    return result;
}

ssize_t pwritev64v2(int fd, const struct iovec *vectors, int count, off_t offset, int flags) {
    return pwritev2(fd, vectors, count, offset, flags);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    typedef ssize_t (*fn)(int, const void *, size_t, off_t);
    fn call = REAL(fn, "pwrite64");
    if (!is_pool(fd))
        return call(fd, bytes, length, offset);
    struct iovec one = {(void *)bytes, length};
    uint64_t id = write_begins(&one, 1, offset, 0);
    ssize_t result = call(fd, bytes, length, offset);
    call_ended(id, result);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite64(fd, bytes, length, offset);
}

static int flushed(const char *name, int fd) {
    typedef int (*fn)(int);
    fn call = REAL(fn, name);
    if (!is_pool(fd))
        return call(fd);
    pthread_mutex_lock(&lock);
    ended();
    uint64_t id = next_id++;
    TELL("F %llu\n", (unsigned long long)id);
    pthread_mutex_unlock(&lock);
    int result = call(fd);
    call_ended(id, result);
    return result;
}

int fdatasync(int fd) { return flushed("fdatasync", fd); }
int fsync(int fd) { return flushed("fsync", fd); }

/* Traces data sent to a socket: a PDU, if it has the length of a header. */
static void answers(int fd, const struct iovec *vectors, size_t count) {
    struct stat found;
    if (!count || vectors[0].iov_len < 48 || fstat(fd, &found) || !S_ISSOCK(found.st_mode))
        return;
    int kept = errno;
    pthread_mutex_lock(&lock);
    ended();
    TELL("A %02x\n", *(unsigned char *)vectors[0].iov_base);
    pthread_mutex_unlock(&lock);
    errno = kept;
}

ssize_t writev(int fd, const struct iovec *vectors, int count) {
    typedef ssize_t (*fn)(int, const struct iovec *, int);
    answers(fd, vectors, (size_t)count);
    return REAL(fn, "writev")(fd, vectors, count);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    struct iovec one = {(void *)bytes, length};
    if (fd != trace)
        answers(fd, &one, 1);
    return REAL(write_fn, "write")(fd, bytes, length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    typedef ssize_t (*fn)(int, const void *, size_t, int);
    struct iovec one = {(void *)bytes, length};
    answers(fd, &one, 1);
    return REAL(fn, "send")(fd, bytes, length, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    typedef ssize_t (*fn)(int, const struct msghdr *, int);
    answers(fd, message->msg_iov, message->msg_iovlen);
    return REAL(fn, "sendmsg")(fd, message, flags);
}
