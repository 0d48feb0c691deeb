/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet as it comes from the network: verified as it is, and once more with its check sum put
 * right, so that what lies behind the check sum is reached too. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "tests/fuzz/fuzz.h"

static void judge(const struct wire_header *h, size_t n)
{
    int rc = wire_verify(h, n);

    if (rc < 0 || rc > WIRE_E_LENGTH || wire_error(rc) == NULL)
        abort();
    if (rc == 0 &&
        (n < sizeof *h || h->len != n - sizeof *h || h->type < WIRE_DATA || h->type > WIRE_REFUSE))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct wire_header h;

    memset(&h, 0, sizeof h);
    memcpy(&h, data, n < sizeof h ? n : sizeof h);
    judge(&h, n);
    h.magic = WIRE_MAGIC;
    h.version = WIRE_VERSION;
    wire_seal(&h);
    judge(&h, n);
    h.len = (uint32_t)(n - sizeof h);
    wire_seal(&h);
    judge(&h, n);
    return 0;
}
