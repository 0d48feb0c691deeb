/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes from Fortran (MPI-5.0 sections 7.7 and 19.3.7).
 *
 * In C an attribute is a pointer, in Fortran an integer of address size, and each language must see
 * what the other has set: C finds a pointer to Fortran's integer, Fortran finds C's pointer as an
 * integer. So a value set by Fortran lies in a box, whose address is the attribute; the boxes are
 * known, which tells the two apart. A box goes when the attribute is deleted if the key is
 * Fortran's own; under a key that C has made, it stays.
 */
#include <pthread.h>

#include "client/fortran/support.h"

typedef void attribute_fn(void);

#define ATTRIBUTE_NAMES(name)                                                                      \
    FORTRAN_ALIAS(mpi_##name##_, pmpi_##name##_)                                                   \
    FORTRAN_ALIAS(mpi_##name##_f08_, pmpi_##name##_)                                               \
    FORTRAN_ALIAS(pmpi_##name##_f08_, pmpi_##name##_)
#define ATTRIBUTE_OLD_NAMES(name) FORTRAN_ALIAS(mpi_##name##_, pmpi_##name##_)

/* ---- boxes ---- */

struct attribute_box {
    union {
        MPI_Aint value;
        MPI_Fint old; /* of MPI_ATTR_PUT */
    };
    bool is_old;
    struct attribute_box *next;
};

#define ATTRIBUTE_BUCKETS 1024
static struct attribute_box *attribute_boxes[ATTRIBUTE_BUCKETS];
static pthread_mutex_t attribute_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct attribute_box **attribute_bucket(const void *box)
{
    return &attribute_boxes[(uintptr_t)box / sizeof(struct attribute_box) % ATTRIBUTE_BUCKETS];
}

static struct attribute_box *attribute_box_new(MPI_Aint value, bool is_old)
{
    struct attribute_box *box = malloc(sizeof *box);
    if (!box)
        return NULL;
    box->is_old = is_old;
    if (is_old)
        box->old = (MPI_Fint)value;
    else
        box->value = value;
    pthread_mutex_lock(&attribute_mutex);
    struct attribute_box **bucket = attribute_bucket(box);
    box->next = *bucket;
    *bucket = box;
    pthread_mutex_unlock(&attribute_mutex);
    return box;
}

static bool attribute_box_is_known(const void *pointer)
{
    pthread_mutex_lock(&attribute_mutex);
    const struct attribute_box *box = *attribute_bucket(pointer);
    while (box && box != pointer)
        box = box->next;
    pthread_mutex_unlock(&attribute_mutex);
    return box != NULL;
}

static void attribute_box_free(struct attribute_box *box)
{
    pthread_mutex_lock(&attribute_mutex);
    struct attribute_box **at = attribute_bucket(box);
    while (*at != box)
        at = &(*at)->next;
    *at = box->next;
    pthread_mutex_unlock(&attribute_mutex);
    free(box);
}

/* What Fortran sees of an attribute. */
static MPI_Aint attribute_value(const void *pointer)
{
    if (!attribute_box_is_known(pointer))
        return (MPI_Aint)pointer;
    const struct attribute_box *box = pointer;
    return box->is_old ? box->old : box->value;
}

/* ---- keys ---- */

/* Handle, keyval, extra state, value in, value out, flag, ierror; integers are INTEGER for keys of
 * MPI_KEYVAL_CREATE and of address size for the others. */
typedef void attribute_copy_fn(MPI_Fint *object, MPI_Fint *keyval, void *extra, void *in, void *out,
                               MPI_Fint *flag, MPI_Fint *ierror);
typedef void attribute_delete_fn(MPI_Fint *object, MPI_Fint *keyval, void *value, void *extra,
                                 MPI_Fint *ierror);

/* The extra state that C keeps for a key of Fortran's. Never freed: attributes of a key that has
 * been freed are still copied and deleted. */
struct attribute_key {
    attribute_fn *copy, *delete;
    MPI_Aint extra_state;
    MPI_Fint old_extra_state;
    bool is_old;
};

static int attribute_copy(MPI_Fint object, int keyval, struct attribute_key *key, void *in,
                          void *out, int *flag)
{
    MPI_Fint err = MPI_SUCCESS, f_keyval = keyval, f_flag = motet_fortran_false;
    MPI_Aint value = attribute_value(in), copy = 0;
    attribute_copy_fn *fn = (attribute_copy_fn *)key->copy;
    if (key->is_old) {
        MPI_Fint old_value = (MPI_Fint)value, old_copy = 0;
        fn(&object, &f_keyval, &key->old_extra_state, &old_value, &old_copy, &f_flag, &err);
        copy = old_copy;
    } else {
        fn(&object, &f_keyval, &key->extra_state, &value, &copy, &f_flag, &err);
    }
    *flag = fortran_is_true(f_flag);
    if (err != MPI_SUCCESS || !*flag)
        return err;
    /* The copy belongs to the language that has set the original. */
    void *pointer =
        attribute_box_is_known(in) ? attribute_box_new(copy, key->is_old) : (void *)copy;
    *(void **)out = pointer;
    return pointer || !attribute_box_is_known(in) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int attribute_delete(MPI_Fint object, int keyval, void *pointer, struct attribute_key *key)
{
    MPI_Fint err = MPI_SUCCESS, f_keyval = keyval;
    MPI_Aint value = attribute_value(pointer);
    attribute_delete_fn *fn = (attribute_delete_fn *)key->delete;
    if (key->is_old) {
        MPI_Fint old_value = (MPI_Fint)value;
        fn(&object, &f_keyval, &old_value, &key->old_extra_state, &err);
    } else {
        fn(&object, &f_keyval, &value, &key->extra_state, &err);
    }
    if (err == MPI_SUCCESS && attribute_box_is_known(pointer))
        attribute_box_free(pointer);
    return err;
}

static struct attribute_key *attribute_key_new(attribute_fn *copy, attribute_fn *delete)
{
    struct attribute_key *key = calloc(1, sizeof *key);
    if (key) {
        key->copy = copy;
        key->delete = delete;
    }
    return key;
}

/* ---- the functions, for each kind of object ---- */

#define ATTRIBUTE_OBJECT(Name, name, type, word)                                                   \
    static int attribute_on_##name##_copy(type object, int keyval, void *extra, void *in,          \
                                          void *out, int *flag)                                    \
    {                                                                                              \
        return attribute_copy(word##_out(object), keyval, extra, in, out, flag);                   \
    }                                                                                              \
    static int attribute_on_##name##_delete(type object, int keyval, void *value, void *extra)     \
    {                                                                                              \
        return attribute_delete(word##_out(object), keyval, value, extra);                         \
    }                                                                                              \
                                                                                                   \
    FORTRAN_API void pmpi_##name##_create_keyval_(attribute_fn *copy, attribute_fn *delete,        \
                                                  MPI_Fint *keyval, const MPI_Aint *extra_state,   \
                                                  MPI_Fint *ierror);                               \
    void pmpi_##name##_create_keyval_(attribute_fn *copy, attribute_fn *delete, MPI_Fint *keyval,  \
                                      const MPI_Aint *extra_state, MPI_Fint *ierror)               \
    {                                                                                              \
        struct attribute_key *key = attribute_key_new(copy, delete);                               \
        int err = MPI_ERR_NO_MEM;                                                                  \
        if (key) {                                                                                 \
            key->extra_state = *extra_state;                                                       \
            err = MPI_##Name##_create_keyval(attribute_on_##name##_copy,                           \
                                             attribute_on_##name##_delete, keyval, key);           \
        }                                                                                          \
        if (err != MPI_SUCCESS)                                                                    \
            free(key);                                                                             \
        fortran_error(ierror, err);                                                                \
    }                                                                                              \
    ATTRIBUTE_NAMES(name##_create_keyval)                                                          \
                                                                                                   \
    FORTRAN_API void pmpi_##name##_set_attr_(const MPI_Fint *object, const MPI_Fint *keyval,       \
                                             const MPI_Aint *value, MPI_Fint *ierror);             \
    void pmpi_##name##_set_attr_(const MPI_Fint *object, const MPI_Fint *keyval,                   \
                                 const MPI_Aint *value, MPI_Fint *ierror)                          \
    {                                                                                              \
        struct attribute_box *box = attribute_box_new(*value, false);                              \
        int err = box ? MPI_##Name##_set_attr(word##_in(*object), *keyval, box) : MPI_ERR_NO_MEM;  \
        if (err != MPI_SUCCESS && box)                                                             \
            attribute_box_free(box);                                                               \
        fortran_error(ierror, err);                                                                \
    }                                                                                              \
    ATTRIBUTE_NAMES(name##_set_attr)                                                               \
                                                                                                   \
    FORTRAN_API void pmpi_##name##_get_attr_(const MPI_Fint *object, const MPI_Fint *keyval,       \
                                             MPI_Aint *value, MPI_Fint *flag, MPI_Fint *ierror);   \
    void pmpi_##name##_get_attr_(const MPI_Fint *object, const MPI_Fint *keyval, MPI_Aint *value,  \
                                 MPI_Fint *flag, MPI_Fint *ierror)                                 \
    {                                                                                              \
        void *pointer = NULL;                                                                      \
        int found = 0;                                                                             \
        int err = MPI_##Name##_get_attr(word##_in(*object), *keyval, &pointer, &found);            \
        if (err == MPI_SUCCESS && found)                                                           \
            *value = attribute_read(*keyval, pointer);                                             \
        *flag = fortran_logical(found);                                                            \
        fortran_error(ierror, err);                                                                \
    }                                                                                              \
    ATTRIBUTE_NAMES(name##_get_attr)

/* The predefined attributes are integers in Fortran, pointers to them in C; MPI_WIN_BASE is an
 * address in both. */
static MPI_Aint attribute_read(int keyval, const void *pointer)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(const int *)pointer;
    case MPI_WIN_SIZE:
        return *(const MPI_Aint *)pointer;
    default:
        return attribute_value(pointer);
    }
}

