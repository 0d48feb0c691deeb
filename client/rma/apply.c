/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/apply.h"

#include <sched.h>
#include <string.h>

#include "client/object/err.h"

/* By integers: in dynamic windows the base is 0 and offsets are addresses. */
static inline char *place_at(const struct apply_place *place, int64_t offset)
{
    return (char *)((uintptr_t)place->base + (uintptr_t)offset);
}

/* ---- copies ---- */

void apply_put(const struct apply_place *place, const struct pieces *pieces, const void *data)
{
    const char *from = data;
    for (uint32_t i = 0; i < pieces->n; i++) {
        const struct piece *p = &pieces->at[i];
        for (uint64_t k = 0; k < p->count; k++, from += p->bytes)
            memcpy(place_at(place, p->offset + (int64_t)k * p->stride), from, p->bytes);
    }
}

void apply_get(const struct apply_place *place, const struct pieces *pieces, void *ret_data)
{
    char *to = ret_data;
    for (uint32_t i = 0; i < pieces->n; i++) {
        const struct piece *p = &pieces->at[i];
        for (uint64_t k = 0; k < p->count; k++, to += p->bytes)
            memcpy(to, place_at(place, p->offset + (int64_t)k * p->stride), p->bytes);
    }
}

/* ---- elements by instructions ---- */

enum change {
    CHANGE_REPLACE,
    CHANGE_NONE,
    CHANGE_ADD,
    CHANGE_AND,
    CHANGE_OR,
    CHANGE_XOR,
    CHANGE_OP
};

static bool is_integer(const struct datatype *type)
{
    return type->basic >= BASIC_INT8 && type->basic <= BASIC_UINT64 && type->basic != BASIC_INT128;
}

static enum change change_of(const struct op *op, const struct datatype *type)
{
    uintptr_t handle = op->obj.handle;
    if (handle == (uintptr_t)MPI_REPLACE)
        return CHANGE_REPLACE;
    if (handle == (uintptr_t)MPI_NO_OP)
        return CHANGE_NONE;
    if (is_integer(type) && type->class != CLASS_LOGICAL) {
        if (handle == (uintptr_t)MPI_SUM)
            return CHANGE_ADD;
        if (handle == (uintptr_t)MPI_BAND)
            return CHANGE_AND;
        if (handle == (uintptr_t)MPI_BOR)
            return CHANGE_OR;
        if (handle == (uintptr_t)MPI_BXOR)
            return CHANGE_XOR;
    }
    return CHANGE_OP;
}

/* Changes the element at `at` by the operand and gives the value before, for one size. */
#define CHANGE_FUNCTION(name, T)                                                                   \
    static void name(void *at, const void *operand, void *ret_before, enum change change,          \
                     const struct op *op, struct datatype *type)                                   \
    {                                                                                              \
        T *word = at, value = 0, before;                                                           \
        if (change != CHANGE_NONE)                                                                 \
            memcpy(&value, operand, sizeof value);                                                 \
        switch (change) {                                                                          \
        case CHANGE_REPLACE:                                                                       \
            before = __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);                           \
            break;                                                                                 \
        case CHANGE_NONE:                                                                          \
            before = __atomic_load_n(word, __ATOMIC_ACQUIRE);                                      \
            break;                                                                                 \
        case CHANGE_ADD:                                                                           \
            before = __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);                            \
            break;                                                                                 \
        case CHANGE_AND:                                                                           \
            before = __atomic_fetch_and(word, value, __ATOMIC_ACQ_REL);                            \
            break;                                                                                 \
        case CHANGE_OR:                                                                            \
            before = __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);                             \
            break;                                                                                 \
        case CHANGE_XOR:                                                                           \
            before = __atomic_fetch_xor(word, value, __ATOMIC_ACQ_REL);                            \
            break;                                                                                 \
        default:                                                                                   \
            before = __atomic_load_n(word, __ATOMIC_RELAXED);                                      \
            T after;                                                                               \
            do {                                                                                   \
                after = before;                                                                    \
                op_apply(op, &value, &after, 1, type);                                             \
            } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_ACQ_REL,   \
                                                  __ATOMIC_RELAXED));                              \
        }                                                                                          \
        memcpy(ret_before, &before, sizeof before);                                                \
    }

