/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cli/bytes.h"
#include "launcher/cli/file.h"
#include "launcher/cli/node_daemon.h"

#define ANSWER_MAX_BYTES (256u << 20)
#define READ_BYTES       (256u << 10)

size_t ask_scan(const char *unix_sockets, unsigned uid, ask_found_fn *found, void *arg)
{
    char prefix[32];
    size_t n = 0;
    size_t prefix_n = (size_t)snprintf(prefix, sizeof prefix, "@motet-%u-", uid);

    for (const char *line = unix_sockets; *line;) {
        size_t len = strcspn(line, "\n");
        const char *name = memrchr(line, ' ', len);
        size_t name_n = name ? (size_t)(line + len - ++name) : 0;
        char text[NODE_DAEMON_PATH_MAX];
        /* Flags 00010000 mark a listening socket; connections of it carry the same name. */
        bool listening = len > 60 && memmem(line, len, " 00010000 ", 10) != NULL;
        if (listening && name_n > prefix_n + 7 && name_n < sizeof text &&
            strncmp(name, prefix, prefix_n) == 0 && strncmp(name + name_n - 7, "-status", 7) == 0) {
            snprintf(text, sizeof text, "%.*s", (int)name_n, name);
            found(arg, text);
            n++;
        }
        line += len + (line[len] == '\n');
    }
    return n;
}

struct found {
    char first[NODE_DAEMON_PATH_MAX];
    char all[512];
};

static void ask_remember(void *arg, const char *name)
{
    struct found *f = arg;
    size_t n = strlen(f->all);

    if (!f->first[0])
        snprintf(f->first, sizeof f->first, "%s", name);
    snprintf(f->all + n, sizeof f->all - n, "%s%s", n ? " " : "", name);
}

static int ask_connect_private(char *why, size_t room)
{
    struct found found = {0};
    char *text;
    int rc = file_read_text("/proc/net/unix", &text);
    size_t n = rc == 0 ? ask_scan(text, geteuid(), ask_remember, &found) : 0;

    if (rc == 0)
        free(text);
    if (n > 1) {
        snprintf(why, room, "several private daemons run, choose one with --socket: %s", found.all);
        return -EEXIST;
    }
    if (n == 0) {
        snprintf(why, room,
                 "no daemon is running here (looked for MOTET_STATUS_SOCKET, motet/status.sock in "
                 "XDG_RUNTIME_DIR and /run, "
                 "and private daemons of this user)");
        return -ENOENT;
    }
    int fd = fd_unix_connect(found.first);
    if (fd < 0)
        snprintf(why, room, "cannot connect to %s: %s", found.first, strerror(-fd));
    return fd;
}

int ask_connect(const char *named, char *why, size_t room)
{
    char path[NODE_DAEMON_PATH_MAX] = "";
    int fd;

    if (named) {
        snprintf(path, sizeof path, "%s", named);
        fd = fd_unix_connect(named);
    } else {
        fd = node_daemon_connect("MOTET_STATUS_SOCKET", "status.sock", path, sizeof path);
        if (fd < 0 && !path[0])
            return ask_connect_private(why, room);
    }
    if (fd < 0)
        snprintf(why, room, "cannot connect to %s: %s", path, strerror(-fd));
    return fd;
}

/* Reads up to the end of the line, which is not part of it. */
static int ask_read_line(int fd, struct bytes *line, uint64_t deadline_ns)
{
    static char part[READ_BYTES];

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = clock_now_ns();
        int ready = now_ns < deadline_ns
                        ? poll(&p, 1, (int)((deadline_ns - now_ns) / CLOCK_NS_PER_MS) + 1)
                        : 0;
        if (ready == 0)
            return -ETIMEDOUT;
        ssize_t got = ready < 0 ? -1 : read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        const char *end = memchr(part, '\n', (size_t)got);
        bytes_append(line, part, end ? (size_t)(end - part) : (size_t)got);
        if (line->failed)
            return -ENOMEM;
        if (end)
            return 0;
        if (line->n > ANSWER_MAX_BYTES)
            return -EMSGSIZE;
    }
}