ATTRIBUTE_OBJECT(Comm, comm, MPI_Comm, comm)
ATTRIBUTE_OBJECT(Type, type, MPI_Datatype, type)
ATTRIBUTE_OBJECT(Win, win, MPI_Win, win)

/* ---- the deprecated functions, with attributes of default INTEGER (MPI-5.0 section 16.1) ---- */

FORTRAN_API void pmpi_keyval_create_(attribute_fn *copy, attribute_fn *delete, MPI_Fint *keyval,
                                     const MPI_Fint *extra_state, MPI_Fint *ierror);
void pmpi_keyval_create_(attribute_fn *copy, attribute_fn *delete, MPI_Fint *keyval,
                         const MPI_Fint *extra_state, MPI_Fint *ierror)
{
    struct attribute_key *key = attribute_key_new(copy, delete);
    int err = MPI_ERR_NO_MEM;
    if (key) {
        key->old_extra_state = *extra_state;
        key->is_old = true;
        err = MPI_Comm_create_keyval(attribute_on_comm_copy, attribute_on_comm_delete, keyval, key);
    }
    if (err != MPI_SUCCESS)
        free(key);
    fortran_error(ierror, err);
}
ATTRIBUTE_OLD_NAMES(keyval_create)

FORTRAN_API void pmpi_attr_put_(const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *value,
                                MPI_Fint *ierror);