CHANGE_FUNCTION(change_1, uint8_t)
CHANGE_FUNCTION(change_2, uint16_t)
CHANGE_FUNCTION(change_4, uint32_t)
CHANGE_FUNCTION(change_8, uint64_t)

static bool by_instruction(const void *at, const struct datatype *type)
{
    MPI_Count size = type->size;
    return type->class != CLASS_PAIR && (size == 1 || size == 2 || size == 4 || size == 8) &&
           (uintptr_t)at % (uintptr_t)size == 0;
}

static void change_element(void *at, const void *operand, void *ret_before, enum change change,
                           const struct op *op, struct datatype *type)
{
    switch (type->size) {
    case 1:
        change_1(at, operand, ret_before, change, op, type);
        break;
    case 2:
        change_2(at, operand, ret_before, change, op, type);
        break;
    case 4:
        change_4(at, operand, ret_before, change, op, type);
        break;
    default:
        change_8(at, operand, ret_before, change, op, type);
        break;
    }
}

/* ---- elements under the lock, or of this process alone ---- */

/* Held for one run at most; who waits gives its core away. */
static void elements_lock(const struct apply_place *place)
{
    if (!place->shared)
        return;
    /* acquire: pairs with the release in elements_unlock. */
    while (atomic_exchange_explicit(&place->lock->elements, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void elements_unlock(const struct apply_place *place)
{
    if (place->shared)
        atomic_store_explicit(&place->lock->elements, 0, memory_order_release);
}

/* `n` dense elements. The loops want both sides aligned, and the operand apart from the result. */
static void change_dense(char *at, const void *data, void *ret_result, MPI_Count n,
                         const struct op *op, struct datatype *type)
{
    _Alignas(32) char in[512], inout[512];
    MPI_Count size = type->size, most = type->contiguous ? (MPI_Count)sizeof in / size : 1;
    bool changes = op->obj.handle != (uintptr_t)MPI_NO_OP;
    for (MPI_Count done = 0; done < n; done += most) {
        MPI_Count some = n - done < most ? n - done : most;
        size_t bytes = (size_t)(some * size), off = (size_t)(done * size);
        memcpy(inout, at + off, bytes);
        if (ret_result)
            memcpy((char *)ret_result + off, inout, bytes);
        if (!changes)
            continue;
        memcpy(in, (const char *)data + off, bytes);
        if (op->obj.handle == (uintptr_t)MPI_REPLACE)
            memcpy(inout, in, bytes);
        else
            op_apply(op, in, inout, some, type);
        memcpy(at + off, inout, bytes);
    }
}

/* One element with a gap inside, whose stream form is packed. `at`: the element's address. */
static void change_gapped(char *at, const void *data, void *ret_result, const struct op *op,
                          struct datatype *type)
{
    _Alignas(32) char in[64] = {0}, inout[64] = {0};
    struct type_cursor c;
    memcpy(inout, at, (size_t)type->true_extent);
    type_cursor_init(&c, type, 1, inout);
    if (ret_result)
        type_cursor_pack(&c, ret_result, (size_t)type->size);
    if (op->obj.handle == (uintptr_t)MPI_NO_OP)
        return;
    type_cursor_init(&c, type, 1, in);
    type_cursor_unpack(&c, data, (size_t)type->size);
    if (op->obj.handle == (uintptr_t)MPI_REPLACE)
        memcpy(inout, in, sizeof inout);
    else
        op_apply(op, in, inout, 1, type);
    char packed[64];
    type_cursor_init(&c, type, 1, inout);
    type_cursor_pack(&c, packed, (size_t)type->size);
    type_cursor_init(&c, type, 1, at);
    type_cursor_unpack(&c, packed, (size_t)type->size);
}

/* ---- runs ---- */

static void accumulate_run(const struct apply_place *place, char *at, uint64_t bytes,
                           const struct op *op, struct datatype *type, const char *data,
                           char *result)
{
    if (type->dense && place->shared && by_instruction(at, type)) {
        enum change change = change_of(op, type);
        uint64_t size = (uint64_t)type->size;
        char before[8];
        for (uint64_t i = 0; i < bytes; i += size) {
            change_element(at + i, data ? data + i : NULL, before, change, op, type);
            if (result)
                memcpy(result + i, before, size);
        }
        return;
    }
    elements_lock(place);
    if (type->dense)
        change_dense(at, data, result, (MPI_Count)bytes / type->size, op, type);
    else
        change_gapped(at, data, result, op, type);
    elements_unlock(place);
}

void apply_accumulate(const struct apply_place *place, const struct pieces *pieces,
                      const struct op *op, struct datatype *element, const void *data,
                      void *ret_result)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < pieces->n; i++) {
        const struct piece *p = &pieces->at[i];
        for (uint64_t k = 0; k < p->count; k++, done += p->bytes)
            accumulate_run(place, place_at(place, p->offset + (int64_t)k * p->stride), p->bytes, op,
                           element, data ? (const char *)data + done : NULL,
                           ret_result ? (char *)ret_result + done : NULL);
    }
}

void apply_fetch(const struct apply_place *place, int64_t offset, const struct op *op,
                 struct datatype *element, const void *operand, void *ret_result)
{
    char *at = place_at(place, offset);
    if (place->shared && by_instruction(at, element))
        change_element(at, operand, ret_result, change_of(op, element), op, element);
    else
        accumulate_run(place, at, (uint64_t)element->size, op, element, operand, ret_result);
}

/* ---- compare and swap ---- */

int apply_check_compare(const struct datatype *type)
{
    switch ((enum basic_class)type->class) {
    case CLASS_C_INTEGER:
    case CLASS_FORTRAN_INTEGER:
    case CLASS_LOGICAL:
    case CLASS_MULTI_LANGUAGE:
    case CLASS_BYTE:
        return MPI_SUCCESS;
    default:
        return err_set(MPI_ERR_TYPE,
                       "%s cannot be compared and swapped: integers, logicals and bytes can",
                       datatype_name(type));
    }
}

#define COMPARE_FUNCTION(name, T)                                                                  \
    static void name(void *at, const void *value, const void *compare, void *ret_before)           \
    {                                                                                              \
        T wanted, after;                                                                           \
        memcpy(&wanted, compare, sizeof wanted);                                                   \
        memcpy(&after, value, sizeof after);                                                       \
        __atomic_compare_exchange_n((T *)at, &wanted, after, false, __ATOMIC_ACQ_REL,              \
                                    __ATOMIC_ACQUIRE);                                             \
        memcpy(ret_before, &wanted, sizeof wanted);                                                \
    }

COMPARE_FUNCTION(compare_1, uint8_t)
COMPARE_FUNCTION(compare_2, uint16_t)
COMPARE_FUNCTION(compare_4, uint32_t)
COMPARE_FUNCTION(compare_8, uint64_t)

void apply_compare(const struct apply_place *place, int64_t offset, struct datatype *element,
                   const void *value, const void *compare, void *ret_result)
{
    static void (*const by_size[9])(void *, const void *, const void *, void *) = {
        [1] = compare_1, [2] = compare_2, [4] = compare_4, [8] = compare_8};
    char *at = place_at(place, offset);
    size_t size = (size_t)element->size;
    if (place->shared && by_instruction(at, element)) {
        by_size[size](at, value, compare, ret_result);
        return;
    }
    char before[64];
    elements_lock(place);
    memcpy(before, at, size);
    if (memcmp(before, compare, size) == 0)
        memcpy(at, value, size);
    elements_unlock(place);
    memcpy(ret_result, before, size);
}
