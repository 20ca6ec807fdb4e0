/* A small reader of XML: enough for the metadata files of instruments. No entities are expanded, no schema is known. */
#ifndef PS_INPUT_XML_H
#define PS_INPUT_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { PS_XML_MAX_DEPTH = 32 };

typedef struct {
    const char *text; /* borrowed from the document, not terminated */
    size_t n;
} ps_xml_span;

/* An element that has just ended. */
typedef struct {
    int depth;                                /* 1: the document's root */
    ps_xml_span names[PS_XML_MAX_DEPTH];      /* [depth], the root's first */
    ps_xml_span attributes[PS_XML_MAX_DEPTH]; /* [depth] as written: mode="acquire" */
    ps_xml_span text;                         /* between its tags when it has no elements inside, blanks at the ends cut off */
} ps_xml_element;

/* Calls visit for every element in the order of their ends. name: for messages; text: [n_bytes]. */
ps_code ps_xml_walk(const char *name, const char *text, size_t n_bytes, void (*visit)(const ps_xml_element *element, void *context),
                    void *context, ps_error *error);

/* True when the element's path ends in this: "iom_measurements/high_voltage". */
bool ps_xml_is(const ps_xml_element *element, const char *path);
/* The value of an attribute of the element `up` levels above (0: its own), copied and terminated; false: not there or too long. */
bool ps_xml_attribute(const ps_xml_element *element, int up, const char *name, char *value, size_t bytes);
bool ps_xml_text(const ps_xml_element *element, char *value, size_t bytes); /* false: too long */

#endif
