#include "input/formats/xml.h"

#include <ctype.h>
#include <expat.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An element that is open: "name\0attribute\0value\0attribute\0value\0\0", malloc'd. */
typedef char *start_tag;

struct ps_xml_element {
    int depth; /* 1: the document's root */
    start_tag tags[PS_XML_MAX_DEPTH];
    char text[PS_XML_MAX_TEXT];
    size_t n_text; /* more than there is room for: too long */
    bool has_elements;
};

typedef struct {
    XML_Parser parser;
    ps_xml_element element;
    const char *refused; /* why the walk was ended; NULL: it was not */
    void (*visit)(const ps_xml_element *element, void *context);
    void *context;
} walker;

static void refuse(walker *w, const char *why) {
    w->refused = why;
    XML_StopParser(w->parser, XML_FALSE);
}

static char *append(char *to, const char *text) {
    size_t n = strlen(text) + 1;
    memcpy(to, text, n);
    return to + n;
}

static start_tag copy_tag(const char *name, const char *const *attributes) {
    size_t n = strlen(name) + 2;
    for (int i = 0; attributes[i]; i++) n += strlen(attributes[i]) + 1;
    start_tag tag = malloc(n);
    char *end = tag ? append(tag, name) : NULL;
    for (int i = 0; tag && attributes[i]; i++) end = append(end, attributes[i]);
    if (tag) *end = '\0';
    return tag;
}

static void begin_element(void *data, const XML_Char *name, const XML_Char **attributes) {
    walker *w = data;
    ps_xml_element *e = &w->element;
    if (w->refused) return;
    start_tag tag = e->depth < PS_XML_MAX_DEPTH ? copy_tag(name, (const char *const *)attributes) : NULL;
    if (!tag) {
        refuse(w, e->depth < PS_XML_MAX_DEPTH ? "out of memory" : "elements nested too deeply");
        return;
    }
    e->tags[e->depth++] = tag;
    e->n_text = 0;
    e->has_elements = false;
}

static void end_element(void *data, const XML_Char *name) {
    (void)name;
    walker *w = data;
    ps_xml_element *e = &w->element;
    if (w->refused) return;
    if (e->has_elements) e->n_text = 0;
    w->visit(e, w->context);
    free(e->tags[--e->depth]);
    e->n_text = 0;
    e->has_elements = true;
}

static void add_text(void *data, const XML_Char *text, int n) {
    ps_xml_element *e = &((walker *)data)->element;
    if (e->n_text < PS_XML_MAX_TEXT && (size_t)n <= PS_XML_MAX_TEXT - e->n_text) memcpy(e->text + e->n_text, text, (size_t)n);
    e->n_text += (size_t)n;
}

static void declare_entity(void *data, const XML_Char *name, int is_parameter, const XML_Char *value, int length, const XML_Char *base,
                           const XML_Char *system, const XML_Char *public, const XML_Char *notation) {
    (void)name, (void)is_parameter, (void)value, (void)length, (void)base, (void)system, (void)public, (void)notation;
    refuse(data, "declares entities, which no instrument's file needs");
}

static ps_code report(const walker *w, const char *name, ps_error *error) {
    return PS_FAIL(error, PS_E_INPUT, "%s: line %lu, column %lu: %s", name, (unsigned long)XML_GetCurrentLineNumber(w->parser),
                   (unsigned long)XML_GetCurrentColumnNumber(w->parser) + 1,
                   w->refused ? w->refused : XML_ErrorString(XML_GetErrorCode(w->parser)));
}

ps_code ps_xml_walk(const char *name, const char *text, size_t n_bytes, void (*visit)(const ps_xml_element *element, void *context),
                    void *context, ps_error *error) {
    if (n_bytes > INT32_MAX) return PS_FAIL(error, PS_E_INPUT, "%s: %zu bytes are too long for a file of metadata", name, n_bytes);
    ps_code code = PS_OK;
    walker *w = calloc(1, sizeof *w);
    PS_GO_ALLOC(error, w);
    w->visit = visit;
    w->context = context;
    PS_GO_ALLOC(error, w->parser = XML_ParserCreate(NULL));
    XML_SetUserData(w->parser, w);
    XML_SetElementHandler(w->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(w->parser, add_text);
    XML_SetEntityDeclHandler(w->parser, declare_entity);
    if (XML_Parse(w->parser, text, (int)n_bytes, 1) != XML_STATUS_OK) code = report(w, name, error);
done:
    for (int i = 0; w && i < w->element.depth; i++) free(w->element.tags[i]);
    if (w && w->parser) XML_ParserFree(w->parser);
    free(w);
    return code;
}

bool ps_xml_is(const ps_xml_element *element, const char *path) {
    int depth = element->depth;
    for (const char *end = path + strlen(path); depth > 0; depth--) {
        const char *slash = memrchr(path, '/', (size_t)(end - path)), *part = slash ? slash + 1 : path, *name = element->tags[depth - 1];
        if (strlen(name) != (size_t)(end - part) || memcmp(name, part, (size_t)(end - part)) != 0) return false;
        if (!slash) return true;
        end = slash;
    }
    return false;
}

static bool copy_text(const char *text, size_t n, char *value, size_t bytes) {
    if (n >= bytes) return false;
    memcpy(value, text, n);
    value[n] = '\0';
    return true;
}

bool ps_xml_attribute(const ps_xml_element *element, int up, const char *name, char *value, size_t bytes) {
    if (up >= element->depth) return false;
    const char *at = element->tags[element->depth - 1 - up];
    for (at += strlen(at) + 1; *at;) {
        const char *found = at + strlen(at) + 1;
        if (strcmp(at, name) == 0) return copy_text(found, strlen(found), value, bytes);
        at = found + strlen(found) + 1;
    }
    return false;
}

bool ps_xml_text(const ps_xml_element *element, char *value, size_t bytes) {
    const char *begin = element->text, *end = begin + element->n_text;
    if (element->n_text > PS_XML_MAX_TEXT) return false;
    while (begin < end && isspace((unsigned char)*begin)) begin++;
    while (end > begin && isspace((unsigned char)end[-1])) end--;
    return copy_text(begin, (size_t)(end - begin), value, bytes);
}
