/*
 * setlocale(), for the calling thread only: a request's decimal comma must not show in the requests beside it. PHP's
 * setlocale(), the end of a request (PHP_RSHUTDOWN_FUNCTION(basic)) and the intl extension all call the C library's,
 * which this one stands for. What asks for the locale (localeconv(), strftime(), strcoll(), ...) sees the thread's.
 */
#include "engine.h"

#include <ext/standard/basic_functions.h>
#include <errno.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

#ifdef _NL_LOCALE_NAME
#define LOCALE_NAME(category) _NL_LOCALE_NAME(category)
#else
#define LOCALE_NAME(category) NL_LOCALE_NAME(category)
#endif

/* In the order in which setlocale(LC_ALL, NULL) names them. */
static const struct category {
    int number;
    const char *name;
} categories[] = {
    {LC_CTYPE, "LC_CTYPE"},
    {LC_NUMERIC, "LC_NUMERIC"},
    {LC_TIME, "LC_TIME"},
    {LC_COLLATE, "LC_COLLATE"},
    {LC_MONETARY, "LC_MONETARY"},
    {LC_MESSAGES, "LC_MESSAGES"},
#ifdef LC_PAPER
    {LC_PAPER, "LC_PAPER"},
    {LC_NAME, "LC_NAME"},
    {LC_ADDRESS, "LC_ADDRESS"},
    {LC_TELEPHONE, "LC_TELEPHONE"},
    {LC_MEASUREMENT, "LC_MEASUREMENT"},
    {LC_IDENTIFICATION, "LC_IDENTIFICATION"},
#endif
};
enum { N_CATEGORIES = sizeof(categories) / sizeof(categories[0]) };

/*
 * The C library changes locales under a lock that it does not set free in a forked child: nobody forks while another thread
 * is at it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *change(regent_context *context, const struct category *category, const char *name);
static char *current_name(regent_context *context, const struct category *category);
static char *combined(char **kept, const char *const names[N_CATEGORIES]);

/* category: NULL for LC_ALL */
static bool find_category(int number, const struct category **category)
{
    *category = NULL;
    for (size_t i = 0; i < N_CATEGORIES && *category == NULL; i++) {
        *category = categories[i].number == number ? &categories[i] : NULL;
    }
    return *category != NULL || number == LC_ALL;
}

REGENT_INTERPOSED char *setlocale(int number, const char *name)
{
    regent_context *context = regent_current();
    const struct category *category;
    if (context == NULL) {
        return REGENT_NEXT(setlocale)(number, name);
    }
    if (!find_category(number, &category)) {
        errno = EINVAL;
        return NULL;
    }
    /* A forked child is about to end, and what another thread had locked (strerror() does, too) is locked in it for ever. */
    bool is_in_vain = regent_in_forked_child() && context->phase == REGENT_ENDING;
    return name != NULL && !is_in_vain ? change(context, category, name) : current_name(context, category);
}

void regent_locale_lock(void)
{
    pthread_mutex_lock(&lock);
}

void regent_locale_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- Names --------------------------------------------------------------------------------------------------------- */

static const char *name_of(const regent_locale *locale, const struct category *category)
{
    if (locale->own != (locale_t)0) {
        return nl_langinfo_l(LOCALE_NAME(category->number), locale->own);
    }
    return REGENT_NEXT(setlocale)(category->number, NULL);
}

static char *current_name(regent_context *context, const struct category *category)
{
    const char *names[N_CATEGORIES];
    if (category != NULL) {
        return (char *)name_of(&context->locale, category);
    }
    for (size_t i = 0; i < N_CATEGORIES; i++) {
        names[i] = name_of(&context->locale, &categories[i]);
    }
    return combined(&context->locale.names, names);
}

static bool are_equal(const char *const names[N_CATEGORIES])
{
    for (size_t i = 1; i < N_CATEGORIES; i++) {
        if (strcmp(names[i], names[0]) != 0) {
            return false;
        }
    }
    return true;
}

