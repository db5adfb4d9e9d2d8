/*
 * regent_cache_purge(): responses that the server's cache is to forget.
 */
#include "engine.h"

#include <Zend/zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>

static void throw_refusal(int refusal)
{
    switch (refusal) {
    case REGENT_PURGE_NO_CACHE:
        zend_throw_exception(spl_ce_RuntimeException, "There is no cache to purge: the site of the request has no \"cache\" directive, or its \"script_purge\" is off, or there is no request", 0);
        return;
    case REGENT_PURGE_TAG:
        zend_argument_value_error(1, "must be tags as responses have them: 1 to 1024 bytes of ASCII, without spaces and commas");
        return;
    case REGENT_PURGE_URL:
        zend_argument_value_error(2, "must be a URL of http or https, or a path that begins with a slash, encoded as in a request");
        return;
    case REGENT_PURGE_PREFIX:
        zend_argument_value_error(3, "must be the beginning of a URL of http or https, or of a path, with the slash that it begins with");
        return;
    case REGENT_PURGE_TOO_LARGE:
        zend_argument_value_error(1, "are too many: a purge may have 128 KiB as JSON; make several of it");
        return;
    case REGENT_PURGE_LATE:
        zend_throw_exception(spl_ce_RuntimeException, "The server has not purged the cache within 5 seconds; it may still do so", 0);
        return;
    default:
        zend_throw_exception(spl_ce_RuntimeException, "The server does not purge the cache: it is overloaded or stopping, or has a new configuration", 0);
    }
}

static regent_str text_or_none(const zend_string *text)
{
    return text != NULL ? (regent_str){ZSTR_VAL(text), ZSTR_LEN(text)} : (regent_str){NULL, 0};
}

/* regent_cache_purge(string|array $tags = [], ?string $url = null, ?string $prefix = null): int */
ZEND_FUNCTION(regent_cache_purge)
{
    zend_string *tag = NULL, *url = NULL, *prefix = NULL;
    HashTable *list = NULL;

    ZEND_PARSE_PARAMETERS_START(0, 3)
        Z_PARAM_OPTIONAL
        Z_PARAM_ARRAY_HT_OR_STR(list, tag)
        Z_PARAM_STR_OR_NULL(url)
        Z_PARAM_STR_OR_NULL(prefix)
    ZEND_PARSE_PARAMETERS_END();

    regent_str single = text_or_none(tag);
    regent_purge purge = {
        .tags = &single,
        .n_tags = tag != NULL ? 1 : 0,
        .url = text_or_none(url),
        .prefix = text_or_none(prefix),
    };
    if (url == NULL && prefix == NULL && tag == NULL && list == NULL) {
        zend_argument_count_error("regent_cache_purge() expects tags, a url or a prefix");
        RETURN_THROWS();
    }
    regent_str *tags = NULL;
    if (list != NULL) {
        purge.n_tags = zend_hash_num_elements(list);
        purge.tags = tags = safe_emalloc(purge.n_tags, sizeof(*tags), 1);
        if (!regent_take_texts(list, tags)) {
            efree(tags);
            RETURN_THROWS();
        }
    }
    uint64_t purged = 0;
    int refusal = regent_host_purge(regent_current(), &purge, &purged);
    if (tags != NULL) {
        efree(tags);
    }
    if (refusal != REGENT_OK) {
        throw_refusal(refusal);
        RETURN_THROWS();
    }
    RETURN_LONG((zend_long)purged);
}
