/*
 * The gettext extension calls the C library, which keeps one text domain and one directory of each domain for the whole
 * process: textdomain() of one request would choose the texts of those beside it. Here both are the thread's, and undone
 * with the request.
 *
 * The C library knows a catalogue by the name of its domain alone. Two directories of the domain "app" become two domains of
 * the same file name: "app" and "./app".
 */
#include "engine.h"

#include <libintl.h>
#include <stdlib.h>
#include <string.h>

/* Macros of optimised builds. */
#undef gettext
#undef dgettext
#undef ngettext
#undef dngettext

/* So many catalogues of a domain, and so many in all: the C library never gives one back, whoever asks for it. */
enum { MAX_CATALOGUES_OF_DOMAIN = 64, MAX_CATALOGUES = 4096 };

/* What scripts have bound; it is there for good. */
struct regent_catalogue {
    const struct regent_catalogue *next;
    const char *domain;
    const char *directory; /* NULL: where the process has it */
    const char *codeset;   /* NULL: that of the locale */
    char name[];           /* what the C library calls the domain */
};

/* Both under the lock of locales, so that no child is forked while another thread is at it. */
static const regent_catalogue *catalogues;
static size_t n_catalogues;

static const regent_catalogue *catalogue_of(const regent_catalogue *like);

static bool are_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* ---- The thread's ------------------------------------------------------------------------------------------------------ */

static const regent_catalogue *find_bound(const regent_text_domains *own, const char *domain)
{
    for (size_t i = 0; i < own->n_bound; i++) {
        if (strcmp(own->bound[i]->domain, domain) == 0) {
            return own->bound[i];
        }
    }
    return NULL;
}

static const char *current_domain(const regent_text_domains *own)
{
    return own->current != NULL ? own->current->domain : "messages";
}

/* domain: NULL for the current one */
static const char *own_name(const char *domain)
{
    regent_context *context = regent_current();
    if (context == NULL) {
        return domain;
    }
    const char *wanted = domain != NULL ? domain : current_domain(&context->text_domains);
    const regent_catalogue *bound = find_bound(&context->text_domains, wanted);
    return bound != NULL ? bound->name : wanted;
}

static void keep_former(regent_context *context)
{
    regent_former *former = regent_touch(context, REGENT_TOUCHED_TEXT_DOMAINS);
    if (former != NULL) {
        former->text_domains = context->text_domains;
    }
}

static void report_too_many(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&said)) {
        regent_host_log_line(LOG_WARNING, "A script has bound a text domain that is one too many: there may be 32 in a request, 64 "
                                          "directories of one, and 4096 of all; it stays as it was");
    }
}

/* What is too many is left as it was: PHP cannot do with a failure of these calls. */
static void bind_catalogue(regent_context *context, const regent_catalogue *like)
{
    regent_text_domains *own = &context->text_domains;
    const regent_catalogue *bound = find_bound(own, like->domain);
    bool has_room = bound != NULL || own->n_bound < REGENT_BOUND_DOMAINS;
    const regent_catalogue *catalogue = has_room ? catalogue_of(like) : NULL;
    if (catalogue == NULL) {
        report_too_many();
        return;
    }
    keep_former(context);
    size_t at = 0;
    while (at < own->n_bound && own->bound[at] != bound) {
        at++;
    }
    own->bound[at] = catalogue;
    own->n_bound += at == own->n_bound ? 1 : 0;
}

/* ---- What stands for the C library's ----------------------------------------------------------------------------------- */

REGENT_INTERPOSED char *textdomain(const char *domain)
{
    regent_context *context = regent_current();
    if (context == NULL) {
        return REGENT_NEXT(textdomain)(domain);
    }
    if (domain != NULL) {
        regent_catalogue like = {.domain = *domain != '\0' ? domain : "messages"};
        const regent_catalogue *current = catalogue_of(&like);
        if (current != NULL) {
            keep_former(context);
            context->text_domains.current = current;
        } else {
            report_too_many();
        }
    }
    return (char *)current_domain(&context->text_domains);
}

REGENT_INTERPOSED char *bindtextdomain(const char *domain, const char *directory)
{
    regent_context *context = regent_current();
    if (context == NULL || domain == NULL || *domain == '\0') {
        return REGENT_NEXT(bindtextdomain)(domain, directory);
    }
    const regent_catalogue *bound = find_bound(&context->text_domains, domain);
    if (directory != NULL) {
        regent_catalogue like = {.domain = domain, .directory = directory};
        like.codeset = bound != NULL ? bound->codeset : NULL;
        bind_catalogue(context, &like);
        bound = find_bound(&context->text_domains, domain);
    }
    if (bound == NULL || bound->directory == NULL) {
        return REGENT_NEXT(bindtextdomain)(domain, NULL);
    }
    return (char *)bound->directory;
}

