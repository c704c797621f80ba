/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libFuzzer does, where there is only gcc: every file of the corpus, then mutations of them.
 *
 *     fuzz_json CORPUS [ROUNDS]
 */
#include "tests/support/random.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_MAX   256
#define INPUT_MAX   8192
#define ROUNDS      40000
#define CHANGES_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct input {
    uint8_t bytes[INPUT_MAX];
    size_t len;
};

static void run(const struct input *input)
{
    /* A block of just its size, so that a sanitizer sees a read beyond the end. */
    uint8_t *copy = malloc(input->len + 1);
    if (copy == NULL)
        abort();
    uint8_t *start = copy + 1;
    memcpy(start, input->bytes, input->len);
    LLVMFuzzerTestOneInput(start, input->len);
    free(copy);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* not by locale: the same everywhere */
}

static size_t load(const char *directory, struct input *seeds)
{
    struct dirent **names = NULL;
    size_t count = 0;
    int found = scandir(directory, &names, NULL, compare_names);
    for (int i = 0; i < found; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
        FILE *file = names[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file != NULL && count < SEEDS_MAX) {
            seeds[count].len = fread(seeds[count].bytes, 1, INPUT_MAX, file);
            count++;
        }
        if (file != NULL)
            fclose(file);
        free(names[i]);
    }
    free(names);
    return count;
}

/* Put len bytes in the place of those from at to end, as far as there is room. */
static void replace(struct input *input, size_t at, size_t end, const uint8_t *bytes, size_t len)
{
    size_t rest = input->len - end;
    if (at + len + rest > INPUT_MAX)
        return;
    memmove(input->bytes + at + len, input->bytes + end, rest);
    memcpy(input->bytes + at, bytes, len);
    input->len = at + len + rest;
}

static void mutate(struct input *input, const struct input *seeds, size_t count,
                   struct random *random)
{
    const struct input *other = &seeds[random_below(random, count)];
    size_t at = (size_t)random_below(random, input->len + 1);
    size_t end = at + (size_t)random_below(random, input->len - at + 1);
    size_t from = (size_t)random_below(random, other->len + 1);
    size_t take = (size_t)random_below(random, other->len - from + 1);
    uint8_t byte = (uint8_t)random_next(random);
    switch (random_below(random, 6)) {
    case 0: /* another byte */
        replace(input, at, at < input->len ? at + 1 : at, &byte, 1);
        break;
    case 1: /* one flipped bit */
        if (at < input->len)
            input->bytes[at] ^= (uint8_t)(1U << byte % 8);
        break;
    case 2: /* a byte or a few from elsewhere, put in */
        replace(input, at, at, other->bytes + from, take < 8 ? take : 8);
        break;
    case 3: /* something cut out */
        replace(input, at, random_below(random, 2) ? end : at, &byte, 0);
        break;
    case 4: /* a piece of another input replaces a piece of this input */
        replace(input, at, end, other->bytes + from, take);
        break;
    default: /* the end is missing */
        input->len = at;
    }
}

int main(int argc, char **argv)
{
    static struct input seeds[SEEDS_MAX];
    size_t count = argc > 1 ? load(argv[1], seeds) : 0;
    if (count == 0) {
        fprintf(stderr, "usage: %s CORPUS [ROUNDS]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        run(&seeds[i]);

    struct random random = random_init(1);
    long rounds = argc > 2 ? atol(argv[2]) : ROUNDS;
    for (long i = 0; i < rounds; i++) {
        struct input input = seeds[random_below(&random, count)];
        for (uint64_t n = random_below(&random, CHANGES_MAX) + 1; n > 0; n--)
            mutate(&input, seeds, count, &random);
        run(&input);
    }
    printf("%zu files, %ld mutations\n", count, rounds);
    return 0;
}
