#include "plan/packed_share.h"

enum {
    MOST_THREADS = 15, /* more do not read faster */
    ON_THEIR_WAY = 2,  /* pieces that are copied and unpacked while every thread fills one */
    MOST_PIECES = 16
};
static const size_t least_piece = (size_t)8 << 20;

static int least(int a, int b) {
    return a < b ? a : b;
}

ps_packed_share ps_packed_share_find(int n_threads, int n_cpus, size_t pattern_bytes, size_t host_bytes) {
    size_t piece = pattern_bytes > least_piece ? pattern_bytes : least_piece;
    ps_packed_share share = {.n_threads = least(n_threads, MOST_THREADS), .piece_bytes = piece + piece / 32};
    if (n_cpus > 0) share.n_threads = least(share.n_threads, n_cpus);
    if (share.n_threads < 1) share.n_threads = 1;
    share.n_pieces = least(share.n_threads + ON_THEIR_WAY, MOST_PIECES);
    while (host_bytes > 0 && share.n_pieces > 1 + ON_THEIR_WAY && (size_t)share.n_pieces * share.piece_bytes > host_bytes / 8)
        share.n_pieces--;
    share.n_threads = least(share.n_threads, share.n_pieces - 1);
    return share;
}
