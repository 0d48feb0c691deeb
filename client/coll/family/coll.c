/* SPDX-License-Identifier: BSD-3-Clause */
/* What the collective engine keeps per communicator: the tags of its calls and the shape of the
 * cluster under it. */
#include "client/coll/family/coll.h"

#include "client/client.h"
#include "client/coll/node/node.h"
#include "client/coll/schedule/coll_request.h"
#include "client/coll/topology/node_groups.h"
#include "client/object/group.h"
#include "client/process/job.h"
#include "client/progress/calls.h"

#include <stdlib.h>

/* Blocking calls, nonblocking calls and persistent operations take turns in ranges of this many
 * tags each. A tag comes round after 16 Mi collectives on one communicator, long after its last
 * message is gone. */
#define TAG_RANGE (1u << 24)

struct coll_state {
    bool ready;
};
static struct coll_state coll_first;
static struct coll_state *coll_here = &coll_first;
CLIENT_PART(coll_here, coll_first);

struct coll_comm *coll_comm_of(struct comm *comm)
{
    if (!comm->coll)
        comm->coll = calloc(1, sizeof *comm->coll);
    return comm->coll;
}

static int next_tag(struct comm *comm, enum coll_form form)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c)
        return 0;
    c->next_tag[form] = (c->next_tag[form] + 1) % TAG_RANGE;
    calls_collective(comm, (enum calls_form)form, c->next_tag[form]);
    return (int)(form * TAG_RANGE + c->next_tag[form]);
}

int coll_next_tag(struct comm *comm)
{
    return next_tag(comm, COLL_BLOCKING);
}

int coll_next_nonblocking_tag(struct comm *comm)
{
    return next_tag(comm, COLL_NONBLOCKING);
}

int coll_next_persistent_tag(struct comm *comm)
{
    return next_tag(comm, COLL_PERSISTENT);
}

int coll_next_check_tag(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c)
        return 0;
    c->next_check = (c->next_check + 1) % TAG_RANGE;
    return (int)(COLL_FORMS * TAG_RANGE + c->next_check);
}

enum coll_form coll_form_of(int tag)
{
    uint32_t form = (uint32_t)tag / TAG_RANGE;
    return form < COLL_FORMS ? (enum coll_form)form : COLL_FORMS;
}

uint32_t coll_sequence_of(int tag)
{
    return (uint32_t)tag % TAG_RANGE;
}

static void free_shape(struct coll_comm *c)
{
    levels_free(c->nodes);
    levels_free(c->networks);
    free(c->leaders);
    free(c->node_of);
    free(c->members);
    c->nodes = c->networks = NULL;
    c->leaders = c->node_of = c->members = NULL;
    c->shaped = false;
}

static void release_comm(struct comm *comm)
{
    struct coll_comm *c = comm->coll;
    if (!c)
        return;
    comm->coll = NULL;
    shared_close(c);
    if (c->remote)
        free_shape(c->remote);
    free(c->remote);
    free_shape(c);
    free(c);
}

/* Fills node_of and leaders. Nodes are numbered as they appear; `seen` maps job node to that
 * number. */
static bool number_nodes(struct coll_comm *c, const struct group *group)
{
    int max_node = 0;
    for (int i = 0; i < group->size; i++) {
        int node = job_node_of(group->procs[i]);
        if (node > max_node)
            max_node = node;
    }
    int *seen = malloc(((size_t)max_node + 1) * sizeof(int));
    if (!seen)
        return false;
    for (int i = 0; i <= max_node; i++)
        seen[i] = -1;
    int previous = -1;
    c->n_nodes = 0;
    c->in_order = true;
    for (int i = 0; i < group->size; i++) {
        int node = job_node_of(group->procs[i]);
        if (seen[node] < 0) {
            c->leaders[c->n_nodes] = i;
            seen[node] = c->n_nodes++;
        } else if (seen[node] != previous) {
            c->in_order = false;
        }
        previous = c->node_of[i] = seen[node];
    }
    free(seen);
    return true;
}

static void collect_members(struct coll_comm *c, const struct comm *comm)
{
    int mine = c->node_of[comm->rank];
    c->n_members = 0;
    for (int i = 0; i < comm->size; i++) {
        if (c->node_of[i] != mine)
            continue;
        if (i == comm->rank)
            c->my_member = c->n_members;
        c->members[c->n_members++] = i;
    }
}

/* False: no memory. */
static bool find_shape(struct coll_comm *c, const struct group *group)
{
    size_t n = (size_t)group->size;
    c->leaders = malloc(n * sizeof(int));
    c->node_of = malloc(n * sizeof(int));
    c->members = malloc(n * sizeof(int));
    c->shaped = c->leaders && c->node_of && c->members && number_nodes(c, group);
    if (c->shaped && c->n_nodes > 1) {
        c->nodes = levels_new(c, group, false);
        c->networks = levels_new(c, group, true);
        c->shaped = c->nodes && c->networks;
    }
    if (!c->shaped)
        free_shape(c);
    return c->shaped;
}

struct coll_comm *coll_shape_of(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c || c->shaped)
        return c;
    if (!find_shape(c, comm->group))
        return NULL;
    collect_members(c, comm);
    return c;
}

const struct coll_comm *coll_remote_shape_of(struct comm *comm)
{
    struct coll_comm *c = coll_comm_of(comm);
    if (!c)
        return NULL;
    if (!c->remote)
        c->remote = calloc(1, sizeof *c->remote);
    return c->remote && (c->remote->shaped || find_shape(c->remote, comm->remote_group)) ? c->remote
                                                                                         : NULL;
}

void coll_init(void)
{
    if (coll_here->ready)
        return;
    coll_here->ready = true;
    comm_on_destroy(release_comm);
    coll_request_init();
}
