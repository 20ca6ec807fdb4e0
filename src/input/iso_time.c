#include "input/iso_time.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Days from 1970-01-01 in the Gregorian calendar. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - 400 * era;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "+02:00", "-0530", "Z" or nothing; seconds east. NAN: something else. */
static double parse_zone(const char *text) {
    int hours = 0, minutes = 0;
    if (*text == '\0' || strcmp(text, "Z") == 0) return 0;
    if ((*text != '+' && *text != '-') ||
        (sscanf(text + 1, "%2d:%2d", &hours, &minutes) != 2 && sscanf(text + 1, "%2d%2d", &hours, &minutes) < 1))
        return NAN;
    return (*text == '-' ? -1 : 1) * (3600.0 * hours + 60.0 * minutes);
}

double ps_time_parse(const char *text) {
    int year, month, day, hour, minute, used = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%n", &year, &month, &day, &hour, &minute, &used) != 5 || used == 0) return NAN;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59) return NAN;
    if (!isdigit((unsigned char)text[used])) return NAN;
    size_t n = strspn(text + used, "0123456789.");
    char seconds[32];
    if (n >= sizeof seconds) return NAN;
    memcpy(seconds, text + used, n);
    seconds[n] = '\0';
    return 86400.0 * (double)days_since_1970(year, month, day) + 3600.0 * hour + 60.0 * minute + strtod(seconds, NULL) -
           parse_zone(text + used + n);
}
