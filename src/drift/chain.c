#include "drift/chain.h"

#include <math.h>
#include <string.h>

enum { REACH = 2, PASSES = 2 };

static const double nearly = 0.8;

static int nearest(const ps_drift_peaks *step, const double place[2]) {
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < step->n && step->peaks[i].height >= nearly * step->peaks[0].height; i++) {
        double away = hypot(step->peaks[i].shift[0] - place[0], step->peaks[i].shift[1] - place[1]);
        if (away < least) least = away, best = i;
    }
    return best;
}

/* Of the chosen peaks around step i; false: there is none beside it. */
static bool find_median(int64_t n, const ps_drift_peaks *steps, const int *chosen, int64_t i, double median[2]) {
    for (int axis = 0; axis < 2; axis++) {
        double values[2 * REACH + 1];
        int m = 0;
        for (int64_t k = i - REACH; k <= i + REACH; k++) {
            if (k < 0 || k >= n || chosen[k] < 0) continue;
            double value = steps[k].peaks[chosen[k]].shift[axis];
            int place = m++;
            for (; place > 0 && values[place - 1] > value; place--) values[place] = values[place - 1];
            values[place] = value;
        }
        if (m < 2) return false;
        median[axis] = m % 2 ? values[m / 2] : 0.5 * (values[m / 2 - 1] + values[m / 2]);
    }
    return true;
}

/* Every step by the neighbours that the pass before chose, so that the order does not matter. */
static void choose_again(int64_t n, const ps_drift_peaks *steps, const int *before, int *chosen) {
    double median[2];
    for (int64_t i = 0; i < n; i++) chosen[i] = find_median(n, steps, before, i, median) ? nearest(&steps[i], median) : before[i];
}

void ps_drift_choose(int64_t n, const ps_drift_peaks *steps, int *chosen) {
    static const double nowhere[2] = {0.0, 0.0};
    for (int64_t i = 0; i < n; i++) chosen[i] = nearest(&steps[i], nowhere);
    for (int pass = 0; pass < PASSES; pass++) {
        memcpy(chosen + n, chosen, (size_t)n * sizeof *chosen);
        choose_again(n, steps, chosen + n, chosen);
    }
}
