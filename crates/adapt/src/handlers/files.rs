//! `file_server`.

use crate::object::Object;
use crate::text::{text, texts};
use regent_config::{Browse, FileServer, escaped};

pub(super) fn handler(files: &FileServer) -> Object {
    let FileServer {
        root,
        hide,
        index,
        browse,
        pass_thru,
        canonical_uris,
        status,
        precompressed,
        etag_endings,
    } = files;
    let usual = FileServer::default();
    let mut handler = Object::handler("file_server");
    handler.set_some("root", root.as_ref().map(text));
    handler.set_list("hide", texts(hide));
    if index.is_empty() {
        handler.set("index_names", vec!["off"]);
    } else if *index != usual.index {
        handler.set("index_names", texts(index));
    }
    handler.set_some("browse", browse.as_deref().map(self::browse));
    handler.set_if("pass_thru", *pass_thru);
    if *canonical_uris != usual.canonical_uris {
        handler.set("canonical_uris", *canonical_uris);
    }
    handler.set_some("status_code", status.as_deref().and_then(crate::text::status));
    let mut encodings = Object::new();
    precompressed.iter().for_each(|name| encodings.set(name, Object::new()));
    handler.non_empty("precompressed", encodings);
    handler.set_list("precompressed_order", precompressed.iter().cloned());
    handler.set_list("etag_file_extensions", etag_endings.iter().cloned());
    handler
}

fn browse(browse: &Browse) -> Object {
    let Browse { file_limit, sort, order, reveal_links, template, plain_time_format } = browse;
    let usual = Browse::default();
    let mut object = Object::new();
    object.set_some("template_file", template.as_ref().map(|file| escaped(&file.display().to_string())));
    object.set_unless("file_limit", *file_limit, usual.file_limit);
    if (*sort, *order) != (usual.sort, usual.order) {
        object.set("sort", vec![sort.name(), order.name()]);
    }
    object.set_if("reveal_symlinks", *reveal_links);
    object.set_unless("plain_time_format", plain_time_format.as_str(), &usual.plain_time_format);
    object
}