/* One name if all categories have it, else "LC_CTYPE=...;LC_NUMERIC=...;..."; valid until the next call with the same `kept`. */
static char *combined(char **kept, const char *const names[N_CATEGORIES])
{
    size_t size = 1;
    for (size_t i = 0; i < N_CATEGORIES; i++) {
        size += strlen(categories[i].name) + strlen(names[i]) + 2;
    }
    char *text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    char *end = text;
    if (are_equal(names)) {
        end = stpcpy(text, names[0]);
    }
    for (size_t i = 0; i < N_CATEGORIES && !are_equal(names); i++) {
        end += sprintf(end, "%s%s=%s", i > 0 ? ";" : "", categories[i].name, names[i]);
    }
    *end = '\0';
    free(*kept);
    return *kept = text;
}

/* As setlocale(3) looks for the name "", in the environment that the script sees. */
static const char *name_from_environment(const struct category *category)
{
    const char *variables[] = {"LC_ALL", category->name, "LANG"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = regent_getenv(variables[i], strlen(variables[i]));
        if (value != NULL && *value != '\0') {
            return value;
        }
    }
    return "C";
}

static const char *names_from_environment(regent_context *context, const struct category *category)
{
    const char *names[N_CATEGORIES];
    if (category != NULL) {
        return name_from_environment(category);
    }
    for (size_t i = 0; i < N_CATEGORIES; i++) {
        names[i] = name_from_environment(&categories[i]);
    }
    return combined(&context->locale.wanted, names);
}

/* ---- Change ---------------------------------------------------------------------------------------------------------- */

static locale_t copy_of(locale_t original)
{
    regent_locale_lock();
    locale_t copy = duplocale(original);
    regent_locale_unlock();
    return copy;
}

/* As the present one, but for some categories; 0 if there is no locale of that name. */
static locale_t make(const regent_locale *present, int mask, const char *name)
{
    locale_t base = copy_of(present->own != (locale_t)0 ? present->own : LC_GLOBAL_LOCALE);
    if (base == (locale_t)0) {
        return base;
    }
    regent_locale_lock();
    locale_t made = newlocale(mask, name, base);
    if (made == (locale_t)0) {
        freelocale(base);
    }
    regent_locale_unlock();
    return made;
}

static void replace(regent_context *context, locale_t next)
{
    locale_t last = context->locale.own;
    uselocale(next != (locale_t)0 ? next : LC_GLOBAL_LOCALE);
    context->locale.own = next;
    if (last != (locale_t)0) {
        regent_locale_lock();
        freelocale(last);
        regent_locale_unlock();
    }
}

static void keep_former(regent_context *context)
{
    regent_former *former = regent_touch(context, REGENT_TOUCHED_LOCALE);
    if (former != NULL) {
        former->locale = context->locale.own != (locale_t)0 ? copy_of(context->locale.own) : (locale_t)0;
        former->ctype_name = BG(ctype_string) != NULL ? zend_string_copy(BG(ctype_string)) : NULL;
    }
}

static char *change(regent_context *context, const struct category *category, const char *name)
{
    int mask = category != NULL ? 1 << category->number : LC_ALL_MASK;
    const char *wanted = *name != '\0' ? name : names_from_environment(context, category);
    char *present = current_name(context, category);
    if (wanted == NULL || present == NULL || strcmp(wanted, present) == 0) {
        return present;
    }
    locale_t made = make(&context->locale, mask, wanted);
    if (made == (locale_t)0) {
        return NULL;
    }
    keep_former(context);
    replace(context, made);
    return current_name(context, category);
}

void regent_locale_restore(regent_context *context, locale_t former)
{
    replace(context, former);
    zend_update_current_locale();
}

void regent_locale_free(regent_context *context)
{
    replace(context, (locale_t)0);
    free(context->locale.names);
    free(context->locale.wanted);
    context->locale.names = context->locale.wanted = NULL;
}
