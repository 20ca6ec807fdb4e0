#include "input/xml.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    const char *name, *at, *begin, *end;
    ps_xml_element element;
    const char *text_begin; /* behind the last start tag; NULL: the open element has elements inside */
    void (*visit)(const ps_xml_element *element, void *context);
    void *context;
} walker;

static ps_code malformed(const walker *w, const char *at, const char *what, ps_error *error) {
    return PS_FAIL(error, PS_E_INPUT, "%s: byte %zu: %s", w->name, (size_t)(at - w->begin), what);
}

static bool begins(const walker *w, const char *token) {
    size_t n = strlen(token);
    return (size_t)(w->end - w->at) >= n && memcmp(w->at, token, n) == 0;
}

/* Steps behind the next token; false: it does not come. */
static bool skip_past(walker *w, const char *token) {
    const char *found = memmem(w->at, (size_t)(w->end - w->at), token, strlen(token));
    if (found) w->at = found + strlen(token);
    return found != NULL;
}

/* The end of a tag, quoted ">" passed over; NULL: it does not end. */
static const char *find_tag_end(const walker *w) {
    char quote = '\0';
    for (const char *at = w->at; at < w->end; at++) {
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at;
    }
    return NULL;
}

static ps_xml_span trim(const char *begin, const char *end) {
    while (begin < end && isspace((unsigned char)*begin)) begin++;
    while (end > begin && isspace((unsigned char)end[-1])) end--;
    return (ps_xml_span){begin, (size_t)(end - begin)};
}

static bool same(ps_xml_span a, ps_xml_span b) {
    return a.n == b.n && memcmp(a.text, b.text, a.n) == 0;
}

static ps_xml_span tag_name(const char *begin, const char *end) {
    const char *at = begin;
    while (at < end && !isspace((unsigned char)*at) && *at != '/') at++;
    return (ps_xml_span){begin, (size_t)(at - begin)};
}

static void end_element(walker *w, const char *text_end) {
    w->element.text = w->text_begin ? trim(w->text_begin, text_end) : (ps_xml_span){w->begin, 0};
    w->visit(&w->element, w->context);
    w->element.depth--;
    w->text_begin = NULL;
}

/* w->at stands behind "</"; tag: where its "<" is. */
static ps_code take_end_tag(walker *w, const char *tag, const char *close, ps_error *error) {
    ps_xml_element *e = &w->element;
    if (e->depth == 0 || !same(trim(w->at, close), e->names[e->depth - 1]))
        return malformed(w, tag, "an end tag without its start tag", error);
    end_element(w, tag);
    return PS_OK;
}

/* w->at stands behind "<". */
static ps_code take_start_tag(walker *w, const char *close, ps_error *error) {
    ps_xml_element *e = &w->element;
    bool empty = close > w->at && close[-1] == '/';
    ps_xml_span name = tag_name(w->at, close);
    if (name.n == 0) return malformed(w, w->at, "a tag without a name", error);
    if (e->depth == PS_XML_MAX_DEPTH) return malformed(w, w->at, "elements nested too deeply", error);
    e->names[e->depth] = name;
    e->attributes[e->depth++] = trim(name.text + name.n, empty ? close - 1 : close);
    w->text_begin = close + 1;
    if (empty) end_element(w, close + 1);
    return PS_OK;
}

/* One piece of markup; w->at stands on its "<" and behind it afterwards. */
static ps_code take_markup(walker *w, ps_error *error) {
    const char *tag = w->at;
    const char *unended = "markup that does not end";
    if (begins(w, "<!--")) return skip_past(w, "-->") ? PS_OK : malformed(w, tag, unended, error);
    if (begins(w, "<?")) return skip_past(w, "?>") ? PS_OK : malformed(w, tag, unended, error);
    const char *close = find_tag_end(w);
    if (!close) return malformed(w, tag, unended, error);
    if (begins(w, "</")) {
        w->at += 2;
        PS_TRY(take_end_tag(w, tag, close, error));
    } else if (!begins(w, "<!")) {
        w->at++;
        PS_TRY(take_start_tag(w, close, error));
    }
    w->at = close + 1;
    return PS_OK;
}

ps_code ps_xml_walk(const char *name, const char *text, size_t n_bytes, void (*visit)(const ps_xml_element *element, void *context),
                    void *context, ps_error *error) {
    walker w = {.name = name, .at = text, .begin = text, .end = text + n_bytes, .visit = visit, .context = context};
    while ((w.at = memchr(w.at, '<', (size_t)(w.end - w.at))) != NULL) PS_TRY(take_markup(&w, error));
    return w.element.depth == 0 ? PS_OK : malformed(&w, w.end, "the document ends inside an element", error);
}

bool ps_xml_is(const ps_xml_element *element, const char *path) {
    int depth = element->depth;
    for (const char *end = path + strlen(path); depth > 0; depth--) {
        const char *slash = memrchr(path, '/', (size_t)(end - path)), *part = slash ? slash + 1 : path;
        if (!same((ps_xml_span){part, (size_t)(end - part)}, element->names[depth - 1])) return false;
        if (!slash) return true;
        end = slash;
    }
    return false;
}

static bool copy_span(ps_xml_span span, char *value, size_t bytes) {
    if (span.n >= bytes) return false;
    memcpy(value, span.text, span.n);
    value[span.n] = '\0';
    return true;
}

bool ps_xml_attribute(const ps_xml_element *element, int up, const char *name, char *value, size_t bytes) {
    if (up >= element->depth) return false;
    ps_xml_span all = element->attributes[element->depth - 1 - up];
    const char *end = all.text + all.n;
    size_t n = strlen(name);
    for (const char *at = all.text; (size_t)(end - at) > n + 2; at++) {
        bool whole = at == all.text || isspace((unsigned char)at[-1]);
        if (!whole || memcmp(at, name, n) != 0 || at[n] != '=' || (at[n + 1] != '"' && at[n + 1] != '\'')) continue;
        const char *begin = at + n + 2, *close = memchr(begin, at[n + 1], (size_t)(end - begin));
        return close && copy_span((ps_xml_span){begin, (size_t)(close - begin)}, value, bytes);
    }
    return false;
}

bool ps_xml_text(const ps_xml_element *element, char *value, size_t bytes) {
    return copy_span(element->text, value, bytes);
}
