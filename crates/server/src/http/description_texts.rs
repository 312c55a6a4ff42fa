//! The texts that describe the API, made at their first request: a server starts without them.

use std::{collections::BTreeMap, sync::OnceLock};

use axum::body::Bytes;
use utoipa::openapi::OpenApi;

use super::{api_docs, api_text};

/// The description of the API with its forms. All requests share them.
pub(crate) struct DescriptionTexts {
    description: OpenApi,
    /// The external URL of the server.
    base: String,
    whole: OnceLock<Bytes>,
    tags: OnceLock<BTreeMap<String, Bytes>>,
    for_models: OnceLock<BTreeMap<String, Bytes>>,
    page: OnceLock<Bytes>,
}

impl DescriptionTexts {
    pub(crate) fn of(description: OpenApi, base: String) -> Self {
        let (whole, tags, for_models, page) = Default::default();
        Self { description, base, whole, tags, for_models, page }
    }

    /// The whole description as JSON.
    pub(crate) fn whole(&self) -> Bytes {
        self.whole.get_or_init(|| self.description.to_pretty_json().unwrap_or_default().into()).clone()
    }

    /// The description of each tag as JSON.
    pub(crate) fn tags(&self) -> &BTreeMap<String, Bytes> {
        self.tags.get_or_init(|| shared(api_text::by_tag(&self.description)))
    }

    /// The texts for language models by tag; see [`api_text::texts`].
    pub(crate) fn for_models(&self) -> &BTreeMap<String, Bytes> {
        self.for_models.get_or_init(|| shared(api_text::texts(&self.description, &self.base)))
    }

    /// The page for people.
    pub(crate) fn page(&self) -> Bytes {
        let page = || api_docs::page(&self.description, &self.base).document("The API of Mainspring");
        self.page.get_or_init(page).clone()
    }
}

fn shared(texts: BTreeMap<String, String>) -> BTreeMap<String, Bytes> {
    texts.into_iter().map(|(tag, text)| (tag, Bytes::from(text))).collect()
}
