#include "tasks/simulate/random.h"

#include <math.h>

static ps_random_bits bits_of(uint64_t seed, ps_random_use use, uint32_t a, uint32_t b) {
    return ps_random_block(~seed, a, b, 0, (uint32_t)use); /* noise has the seed itself as its key */
}

double ps_random_uniform(uint64_t seed, ps_random_use use, uint32_t a, uint32_t b) {
    ps_random_bits bits = bits_of(seed, use, a, b);
    return ps_random_to_unit(bits.word[0], bits.word[1]);
}

void ps_random_normals(uint64_t seed, ps_random_use use, uint32_t a, uint32_t b, double normals[2]) {
    ps_random_bits bits = bits_of(seed, use, a, b);
    double radius = sqrt(-2.0 * log(1.0 - ps_random_to_unit(bits.word[0], bits.word[1])));
    double angle = 2.0 * M_PI * ps_random_to_unit(bits.word[2], bits.word[3]);
    normals[0] = radius * cos(angle);
    normals[1] = radius * sin(angle);
}
