/* /entry/process_N/usage: what bounded a run. Room for it is made with the run's group; files of earlier versions have none. */
#ifndef PS_STORE_USAGE_H
#define PS_STORE_USAGE_H

#include <hdf5.h>

#include "core/usage.h"
#include "store/view.h"

/* In a run's group, all zero until the run ends. */
ps_code ps_usage_create(hid_t process, ps_error *error);
/* Raw data only. Nothing happens where the file has no room for it. */
ps_code ps_usage_write(hid_t process, const ps_usage *usage, ps_error *error);
/* Of run `number`; *present false: the file has none, the run did not come to its end, or another version measured other things. */
ps_code ps_usage_read(const ps_view *view, int64_t number, ps_usage *usage, bool *present, ps_error *error);

#endif
