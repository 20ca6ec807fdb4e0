#include "store/layout.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "method/method.h"

static void add_place(ps_result_place *places, int *n, const char *group, const char *name, size_t element_bytes) {
    ps_result_place *place = &places[(*n)++];
    snprintf(place->name, sizeof place->name, "%s/%s", group, name);
    place->element_bytes = element_bytes;
}

int ps_layout_results(ps_result_place *places) {
    int n = 0;
    for (int i = 0; i < ps_n_methods; i++) {
        const ps_method *method = ps_method_table[i];
        for (int r = 0; r < method->n_results; r++)
            add_place(places, &n, method->name, method->results[r].name, ps_result_element_bytes(&method->results[r]));
    }
    add_place(places, &n, "frames", "dose", sizeof(double));
    add_place(places, &n, "frames", "power", sizeof(double));
    return n;
}

const char *ps_column_name(ps_column column) {
    static const char *const names[] = {
#define NUMBER(id, name, type, file_type) "frames/" name,
#define TEXT(id, name, width) "frames/" name,
        PS_COLUMNS(NUMBER, TEXT)
#undef NUMBER
#undef TEXT
    };
    return names[column];
}

void ps_output_time_now(char text[PS_WIDTH_TIME]) {
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, PS_WIDTH_TIME, "%Y-%m-%dT%H:%M:%SZ", &parts);
}
