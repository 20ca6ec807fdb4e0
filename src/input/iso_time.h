/* Times of acquisition, as files write them. */
#ifndef PS_INPUT_ISO_TIME_H
#define PS_INPUT_ISO_TIME_H

/* Seconds since 1970 of an ISO 8601 time ("2025-05-03T01:51:00.302+02:00"; without a zone: UTC); NAN: it is none. */
double ps_time_parse(const char *text);

#endif
