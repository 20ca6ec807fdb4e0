/* The elements of an XML document, as libexpat reads them. Documents that declare entities of their own are refused: instruments need none,
 * and a few lines of them can grow without bounds. */
#ifndef PS_INPUT_FORMATS_XML_H
#define PS_INPUT_FORMATS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { PS_XML_MAX_DEPTH = 32, PS_XML_MAX_TEXT = 4096 };

typedef struct ps_xml_element ps_xml_element; /* one that has just ended */

/* Calls visit for every element in the order of their ends. name: for messages; text: [n_bytes]. PS_E_INPUT, with line and column, when it
 * is no well-formed XML, nests deeper than PS_XML_MAX_DEPTH or declares entities; elements before that place were visited. */
ps_code ps_xml_walk(const char *name, const char *text, size_t n_bytes, void (*visit)(const ps_xml_element *element, void *context),
                    void *context, ps_error *error);

/* True when the element's path ends in this: "iom_measurements/high_voltage". */
bool ps_xml_is(const ps_xml_element *element, const char *path);
/* The value of an attribute of the element `up` levels above (0: its own), copied; false: not there or too long. */
bool ps_xml_attribute(const ps_xml_element *element, int up, const char *name, char *value, size_t bytes);
/* What is between its tags when it has no elements inside, blanks at the ends cut off; false: too long. */
bool ps_xml_text(const ps_xml_element *element, char *value, size_t bytes);

#endif
