/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_join (MPI-5.0 section 11.10.5). Both sides send a random number over the socket; the one
 * with the lower number opens a port, sends its name and accepts there, the other connects.
 */
#include "client/abi/semantics.h"
#include "client/dynamic/ports.h"
#include "client/object/err.h"
#include "client/progress/progress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define JOIN_MAGIC UINT64_C(0x4d6f7465744a6f69)

struct join_hello {
    uint64_t magic, number[2];
};

static int join_error(const char *what)
{
    return err_set(MPI_ERR_OTHER, "the socket: %s", what);
}

/* All of it, while the library goes on. */
static int join_transfer(int fd, void *bytes, size_t n, bool sends)
{
    struct progress_wait wait;
    size_t at = 0;
    int err = MPI_SUCCESS;

    progress_wait_begin(&wait);
    while (!err && at < n) {
        ssize_t got = sends ? send(fd, (char *)bytes + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : recv(fd, (char *)bytes + at, n - at, MSG_DONTWAIT);
        if (got > 0)
            at += (size_t)got;
        else if (got == 0)
            err = join_error("the other side has closed it");
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            progress_wait_step(&wait);
        else if (errno != EINTR)
            err = join_error(strerror(errno));
    }
    progress_wait_end(&wait);
    return err;
}

static int join_accept(int fd, struct comm **ret_intercomm)
{
    struct attach_ask ask = {.wish = ATTACH_OPEN_PORT};
    struct foreign_request q, closed;
    char port[ATTACH_PORT_BYTES] = "";
    int err = ports_ask(&ask, &q);

    if (!err)
        memcpy(port, q.spawned.port, sizeof port);
    /* An empty name tells the other side that it failed here. */
    int sent = join_transfer(fd, port, sizeof port, true);
    if (err)
        return err;
    err = sent ? sent : ports_meet(ATTACH_ACCEPT, port, 0, 0, comm_here->self, ret_intercomm);
    ask.wish = ATTACH_CLOSE_PORT;
    memcpy(ask.port, port, sizeof ask.port);
    int end = ports_ask(&ask, &closed);
    return err ? err : end;
}

static int join_connect(int fd, struct comm **ret_intercomm)
{
    char port[ATTACH_PORT_BYTES];
    int err = join_transfer(fd, port, sizeof port, false);

    port[sizeof port - 1] = '\0';
    if (!err && !port[0])
        err = join_error("the other side cannot open a port");
    return err ? err : ports_meet(ATTACH_CONNECT, port, 0, 0, comm_here->self, ret_intercomm);
}

int mpi_comm_join(int fd, struct comm **ret_intercomm)
{
    struct join_hello mine = {.magic = JOIN_MAGIC}, theirs;
    int order = 0;

    if (getrandom(mine.number, sizeof mine.number, 0) != (ssize_t)sizeof mine.number)
        return err_set(MPI_ERR_OTHER, "there are no random numbers: %s", strerror(errno));
    int err = join_transfer(fd, &mine, sizeof mine, true);
    if (!err)
        err = join_transfer(fd, &theirs, sizeof theirs, false);
    if (!err && theirs.magic != JOIN_MAGIC)
        err = join_error("the other side does not join, or is another MPI library");
    if (!err)
        order = memcmp(mine.number, theirs.number, sizeof mine.number);
    if (!err && order == 0)
        err = join_error("it leads back to this process");
    if (err)
        return err;
    return order < 0 ? join_accept(fd, ret_intercomm) : join_connect(fd, ret_intercomm);
}
