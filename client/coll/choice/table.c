/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/choice/table.h"

#include "client/coll/choice/name.h"
#include "client/object/err.h"
#include "client/process/setting.h"

#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_FILE MOTET_SYSCONFDIR "/motet/collectives.json"
#define MAX_RULES    1000 /* of one collective */

/* What is being read, for messages. */
struct table_spot {
    const char *file, *family;
    size_t rule;
};

static int table_refuse(const struct table_spot *at, const char *what, const char *value,
                        const char *expected)
{
    return err_set(MPI_ERR_OTHER, "%s: rules.%s[%zu]: %s %s: expected %s", at->file, at->family,
                   at->rule, what, value, expected);
}

static int table_read_number(const struct table_spot *at, const char *key, json_t *value,
                             int64_t least, int64_t most, int64_t *ret_number)
{
    char expected[96];
    if (json_is_integer(value) && json_integer_value(value) >= least &&
        json_integer_value(value) <= most) {
        *ret_number = json_integer_value(value);
        return MPI_SUCCESS;
    }
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)least,
             (long long)most);
    return table_refuse(at, key, "has no such value", expected);
}

static int table_read_shape(const struct table_spot *at, json_t *value, enum rules_shape *ret_shape)
{
    static const struct {
        const char *name;
        enum rules_shape shape;
    } known[] = {{"any", RULES_ANY_SHAPE},
                 {"node", RULES_ONE_NODE},
                 {"nodes", RULES_SEVERAL_NODES},
                 {"networks", RULES_SEVERAL_NETWORKS}};
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            *ret_shape = known[i].shape;
            return MPI_SUCCESS;
        }
    }
    return table_refuse(at, "shape", name, "any, node, nodes or networks");
}

static int table_read_algorithm(const struct table_spot *at, enum coll_family family, json_t *value,
                                enum algorithm_name *ret_name)
{
    char names[256];
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    int name = name_find(family, text);
    if (name >= 0) {
        *ret_name = (enum algorithm_name)name;
        return MPI_SUCCESS;
    }
    name_list(family, names, sizeof names);
    return table_refuse(at, "algorithm", text, names);
}

static int table_read_rule(const struct table_spot *at, enum coll_family family, json_t *object,
                           struct rule *rule)
{
    const char *key;
    json_t *value;
    bool has_algorithm = false;
    if (!json_is_object(object))
        return table_refuse(at, "this", "is no rule", "an object");
    *rule = (struct rule){
        .max_bytes = INT64_MAX, .min_ranks = 1, .max_ranks = INT_MAX, .shape = RULES_ANY_SHAPE};
    json_object_foreach(object, key, value) {
        int64_t number = 0;
        int err = MPI_SUCCESS;
        if (strcmp(key, "algorithm") == 0) {
            err = table_read_algorithm(at, family, value, &rule->name);
            has_algorithm = true;
        } else if (strcmp(key, "max_bytes") == 0) {
            err = table_read_number(at, key, value, 0, INT64_MAX, &number);
            rule->max_bytes = number;
        } else if (strcmp(key, "min_ranks") == 0) {
            err = table_read_number(at, key, value, 1, INT_MAX, &number);
            rule->min_ranks = (int)number;
        } else if (strcmp(key, "max_ranks") == 0) {
            err = table_read_number(at, key, value, 1, INT_MAX, &number);
            rule->max_ranks = (int)number;
        } else if (strcmp(key, "shape") == 0) {
            err = table_read_shape(at, value, &rule->shape);
        } else {
            err = table_refuse(at, "the key", key,
                               "algorithm, max_bytes, min_ranks, max_ranks or shape");
        }
        if (err)
            return err;
    }
    return has_algorithm ? MPI_SUCCESS
                         : table_refuse(at, "this rule", "names nothing", "an algorithm");
}

static int table_read_family(struct table *t, struct table_spot *at, json_t *list)
{
    int family = name_find_family(at->family);
    if (family < 0) {
        char known[256];
        name_list_families(known, sizeof known);
        return err_set(MPI_ERR_OTHER, "%s: rules.%s: there is no collective of this name (%s)",
                       at->file, at->family, known);
    }
    if (!json_is_array(list) || json_array_size(list) > MAX_RULES)
        return err_set(MPI_ERR_OTHER, "%s: rules.%s: expected an array of at most %d rules",
                       at->file, at->family, MAX_RULES);
    size_t n = json_array_size(list);
    t->rules[family] = calloc(n + 1, sizeof(struct rule));
    if (!t->rules[family])
        return err_set(MPI_ERR_NO_MEM, "no memory for the rules of %s", at->file);
    for (at->rule = 0; at->rule < n; at->rule++) {
        int err = table_read_rule(at, (enum coll_family)family, json_array_get(list, at->rule),
                                  &t->rules[family][at->rule]);
        if (err)
            return err;
    }
    t->n[family] = (int)n;
    return MPI_SUCCESS;
}

static int table_read(struct table *t, const char *file, json_t *root)
{
    const char *key;
    json_t *value, *rules = json_object_get(root, "rules");
    if (!json_is_object(root) || json_integer_value(json_object_get(root, "version")) != 1 ||
        !json_is_object(rules))
        return err_set(MPI_ERR_OTHER,
                       "%s: expected an object with \"version\": 1 and an object \"rules\"", file);
    json_object_foreach(root, key, value)
        if (strcmp(key, "version") != 0 && strcmp(key, "rules") != 0 && strcmp(key, "comment") != 0)
            return err_set(MPI_ERR_OTHER,
                           "%s: the key %s is unknown: expected version, rules or comment", file,
                           key);
    json_object_foreach(rules, key, value) {
        struct table_spot at = {.file = file, .family = key};
        int err = table_read_family(t, &at, value);
        if (err)
            return err;
    }
    return MPI_SUCCESS;
}

int table_load(struct table *t)
{
    const char *file = setting_of("MOTET_COLL_TABLE");
    json_error_t error;
    for (int i = 0; i < COLL_FAMILIES; i++)
        free(t->rules[i]);
    *t = (struct table){0};
    if (!file || !*file) {
        if (access(DEFAULT_FILE, R_OK) != 0)
            return MPI_SUCCESS;
        file = DEFAULT_FILE;
    }
    json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return err_set(MPI_ERR_OTHER, "%s:%d:%d: %s", file, error.line < 0 ? 0 : error.line,
                       error.column < 0 ? 0 : error.column, error.text);
    int err = table_read(t, file, root);
    json_decref(root);
    return err;
}
