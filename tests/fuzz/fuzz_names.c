/* Names of recordings, and the texts that files hold as times and units, one a line: the natural order is an order, and gaps, times and
 * units come out of any text. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/iso_time.h"
#include "input/name_list.h"
#include "input/series_gaps.h"
#include "input/series_order.h"
#include "input/source.h"
#include "input/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_NAMES = 24 };

static void check(bool holds) {
    if (!holds) abort();
}

static int sign(int value) {
    return (value > 0) - (value < 0);
}

static void check_order(char *const *names, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int order = sign(ps_natural_compare(names[i], names[j]));
            check(order == -sign(ps_natural_compare(names[j], names[i])));
            for (int k = 0; k < n && order <= 0; k++)
                if (ps_natural_compare(names[j], names[k]) <= 0) check(ps_natural_compare(names[i], names[k]) <= 0);
        }
}

static void check_text(const char *text) {
    ps_source parts;
    check(!isinf(ps_time_parse(text)));
    check(!(ps_unit_length_A(text) <= 0) && !(ps_unit_angle_mrad(text) <= 0) && !(ps_unit_reciprocal_inv_A(text) <= 0));
    check(ps_source_split(text, &parts, NULL) == PS_OK && parts.path && (!parts.dataset || parts.dataset[0] == '/'));
    ps_source_free(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *names[MOST_NAMES], *rest = text;
    ps_series_item items[MOST_NAMES] = {0};
    int n = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    while (n < MOST_NAMES && rest) names[n++] = strsep(&rest, "\n");
    for (int i = 0; i < n; i++) {
        check_text(names[i]);
        items[i].stem = names[i];
    }
    check_order(names, n);
    free(ps_series_find_gaps(&(ps_series){.n_items = n, .items = items}));
    free(text);
    return 0;
}
