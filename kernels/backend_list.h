/* The one list of backends: PS_BACKEND_LIST. What is there, by which name jobs ask for it, what it computes, and whether it is built here
 * is said in this file and nowhere else; everything that goes over backends goes over the list (ps_backend_list). */
#ifndef PS_KERNELS_BACKEND_LIST_H
#define PS_KERNELS_BACKEND_LIST_H

#include "kernels/backend.h"

typedef struct {
    const char *name;          /* "cpu-fast": of the table, recorded with results */
    const char *job_name;      /* "cpu": what jobs call it; a device's number may follow where needs_device: "cuda:1" */
    const char *precision;     /* "reference" or "fast" */
    bool needs_device;         /* else it runs everywhere */
    const ps_backend_ops *ops; /* NULL: not built */
} ps_backend_entry;

extern const ps_backend_ops ps_backend_cpu_reference; /* plain float64, the oracle */
extern const ps_backend_ops ps_backend_cpu_fast;
extern const ps_backend_ops ps_backend_cuda; /* defined only where it is built: reach it by the list */

#ifdef PS_WITH_CUDA
#define PS_CUDA_OPS &ps_backend_cuda
#else
#define PS_CUDA_OPS NULL
#endif

/* "auto" takes the last line that is built, has a device if it needs one, and computes the precision. Lines of one job_name lie together.
 */
#define PS_BACKEND_LIST(X)                                                   \
    /* name           job_name  precision    needs_device  ops            */ \
    X("cpu-reference", "cpu", "reference", false, &ps_backend_cpu_reference) \
    X("cpu-fast", "cpu", "fast", false, &ps_backend_cpu_fast)                \
    X("cuda", "cuda", "fast", true, PS_CUDA_OPS)

typedef struct {
    const ps_backend_entry *entries; /* [n] */
    int n;
} ps_backend_entries;

const ps_backend_entries *ps_backend_list(void); /* all lines */
/* Devices that the backend can use: 1 where it needs none; PS_E_BACKEND with the reason when there are none, or it is not built. */
ps_code ps_backend_entry_devices(const ps_backend_entry *entry, int *count, ps_error *error);
/* ps_backend_select over any list. */
ps_code ps_backend_select_from(const ps_backend_entries *list, const ps_backend_request *request, const ps_backend_ops **ops,
                               ps_backend_options *options, ps_error *error);

#endif
