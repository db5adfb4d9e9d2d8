//! A directory that has to be listed before a request is answered.

use crate::context::page;
use crate::context::rendering::Rules;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use regent_exchange::ResponseBody;
use std::fmt;

/// What is to be listed.
pub trait Listing: Send + fmt::Debug {
    /// Blocks: it reads the directory.
    ///
    /// # Errors
    /// With the status to answer with.
    fn run(self: Box<Self>) -> Result<Listed, StatusCode>;
}

/// A page that is ready to be sent.
pub struct Listed {
    pub(crate) text: Vec<u8>,
    pub(crate) content_type: &'static str,
    pub(crate) is_head: bool,
    /// With it the text is a template, which has this directory.
    pub(crate) template: Option<(Rules, regent_templates::Listing)>,
}

impl Listed {
    /// A response, which is a template where there are rules for one.
    pub(crate) fn response(self) -> (Response<ResponseBody>, Option<(Rules, regent_templates::Listing)>) {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            (header::CONTENT_TYPE, self.content_type),
            (header::VARY, "Accept"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        // Our own page needs nothing else. What somebody's template needs is for him to say.
        if self.template.is_none() {
            let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
            fields.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(self.text.len()));
        let body = if self.is_head { ResponseBody::empty() } else { ResponseBody::full(self.text) };
        (page::with_fields(StatusCode::OK, fields, body), self.template)
    }
}