void pmpi_attr_put_(const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *value,
                    MPI_Fint *ierror)
{
    struct attribute_box *box = attribute_box_new(*value, true);
    int err = box ? MPI_Comm_set_attr(comm_in(*comm), *keyval, box) : MPI_ERR_NO_MEM;
    if (err != MPI_SUCCESS && box)
        attribute_box_free(box);
    fortran_error(ierror, err);
}
ATTRIBUTE_OLD_NAMES(attr_put)

FORTRAN_API void pmpi_attr_get_(const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Fint *value,
                                MPI_Fint *flag, MPI_Fint *ierror);
void pmpi_attr_get_(const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag,
                    MPI_Fint *ierror)
{
    MPI_Aint wide = 0;
    pmpi_comm_get_attr_(comm, keyval, &wide, flag, ierror);
    if (fortran_is_true(*flag))
        *value = (MPI_Fint)wide;
}
ATTRIBUTE_OLD_NAMES(attr_get)

/* ---- predefined functions, as Fortran calls them ---- */

#define ATTRIBUTE_PREDEFINED(name, integer)                                                        \
    FORTRAN_API void mpi_##name##_null_copy_fn_(MPI_Fint *object, MPI_Fint *keyval,                \
                                                integer *extra, integer *in, integer *out,         \
                                                MPI_Fint *flag, MPI_Fint *ierror);                 \
    void mpi_##name##_null_copy_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra,            \
                                    integer *in, integer *out, MPI_Fint *flag, MPI_Fint *ierror)   \
    {                                                                                              \
        (void)object, (void)keyval, (void)extra, (void)in, (void)out;                              \
        *flag = motet_fortran_false;                                                               \
        *ierror = MPI_SUCCESS;                                                                     \
    }                                                                                              \
    FORTRAN_API void mpi_##name##_dup_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra,      \
                                          integer *in, integer *out, MPI_Fint *flag,               \
                                          MPI_Fint *ierror);                                       \
    void mpi_##name##_dup_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *extra, integer *in,     \
                              integer *out, MPI_Fint *flag, MPI_Fint *ierror)                      \
    {                                                                                              \
        (void)object, (void)keyval, (void)extra;                                                   \
        *out = *in;                                                                                \
        *flag = motet_fortran_true;                                                                \
        *ierror = MPI_SUCCESS;                                                                     \
    }                                                                                              \
    FORTRAN_API void mpi_##name##_null_delete_fn_(                                                 \
        MPI_Fint *object, MPI_Fint *keyval, integer *value, integer *extra, MPI_Fint *ierror);     \
    void mpi_##name##_null_delete_fn_(MPI_Fint *object, MPI_Fint *keyval, integer *value,          \
                                      integer *extra, MPI_Fint *ierror)                            \
    {                                                                                              \
        (void)object, (void)keyval, (void)value, (void)extra;                                      \
        *ierror = MPI_SUCCESS;                                                                     \
    }
