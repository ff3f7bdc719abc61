//! A scene as SVG. It uses no ids, so that any number of pictures can stand in one HTML page.

use std::fmt::Write as _;

use super::colour::{Dash, Style};
use super::scene::{Anchor, Point, Scene, Shape};

/// The whole document, without the XML declaration that HTML does not want.
pub(crate) fn write(scene: &Scene) -> String {
    let mut out = String::new();
    let (w, h) = (px(scene.width), px(scene.height));
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" xml:space=\"preserve\" \
         style=\"max-width:100%;height:auto\" font-family=\"DejaVu Sans,Verdana,Geneva,sans-serif\" \
         stroke-linejoin=\"round\" stroke-linecap=\"butt\">\n<title>{}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
        escape(&scene.title)
    );
    for shape in &scene.shapes {
        put(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn put(out: &mut String, shape: &Shape) {
    // Writing to a String cannot fail.
    let _ = match shape {
        Shape::Lines { pieces, style, name } => {
            writeln!(out, "<path{} d=\"{}\" fill=\"none\"{}/>", named(name), data(pieces, false), stroke(style))
        }
        Shape::Area { outlines, fill, opacity, stroke: edge } => {
            let edge = edge.as_ref().map_or(String::new(), stroke);
            writeln!(out, "<path d=\"{}\" fill=\"{}\"{}{edge}/>", data(outlines, true), fill.hex(), faint("fill-opacity", *opacity))
        }
        Shape::Dots { points, style, name } => {
            let style = &style.dash(Dash::Solid);
            // A line of no length with round ends is a dot, at a tenth of the size of a <circle>. Within one path translucent dots do not
            // darken each other, so crowds are spread over several.
            let chunk = if style.opacity < 1.0 { points.len().div_ceil(12) } else { points.len() };
            points.chunks(chunk.max(1)).try_for_each(|points| {
                let mut d = String::with_capacity(12 * points.len());
                for &(x, y) in points {
                    let _ = write!(d, "M{} {}h0", px(x), px(y));
                }
                writeln!(out, "<path{} d=\"{d}\" fill=\"none\" stroke-linecap=\"round\"{}/>", named(name), stroke(style))
            })
        }
        Shape::Text { at, text, size, anchor, colour, upright, rim } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (x, y) = (px(at.0), px(at.1));
            let turn = if *upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let rim = if *rim { " paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"4\"" } else { "" };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{turn}{rim}>{}</text>",
                px(*size),
                colour.hex(),
                escape(text)
            )
        }
        Shape::Image { place, columns, pixels } => writeln!(
            out,
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" \
             href=\"data:image/png;base64,{}\"/>",
            px(place.x),
            px(place.y),
            px(place.w),
            px(place.h),
            base64(&super::png::pixels(*columns, pixels))
        ),
        Shape::Open(description) => writeln!(out, "<g {description}>"),
        Shape::Close => writeln!(out, "</g>"),
    };
}

fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" data-name=\"{}\"", escape(name)) }
}

fn stroke(style: &Style) -> String {
    let Style { dash, width, opacity, .. } = style;
    let dash: Vec<String> = dash.pattern().iter().map(|d| px(d * width)).collect();
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", dash.join(" ")) };
    format!(" stroke=\"{}\" stroke-width=\"{}\"{}{dash}", style.colour.hex(), px(*width), faint("stroke-opacity", *opacity))
}

fn faint(attribute: &str, opacity: f64) -> String {
    if opacity < 1.0 { format!(" {attribute}=\"{}\"", px(opacity)) } else { String::new() }
}

fn data(pieces: &[Vec<Point>], closed: bool) -> String {
    let mut d = String::new();
    for piece in pieces {
        for (i, &(x, y)) in piece.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, px(x), px(y));
        }
        if closed {
            d.push('Z');
        }
    }
    d
}

/// Hundredths of a px: finer than any screen, and short.
fn px(value: f64) -> String {
    let mut text = format!("{value:.2}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if text == "-0" { "0".to_owned() } else { text }
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write these.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let place = (word >> (18 - 6 * digit)) & 63;
            out.push(if digit <= chunk.len() { DIGITS[place as usize] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_vectors_of_rfc_4648() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn markup_in_labels_is_escaped() {
        assert_eq!(escape("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot; ");
        assert_eq!((px(1.0), px(-0.001), px(2.5), px(100.0)), ("1".into(), "0".into(), "2.5".into(), "100".into()));
    }
}
