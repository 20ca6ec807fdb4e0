/* Which program this is. */
#ifndef PS_CORE_VERSION_H
#define PS_CORE_VERSION_H

/* Changes whenever the same job would give other numbers than before; resume refuses to mix two of them. */
#define PS_NUMERICS_VERSION "1"

const char *ps_version(void);    /* "0.1.0" */
const char *ps_commit(void);     /* of the source it was built from, "-dirty" behind it when changed, or "unknown" */
const char *ps_build_text(void); /* compiler, build type, options */

#endif