ATTRIBUTE_PREDEFINED(comm, MPI_Aint)
ATTRIBUTE_PREDEFINED(type, MPI_Aint)
ATTRIBUTE_PREDEFINED(win, MPI_Aint)

/* The names without an object are those of MPI_KEYVAL_CREATE. */
FORTRAN_API void mpi_null_copy_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *in,
                                   MPI_Fint *out, MPI_Fint *flag, MPI_Fint *ierror);
void mpi_null_copy_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *in,
                       MPI_Fint *out, MPI_Fint *flag, MPI_Fint *ierror)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = motet_fortran_false;
    *ierror = MPI_SUCCESS;
}
FORTRAN_API void mpi_dup_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *in,
                             MPI_Fint *out, MPI_Fint *flag, MPI_Fint *ierror);
void mpi_dup_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *in, MPI_Fint *out,
                 MPI_Fint *flag, MPI_Fint *ierror)
{
    (void)comm, (void)keyval, (void)extra;
    *out = *in;
    *flag = motet_fortran_true;
    *ierror = MPI_SUCCESS;
}
FORTRAN_API void mpi_null_delete_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value,
                                     MPI_Fint *extra, MPI_Fint *ierror);
void mpi_null_delete_fn_(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *extra,
                         MPI_Fint *ierror)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    *ierror = MPI_SUCCESS;
}
