/* Preconditions that headers state, checked while the program runs in builds for developers (PS_ASSERTIONS: the presets dev, asan, cuda and
 * coverage). In a release build a condition is compiled but never evaluated.
 *
 * For mistakes of callers inside the program alone. What comes from outside (jobs, files, the system) is an error with a message. */
#ifndef PS_CORE_ASSERT_H
#define PS_CORE_ASSERT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Prints the condition and where it stands on standard error, and aborts. */
__attribute__((noreturn, cold)) void ps_assert_fail(const char *condition, const char *function, const char *file, int line);

#ifdef PS_ASSERTIONS
#define PS_ASSERT(condition) ((condition) ? (void)0 : ps_assert_fail(#condition, __func__, __FILE__, __LINE__))
#else
#define PS_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

#ifdef __cplusplus
}
#endif
#endif
