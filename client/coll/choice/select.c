/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/choice/select.h"

#include "client/client.h"
#include "client/coll/choice/name.h"
#include "client/coll/choice/table.h"
#include "client/coll/family/coll.h"
#include "client/coll/topology/node_groups.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/process/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "MOTET_COLL_"

struct select_state {
    struct table table;        /* rules of the file */
    int forced[COLL_FAMILIES]; /* enum algorithm_name, or -1 */
};
static struct select_state select_first;
static struct select_state *select_here = &select_first;
CLIENT_PART(select_here, select_first);

static struct rules_facts select_facts(const struct schedule *s, MPI_Count n_bytes, bool regular)
{
    struct rules_facts facts = {.n_ranks = s->view.size,
                                .shape = RULES_ONE_NODE,
                                .shared_bytes = schedule_has_steps(s) ? node_max_bytes() : -1,
                                .n_bytes = n_bytes,
                                .regular = regular};
    const struct shape *c = comm_is_inter(s->view.comm) ? NULL : coll_shape_of(s->view.comm);
    if (!c || c->n_nodes == 1 || s->view.map == c->members)
        return facts;
    bool whole = !s->view.map, networks = c->networks->n_groups > 1;
    facts.shape = networks && whole ? RULES_SEVERAL_NETWORKS : RULES_SEVERAL_NODES;
    facts.has_nodes = whole && s->view.size > 2 && c->n_nodes < s->view.size;
    facts.has_networks = whole && s->view.size > 2 && networks;
    return facts;
}

/* Where the first rule of a family for so many ranks is one in the memory of the node, short calls
 * need not read the rules. Without memory all of them do. */
static void select_quick(struct coll_comm *c, int size)
{
    c->quick = malloc(COLL_FAMILIES * sizeof *c->quick);
    for (int family = 0; c->quick && family < COLL_FAMILIES; family++) {
        enum algorithm_name name;
        bool own = select_here->forced[family] < 0 && select_here->table.n[family] == 0;
        MPI_Count most =
            rules_quick(rules_of((enum coll_family)family), size, node_max_bytes(), &name);
        c->quick[family] = (struct coll_quick){&algorithm_table[name], own ? most : -1};
    }
}

const struct algorithm *select_algorithm(enum coll_family family, const struct schedule *s,
                                         MPI_Count n_bytes, bool regular)
{
    struct coll_comm *c = s->view.comm->coll;
    struct rules rules = rules_of(family);
    struct rules_facts facts = select_facts(s, n_bytes, regular);
    int name = select_here->forced[family];
    if (c && !c->quick)
        select_quick(c, s->view.comm->size);
    if (name < 0 || !rules_fits((enum algorithm_name)name, &facts))
        name = rules_first(
            (struct rules){select_here->table.rules[family], select_here->table.n[family]}, &facts);
    if (name < 0)
        name = rules_first(rules, &facts);
    return &algorithm_table[name];
}

static void select_forget(struct comm *comm)
{
    struct coll_comm *c = comm ? comm->coll : NULL;

    if (c) {
        free(c->quick);
        c->quick = NULL;
    }
    if (comm && comm->local_comm)
        select_forget(comm->local_comm);
}

static void select_forget_object(struct object *object, void *arg)
{
    (void)arg;
    if (object->kind == OBJECT_COMM)
        select_forget((struct comm *)object);
}

void select_force(enum coll_family family, const char *algorithm)
{
    select_here->forced[family] = algorithm ? name_find(family, algorithm) : -1;
    /* What short calls take without asking was chosen by what held before. */
    select_forget(comm_here->world);
    select_forget(comm_here->self);
    handle_each(select_forget_object, NULL);
}

static int select_refuse(const char *variable, const char *value, const char *what,
                         const char *known)
{
    return err_set(MPI_ERR_OTHER, "%s=%s: there is no %s of this name (%s)", variable, value, what,
                   known);
}

/* One variable of the environment that begins with the prefix. */
static int select_read(const char *variable)
{
    char known[256], name[64];
    const char *end = strchr(variable, '='), *value = end + 1;
    if ((size_t)(end - variable) >= sizeof name || !*value)
        return MPI_SUCCESS;
    snprintf(name, sizeof name, "%.*s", (int)(end - variable), variable);
    if (strcmp(name, PREFIX "TABLE") == 0)
        return MPI_SUCCESS;
    int family = name_find_family(name + strlen(PREFIX));
    if (family < 0) {
        name_list_families(known, sizeof known);
        return select_refuse(name, value, "collective", known);
    }
    select_here->forced[family] = name_find((enum coll_family)family, value);
    if (select_here->forced[family] >= 0)
        return MPI_SUCCESS;
    name_list((enum coll_family)family, known, sizeof known);
    return select_refuse(name, value, "algorithm of this collective", known);
}

int select_init(void)
{
    for (int family = 0; family < COLL_FAMILIES; family++)
        select_here->forced[family] = -1;
    for (char **variable = environ; *variable; variable++) {
        int err =
            strncmp(*variable, PREFIX, strlen(PREFIX)) == 0 ? select_read(*variable) : MPI_SUCCESS;
        if (err)
            return err;
    }
    for (int family = 0; family < COLL_FAMILIES; family++) {
        char variable[32];
        snprintf(variable, sizeof variable, PREFIX "%s", name_of_family((enum coll_family)family));
        const char *value = setting_of(variable);
        select_here->forced[family] =
            value && *value ? name_find((enum coll_family)family, value) : -1;
    }
    return table_load(&select_here->table);
}
