/* One atomic change of one shared counter. */
#ifndef PS_CLUSTER_COUNTER_CHANGE_H
#define PS_CLUSTER_COUNTER_CHANGE_H

#include <stdint.h>

typedef enum {
    PS_COUNTER_READ,
    PS_COUNTER_ADD,    /* value is added */
    PS_COUNTER_REPLACE /* value is stored */
} ps_counter_operation;

typedef struct {
    ps_counter_operation operation;
    int64_t at; /* which counter */
    int64_t value;
} ps_counter_change;

/* What the counter holds after the change. */
static inline int64_t ps_counter_after(const ps_counter_change *change, int64_t before) {
    return change->operation == PS_COUNTER_ADD ? before + change->value : change->operation == PS_COUNTER_REPLACE ? change->value : before;
}

#endif
