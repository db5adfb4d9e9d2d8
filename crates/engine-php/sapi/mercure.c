/*
 * mercure_publish(): an update for the subscribers of the site's Mercure hub, which is the server's.
 */
#include "engine.h"

#include <Zend/zend_exceptions.h>
#include <ext/spl/spl_exceptions.h>

bool regent_take_texts(HashTable *list, regent_str *texts)
{
    size_t n = 0;
    zval *text;
    ZEND_HASH_FOREACH_VAL(list, text) {
        ZVAL_DEREF(text);
        if (Z_TYPE_P(text) != IS_STRING) {
            zend_argument_type_error(1, "must be of type string or an array of strings, %s found in it", zend_zval_type_name(text));
            return false;
        }
        texts[n++] = (regent_str){Z_STRVAL_P(text), Z_STRLEN_P(text)};
    } ZEND_HASH_FOREACH_END();
    return true;
}

static regent_str text_of(const zend_string *text)
{
    return text != NULL ? (regent_str){ZSTR_VAL(text), ZSTR_LEN(text)} : (regent_str){NULL, 0};
}

static void throw_refusal(int refusal)
{
    switch (refusal) {
    case REGENT_PUBLISH_NO_HUB:
        zend_throw_exception(spl_ce_RuntimeException, "No Mercure hub configured: the site of the request has no \"mercure\" directive, or there is no request", 0);
        return;
    case REGENT_PUBLISH_TOPIC:
        zend_argument_value_error(1, "must be 1 to 100 topics in UTF-8, none of them empty, longer than 8192 bytes or with control characters");
        return;
    case REGENT_PUBLISH_DATA:
        zend_argument_value_error(2, "must be UTF-8");
        return;
    case REGENT_PUBLISH_ID:
        zend_argument_value_error(4, "must be UTF-8 without control characters, not start with \"#\" and have 8192 bytes at most");
        return;
    case REGENT_PUBLISH_TYPE:
        zend_argument_value_error(5, "must be UTF-8 without control characters and have 8192 bytes at most");
        return;
    case REGENT_PUBLISH_TOO_LARGE:
        zend_argument_value_error(2, "is too large: an update may have 128 KiB as JSON; larger ones can be posted to the hub");
        return;
    default:
        zend_throw_exception(spl_ce_RuntimeException, "The server does not take the update: it is overloaded or stopping", 0);
    }
}

/*
 * mercure_publish(string|array $topics, string $data = '', bool $private = false, ?string $id = null, ?string $type = null,
 *                 ?int $retry = null): string
 */
ZEND_FUNCTION(mercure_publish)
{
    zend_string *topic = NULL, *data = NULL, *id = NULL, *type = NULL;
    HashTable *list = NULL;
    bool private = false, no_retry = true;
    zend_long retry = 0;

    ZEND_PARSE_PARAMETERS_START(1, 6)
        Z_PARAM_ARRAY_HT_OR_STR(list, topic)
        Z_PARAM_OPTIONAL
        Z_PARAM_STR(data)
        Z_PARAM_BOOL(private)
        Z_PARAM_STR_OR_NULL(id)
        Z_PARAM_STR_OR_NULL(type)
        Z_PARAM_LONG_OR_NULL(retry, no_retry)
    ZEND_PARSE_PARAMETERS_END();

    if (!no_retry && retry < 0) {
        zend_argument_value_error(6, "must be greater than or equal to 0");
        RETURN_THROWS();
    }
    regent_str single = text_of(topic);
    regent_str *topics = &single;
    size_t n_topics = 1;
    if (list != NULL) {
        n_topics = zend_hash_num_elements(list);
        topics = safe_emalloc(n_topics, sizeof(*topics), 1);
        if (!regent_take_texts(list, topics)) {
            efree(topics);
            RETURN_THROWS();
        }
    }
    regent_publication publication = {
        .topics = topics,
        .n_topics = n_topics,
        .data = text_of(data),
        .private_update = private,
        .id = text_of(id),
        .type = text_of(type),
        .retry = no_retry ? -1 : (int64_t)retry,
    };
    char made[REGENT_UPDATE_ID] = "";
    int refusal = regent_host_publish(regent_current(), &publication, made);
    if (topics != &single) {
        efree(topics);
    }
    if (refusal != REGENT_OK) {
        throw_refusal(refusal);
        RETURN_THROWS();
    }
    if (id != NULL && ZSTR_LEN(id) > 0) {
        RETURN_STR_COPY(id);
    }
    RETURN_STRING(made);
}