REGENT_INTERPOSED char *bind_textdomain_codeset(const char *domain, const char *codeset)
{
    regent_context *context = regent_current();
    if (context == NULL || domain == NULL || *domain == '\0') {
        return REGENT_NEXT(bind_textdomain_codeset)(domain, codeset);
    }
    const regent_catalogue *bound = find_bound(&context->text_domains, domain);
    if (codeset != NULL) {
        regent_catalogue like = {.domain = domain, .codeset = codeset};
        like.directory = bound != NULL ? bound->directory : NULL;
        bind_catalogue(context, &like);
        bound = find_bound(&context->text_domains, domain);
    }
    return bound != NULL ? (char *)bound->codeset : NULL;
}

REGENT_INTERPOSED char *dcgettext(const char *domain, const char *text, int category)
{
    return REGENT_NEXT(dcgettext)(own_name(domain), text, category);
}

REGENT_INTERPOSED char *dcngettext(const char *domain, const char *one, const char *many, unsigned long n, int category)
{
    return REGENT_NEXT(dcngettext)(own_name(domain), one, many, n, category);
}

REGENT_INTERPOSED char *dgettext(const char *domain, const char *text)
{
    return dcgettext(domain, text, LC_MESSAGES);
}

REGENT_INTERPOSED char *dngettext(const char *domain, const char *one, const char *many, unsigned long n)
{
    return dcngettext(domain, one, many, n, LC_MESSAGES);
}

REGENT_INTERPOSED char *gettext(const char *text)
{
    return dcgettext(NULL, text, LC_MESSAGES);
}

REGENT_INTERPOSED char *ngettext(const char *one, const char *many, unsigned long n)
{
    return dcngettext(NULL, one, many, n, LC_MESSAGES);
}

void regent_text_domains_restore(regent_context *context, const regent_text_domains *former)
{
    context->text_domains = *former;
}

/* ---- The process's ----------------------------------------------------------------------------------------------------- */

/* Tells the C library, once. What nobody has bound before keeps its own name, and so it is everybody's who binds nothing. */
static bool tell(const regent_catalogue *catalogue)
{
    if (catalogue->directory != NULL && REGENT_NEXT(bindtextdomain)(catalogue->name, catalogue->directory) == NULL) {
        return false;
    }
    return catalogue->codeset == NULL || REGENT_NEXT(bind_textdomain_codeset)(catalogue->name, catalogue->codeset) != NULL;
}

static const regent_catalogue *make(const regent_catalogue *like, size_t number)
{
    regent_catalogue *made = malloc(sizeof(*made) + 2 * number + strlen(like->domain) + 1);
    char *domain = strdup(like->domain);
    char *directory = like->directory != NULL ? strdup(like->directory) : NULL;
    char *codeset = like->codeset != NULL ? strdup(like->codeset) : NULL;
    bool is_whole = made != NULL && domain != NULL && (directory != NULL) == (like->directory != NULL) &&
                    (codeset != NULL) == (like->codeset != NULL);
    if (is_whole) {
        *made = (regent_catalogue){.next = catalogues, .domain = domain, .directory = directory, .codeset = codeset};
        char *end = made->name;
        for (size_t i = 0; i < number; i++) {
            end = stpcpy(end, "./");
        }
        stpcpy(end, domain);
        is_whole = tell(made);
    }
    if (!is_whole) {
        free(made);
        free(domain);
        free(directory);
        free(codeset);
        return NULL;
    }
    n_catalogues++;
    return catalogues = made;
}

/* NULL if there are too many. */
static const regent_catalogue *find_or_make(const regent_catalogue *like)
{
    bool is_bound = like->directory != NULL || like->codeset != NULL;
    size_t number = 0;
    for (const regent_catalogue *known = catalogues; known != NULL; known = known->next) {
        if (strcmp(known->domain, like->domain) != 0) {
            continue;
        }
        if (are_same(known->directory, like->directory) && are_same(known->codeset, like->codeset)) {
            return known;
        }
        number += known->directory != NULL || known->codeset != NULL ? 1 : 0;
    }
    if (n_catalogues == MAX_CATALOGUES || number == MAX_CATALOGUES_OF_DOMAIN) {
        return NULL;
    }
    return make(like, is_bound ? number : 0);
}

static const regent_catalogue *catalogue_of(const regent_catalogue *like)
{
    regent_locale_lock();
    const regent_catalogue *catalogue = find_or_make(like);
    regent_locale_unlock();
    return catalogue;
}
