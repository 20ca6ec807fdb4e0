/* Marks a function that the compiler should build for several instruction sets, the best chosen when the program starts. */
#ifndef PS_TASKS_SIMULATE_VECTOR_H
#define PS_TASKS_SIMULATE_VECTOR_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define PS_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define PS_VECTOR
#endif

#endif
