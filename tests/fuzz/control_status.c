/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of the status socket. */
#include <stdlib.h>
#include <string.h>

#include "daemon/status/status_request.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct status_request request;
    struct status_refusal why = {0};
    json_t *json = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES, NULL);

    if (!json)
        return 0;
    if (status_request_parse(json, 1000, &request, &why) < 0) {
        if (!why.code || why.text[0] == '\0')
            abort();
    } else if ((request.get == NULL) == (request.set == NULL) || request.limit == 0 ||
               request.limit > STATUS_MAX_ROWS || request.rank < -1) {
        abort();
    }
    json_decref(json);
    return 0;
}