/* The daemon's words about why it refuses: a text or an object with one. */
static const char *ask_error_text(json_t *error)
{
    static const char *const keys[] = {"message", "text", "reason"};

    for (size_t i = 0; json_is_object(error) && i < sizeof keys / sizeof *keys; i++) {
        json_t *text = json_object_get(error, keys[i]);
        if (json_is_string(text))
            return json_string_value(text);
    }
    return json_is_string(error) ? json_string_value(error) : "refused without a reason";
}

/* What the daemon could not put into its answer. */
static void ask_explain_gaps(json_t *answer, char *text, size_t room)
{
    json_t *errors = json_object_get(answer, "errors"), *error;
    size_t i, n = 0;

    text[0] = '\0';
    json_array_foreach(errors, i, error) {
        const char *node = json_string_value(json_object_get(error, "node"));
        if (n < room)
            n += (size_t)snprintf(text + n, room - n, "%snode %s: %s", i ? "; " : "",
                                  node ? node : "?", ask_error_text(error));
    }
    if (json_is_true(json_object_get(answer, "truncated")) && n < room)
        snprintf(text + n, room - n, "%sthere are more rows (see --limit)", n ? "; " : "");
}

int ask_parse(const char *line, size_t n, json_int_t id, json_t **ret_answer, char *why,
              size_t room)
{
    json_error_t error;
    json_t *answer = json_loadb(line, n, 0, &error);
    int rc = 0;

    json_t *version = json_object_get(answer, "version"),
           *answer_id = json_object_get(answer, "id");
    if (!answer) {
        snprintf(why, room, "the answer is not JSON: %s", error.text);
        rc = -EPROTO;
    } else if (!json_is_integer(version) || json_integer_value(version) != ASK_VERSION) {
        snprintf(
            why, room,
            "the daemon speaks another version of the status protocol than the %d of this motetctl",
            ASK_VERSION);
        rc = -EPROTONOSUPPORT;
    } else if (json_is_integer(answer_id) && json_integer_value(answer_id) != id) {
        snprintf(why, room, "the answer belongs to another request");
        rc = -EPROTO;
    } else if (!json_is_true(json_object_get(answer, "ok"))) {
        snprintf(why, room, "%s", ask_error_text(json_object_get(answer, "error")));
        rc = -EREMOTEIO;
    } else {
        ask_explain_gaps(answer, why, room);
        if (!json_object_get(answer, "data"))
            json_object_set_new(answer, "data", json_array());
        *ret_answer = json_incref(answer);
    }
    json_decref(answer);
    return rc;
}

int ask_daemon(int fd, json_t *request, uint64_t timeout_ns, json_t **ret_answer, char *why,
               size_t room)
{
    uint64_t deadline_ns = clock_now_ns() + timeout_ns;
    json_int_t id = json_integer_value(json_object_get(request, "id"));
    char *text = json_dumps(request, JSON_COMPACT);
    struct bytes line = {0};
    int rc = text ? fd_write_full(fd, text, strlen(text), deadline_ns) : -ENOMEM;

    if (rc == 0)
        rc = fd_write_full(fd, "\n", 1, deadline_ns);
    /* A daemon that wants no connection says so and hangs up before it has read the request. */
    if (rc == 0 || rc == -EPIPE || rc == -ECONNRESET)
        rc = ask_read_line(fd, &line, deadline_ns);
    free(text);
    json_decref(request);
    if (rc < 0)
        snprintf(why, room, "%s",
                 rc == -ETIMEDOUT    ? "the daemon does not answer"
                 : rc == -ECONNRESET ? "the daemon closed the connection"
                                     : strerror(-rc));
    else
        rc = ask_parse(line.n ? bytes_data(&line) : "", line.n, id, ret_answer, why, room);
    bytes_free(&line);
    return rc;
}
