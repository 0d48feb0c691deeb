/* SPDX-License-Identifier: BSD-3-Clause */
/* What a daemon sends to mpiexec: frames out of a stream, and the messages in them. */
#include "launcher/mpiexec/frame_stream.h"
#include "proto/control.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

static void unpack(uint16_t type, const uint8_t *body, uint32_t n)
{
    static const struct {
        uint16_t type;
        const ProtobufCMessageDescriptor *descriptor;
    } known[] = {{MOTET__FRAME_TYPE__SUBMITTED, &motet__submitted__descriptor},
                 {MOTET__FRAME_TYPE__STDIO, &motet__stdio__descriptor},
                 {MOTET__FRAME_TYPE__STDIO_WINDOW, &motet__stdio_window__descriptor},
                 {MOTET__FRAME_TYPE__RANK_EXIT, &motet__rank_exit__descriptor},
                 {MOTET__FRAME_TYPE__JOB_END, &motet__job_end__descriptor},
                 {MOTET__FRAME_TYPE__SPAWN, &motet__spawn__descriptor},
                 {MOTET__FRAME_TYPE__SPAWN_KILL, &motet__spawn_kill__descriptor}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].type == type)
            protobuf_c_message_free_unpacked(
                protobuf_c_message_unpack(known[i].descriptor, NULL, n, body), NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct frame_stream session = {.fd = -1};
    const uint8_t *body;
    uint16_t type;
    uint32_t len;
    size_t total = 0;

    bytes_append(&session.in, data, n);
    while (frame_stream_next(&session, &type, &body, &len) > 0) {
        total += len + 8;
        unpack(type, body, len);
    }
    if (total > n)
        abort();
    frame_stream_close(&session);
    return 0;
}
