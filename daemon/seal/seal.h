/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes bytes between two daemons theirs: keys of a pair of adjacent incarnations, codes over
 * packets, and encryption. For drivers (datagrams, connections), express streams and the control
 * connections. A key belongs to one thread.
 *
 * Secrets. Daemons that have proved the cluster key to each other have a secret of 32 bytes for
 * each network between them (HKDF-SHA256, RFC 5869, of the cluster key, of random numbers that each
 * incarnation drew, and of names, epochs and network): it stays as it is while both daemons live,
 * however often they connect, and is another one as soon as either is started again. A channel gets
 * the secret of each neighbour with CMD_ADD_LINK. What it is used for it makes a secret of its own
 * for, by seal_derive with a label; nothing is ever computed with a secret itself.
 *
 * Datagrams. `struct seal` is one end of a pair: a key for each direction, so nothing comes back as
 * if the other side had sent it; the number of each datagram sent, which is the nonce; and a window
 * of the numbers received, so nothing is taken twice. In front of a datagram stands a mark:
 *
 *     seal_wrap(link, &mark, head, sizeof head, packet, n, to);          -> mark, head, to
 *     seal = seal_find(table, mark.id); seal_unwrap(seal, &mark, ...)     0: sound, and new
 *
 * `head` travels in the clear and is covered (a multiple of 16 bytes), the rest too, and is
 * encrypted if the mode says so. The struct lives as long as the pair has its secret, also while
 * the link is not in use: numbers must never begin again under a key.
 *
 * Streams. Both sides of a connection send a random number, prove with it and the other's that they
 * know the secret (seal_derive of both numbers under a label for each role, compared by
 * seal_equal), and make a struct seal_key for each direction out of the same numbers. The number of
 * a frame is its place in the stream: nothing can be replayed, left out or exchanged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "daemon/seal/gmac.h"

#define SEAL_SECRET_BYTES 32u
#define SEAL_TAG_BYTES    16u

/* How a network is protected. Both ends must agree. */
enum seal_mode {
    SEAL_NONE = 0,      /* packets as they are */
    SEAL_INTEGRITY = 1, /* a code: nobody forges or damages them unnoticed */
    SEAL_ENCRYPT = 2,   /* AES-128-GCM: nobody reads them either */
};

/* As the configuration calls it; "?" if there is none of this number. */
const char *seal_mode_name(uint32_t mode);

/* Conditions of what checks. */
enum {
    SEAL_E_CODE = 1, /* not from the other side, or damaged */
    SEAL_E_OLD = 2,  /* a datagram whose number has been seen, or is too old to tell */
};

/* HKDF-SHA256: n_ret bytes for what label and context name. Salt and context may be empty. 0, or
 * -EIO when libcrypto refuses. */
struct seal_source {
    const void *secret, *salt;
    size_t n_secret, n_salt;
};
int seal_derive_from(const struct seal_source *source, const char *label, const void *context,
                     size_t n_context, void *ret, size_t n_ret);
/* The same of a secret that is one. */
int seal_derive(const uint8_t secret[SEAL_SECRET_BYTES], const char *label, const void *context,
                size_t n_context, void *ret, size_t n_ret);
/* In constant time. */
bool seal_equal(const void *a, const void *b, size_t n);
/* Bytes that nobody can guess; ends the process if the kernel has none. */
void seal_random(void *ret, size_t n);
/* Leaves nothing of a secret behind. */
void seal_forget(void *secret, size_t n);

/* The key of one direction. */
struct seal_key {
    struct gmac gmac; /* SEAL_INTEGRITY */
    void *cipher;     /* libcrypto's context: SEAL_ENCRYPT */
    uint32_t salt;    /* of the nonces */
    enum seal_mode mode;
};

/* Derived as seal_derive does. 0 or -EIO; seal_key_deinit in any case. */
int seal_key_init(struct seal_key *k, const uint8_t secret[SEAL_SECRET_BYTES], const char *label,
                  const void *context, size_t n_context, enum seal_mode mode);
void seal_key_deinit(struct seal_key *k);

/* Protects n bytes and a head that stays readable under a number that is used once: writes them to
 * `to` (which may be `from`) and returns the code: the first 8 bytes of the tag. SEAL_NONE: copies,
 * 0. */
uint64_t seal_key_wrap(struct seal_key *k, uint64_t number, const void *head, size_t n_head,
                       const void *from, size_t n, void *to);
/* The other way round. 0 or SEAL_E_CODE, and then nothing in `to` is to be used. */
int seal_key_unwrap(struct seal_key *k, uint64_t number, uint64_t code, const void *head,
                    size_t n_head, const void *from, size_t n, void *to);

/* In front of a datagram, little endian. */
struct seal_mark {
    uint64_t id;     /* whose key: of the pair and the direction */
    uint64_t number; /* from 1 */
    uint64_t code;
};

/* Numbers behind the highest one that may still come: more than is ever between two nodes. */
#define SEAL_WINDOW 4096u

/* One end of a pair. */
struct seal {
    UT_hash_handle hh; /* of whoever looks for it */
    bool made;
    bool lower; /* this node has the lower id of the two */
    enum seal_mode mode;
    uint8_t secret[SEAL_SECRET_BYTES]; /* what connections prove */
    /* Of datagrams. */
    struct seal_key out, in;
    uint64_t out_id, in_id;
    uint64_t number; /* last one sent */
    uint64_t last;   /* highest one received */
    uint64_t seen[SEAL_WINDOW / 64];
};

/* `lower`: this node has the lower id of the two. 0 or -EIO; seal_deinit in any case. */
int seal_init(struct seal *s, const uint8_t secret[SEAL_SECRET_BYTES], bool lower,
              enum seal_mode mode);
void seal_deinit(struct seal *s);
/* Made for this secret? */
bool seal_is_of(const struct seal *s, const uint8_t secret[SEAL_SECRET_BYTES]);

void seal_wrap(struct seal *s, struct seal_mark *ret_mark, const void *head, size_t n_head,
               const void *from, size_t n, void *to);
/* 0, SEAL_E_CODE or SEAL_E_OLD. */
int seal_unwrap(struct seal *s, const struct seal_mark *mark, const void *head, size_t n_head,
                const void *from, size_t n, void *to);

/* Whose key a mark names. A table is a pointer, NULL at first. Adding one that is in it is fine,
 * and so is removing one that is not. */
struct seal *seal_find(struct seal *table, uint64_t id);
void seal_add(struct seal **table, struct seal *s);
void seal_remove(struct seal **table, struct seal *s);
