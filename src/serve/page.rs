//! The page, which is part of the program: nothing of it comes from the network.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

/// A file of the page.
pub(super) struct Part {
    pub(super) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What a browser opens.
pub(super) static INDEX: Part = Part { path: "/", kind: "text/html; charset=utf-8", text: include_str!("page/index.html") };

/// What that loads.
pub(super) static PARTS: [Part; 6] = [
    Part { path: "/dashboard.css", kind: "text/css; charset=utf-8", text: include_str!("page/dashboard.css") },
    Part { path: "/dashboard.js", kind: SCRIPT, text: include_str!("page/dashboard.js") },
    Part { path: "/frames.js", kind: SCRIPT, text: include_str!("page/frames.js") },
    Part { path: "/panels.js", kind: SCRIPT, text: include_str!("page/panels.js") },
    Part { path: "/plot.js", kind: SCRIPT, text: include_str!("page/plot.js") },
    Part { path: "/controls.js", kind: SCRIPT, text: include_str!("page/controls.js") },
];

impl Part {
    /// The file as an answer.
    pub(super) fn answer(&self) -> Response {
        ([(header::CONTENT_TYPE, self.kind)], self.text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        let texts: Vec<_> = PARTS.iter().chain([&INDEX]).map(|part| part.text).collect();
        assert!(texts.iter().map(|text| text.len()).sum::<usize>() <= 150_000);
        // The name of a vocabulary, which is never fetched.
        let known = "http://www.w3.org/2000/svg";
        assert!(texts.iter().all(|text| !text.replace(known, "").contains("://")));
        // The policy lets no script or style inside the page run.
        assert!(!INDEX.text.contains("<style") && !INDEX.text.contains(" style=") && !INDEX.text.contains(" onclick"));
    }

    #[test]
    fn every_part_that_is_imported_is_there() {
        for text in PARTS.iter().chain([&INDEX]).map(|part| part.text) {
            for name in text.split(['\'', '"']).filter_map(|word| word.strip_prefix("./").filter(|name| name.ends_with(".js"))) {
                assert!(PARTS.iter().any(|part| part.path == format!("/{name}")), "{name}");
            }
        }
    }
}
