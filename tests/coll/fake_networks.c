/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_networks.h"

#include "client/process/job.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static int n_networks;
static bool on[FAKE_MAX_NETWORKS][FAKE_MAX_NODES];
static int distance[FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS];

/* Shared by all ranks. */
static struct {
    _Atomic long bytes[FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS],
        messages[FAKE_MAX_NETWORKS][FAKE_MAX_NETWORKS];
} * counted;

static bool read_list(const char *list)
{
    for (n_networks = 1;;) {
        char *end;
        long node = strtol(list, &end, 10);
        if (end == list || node < 0 || node >= FAKE_MAX_NODES)
            return false;
        on[n_networks - 1][node] = true;
        if (*end == '\0')
            return true;
        if (*end == '/' && n_networks++ == FAKE_MAX_NETWORKS)
            return false;
        if (*end != '/' && *end != ',')
            return false;
        list = end + 1;
    }
}

static bool joined(int a, int b)
{
    for (int node = 0; node < FAKE_MAX_NODES; node++)
        if (on[a][node] && on[b][node])
            return true;
    return false;
}

bool fake_networks_set(const char *list, int n_job_nodes)
{
    if (!read_list(list))
        return false;
    for (int node = 0; node < n_job_nodes; node++) {
        int n = 0;
        for (int i = 0; i < n_networks; i++)
            n += on[i][node];
        if (n == 0)
            return false;
    }
    for (int a = 0; a < n_networks; a++)
        for (int b = 0; b < n_networks; b++)
            distance[a][b] = a == b ? 0 : joined(a, b) ? 1 : JOB_APART;
    for (int by = 0; by < n_networks; by++)
        for (int a = 0; a < n_networks; a++)
            for (int b = 0; b < n_networks; b++)
                if (distance[a][by] + distance[by][b] < distance[a][b])
                    distance[a][b] = distance[a][by] + distance[by][b];
    counted =
        mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return counted != MAP_FAILED;
}

int fake_networks_n(void)
{
    return n_networks;
}

bool fake_networks_has(int network, int node)
{
    return on[network][node];
}

int fake_networks_distance(int from, int to)
{
    return distance[from][to];
}

void fake_networks_count(int from_node, int to_node, long n_bytes)
{
    int from = -1, to = -1;
    for (int a = 0; a < n_networks; a++)
        for (int b = 0; b < n_networks; b++)
            if (on[a][from_node] && on[b][to_node] &&
                (from < 0 || distance[a][b] < distance[from][to])) {
                from = a;
                to = b;
            }
    while (from != to) {
        int next = 0;
        while (distance[from][next] != 1 || distance[next][to] != distance[from][to] - 1)
            next++;
        atomic_fetch_add(&counted->bytes[from][next], n_bytes);
        atomic_fetch_add(&counted->messages[from][next], 1);
        from = next;
    }
}

void fake_networks_reset(void)
{
    for (int a = 0; a < n_networks; a++) {
        for (int b = 0; b < n_networks; b++) {
            atomic_store(&counted->bytes[a][b], 0);
            atomic_store(&counted->messages[a][b], 0);
        }
    }
}

long fake_networks_bytes(int from, int to)
{
    return atomic_load(&counted->bytes[from][to]);
}

long fake_networks_messages(int from, int to)
{
    return atomic_load(&counted->messages[from][to]);
}
