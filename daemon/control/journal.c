/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION /* every line comes from this one place */
#include <systemd/sd-journal.h>
#include <unistd.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static char journal_node[80];

/* Appends "FIELD=word" when the line has the key followed by a word. */
static void add_field(struct iovec *iov, int *n, char *buf, size_t size, const char *line,
                      const char *key, const char *field)
{
    const char *at = strstr(line, key);

    if (!at)
        return;
    at += strlen(key);
    int len = (int)strcspn(at, " :,");
    if (len == 0)
        return;
    int total = snprintf(buf, size, "%s=%.*s", field, len, at);
    if (total > 0 && (size_t)total < size)
        iov[(*n)++] = (struct iovec){buf, (size_t)total};
}

void journal_line(int level, const char *line)
{
    char message[2100], priority[32], job[64], rank[64], channel[96],
        identifier[] = "SYSLOG_IDENTIFIER=motetd";
    struct iovec iov[8];
    int n = 0;

    iov[n++] =
        (struct iovec){message, (size_t)snprintf(message, sizeof message, "MESSAGE=%.2000s", line)};
    iov[n++] =
        (struct iovec){priority, (size_t)snprintf(priority, sizeof priority, "PRIORITY=%d", level)};
    iov[n++] = (struct iovec){identifier, sizeof identifier - 1};
    iov[n++] = (struct iovec){journal_node, strlen(journal_node)};
    add_field(iov, &n, job, sizeof job, line, "job ", "MOTET_JOB");
    add_field(iov, &n, rank, sizeof rank, line, "rank ", "MOTET_RANK");
    add_field(iov, &n, channel, sizeof channel, line, "channel ", "MOTET_CHANNEL");
    /* Where there is no journal the library says that all went well. */
    if (access(JOURNAL_SOCKET, F_OK) < 0 || sd_journal_sendv(iov, n) < 0)
        dprintf(STDERR_FILENO, "<%d>%s: %.2000s\n", level, journal_node + strlen("MOTET_NODE="),
                line);
}

bool journal_open(const char *node_name)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    /* The variable is inherited by anything started from a service; only the descriptor tells
     * whether it is true here. */
    if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 ||
        fstat(STDERR_FILENO, &st) < 0 || st.st_dev != device || st.st_ino != inode)
        return false;
    snprintf(journal_node, sizeof journal_node, "MOTET_NODE=%s", node_name);
    return true;
}
