//! A scene as PNG, through tiny-skia: antialiased, at twice the nominal size so that it is sharp in print.

use tiny_skia::{FillRule, FilterQuality, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, PixmapPaint, Stroke, StrokeDash, Transform};

use super::colour::{Colour, Style};
use super::scene::{Anchor, Point, Scene, Shape};
use super::text;
use crate::{Error, Result};

/// Pixels for each px of the SVG.
const ZOOM: f64 = 2.0;

pub(crate) fn write(scene: &Scene) -> Result<Vec<u8>> {
    let size = |px: f64| (px * ZOOM).ceil() as u32;
    let mut canvas = Pixmap::new(size(scene.width), size(scene.height))
        .ok_or_else(|| Error::parameter("figure size", "at least 1 px by 1 px", format!("{} by {}", scene.width, scene.height)))?;
    canvas.fill(tiny_skia::Color::WHITE);
    for shape in &scene.shapes {
        put(&mut canvas, shape);
    }
    canvas.encode_png().map_err(|e| Error::Data(format!("encoding a PNG: {e}")))
}

/// Bare pixels as PNG, for embedding in an SVG.
pub(crate) fn pixels(columns: usize, pixels: &[Colour]) -> Vec<u8> {
    image(columns, pixels).and_then(|image| image.encode_png().ok()).unwrap_or_default()
}

fn image(columns: usize, pixels: &[Colour]) -> Option<Pixmap> {
    let rows = pixels.len().checked_div(columns)?;
    let mut image = Pixmap::new(columns as u32, rows as u32)?;
    for (slot, &Colour(r, g, b)) in image.data_mut().chunks_exact_mut(4).zip(pixels) {
        slot.copy_from_slice(&[r, g, b, 255]);
    }
    Some(image)
}

fn put(canvas: &mut Pixmap, shape: &Shape) {
    let zoom = Transform::from_scale(ZOOM as f32, ZOOM as f32);
    match shape {
        Shape::Lines { pieces, style, .. } => draw(canvas, path(pieces, false), style, LineCap::Butt, zoom),
        Shape::Area { outlines, fill, opacity, stroke } => {
            let path = path(outlines, true);
            if let Some(path) = &path {
                canvas.fill_path(path, &paint(*fill, *opacity), FillRule::Winding, zoom, None);
            }
            if let Some(stroke) = stroke {
                draw(canvas, path, stroke, LineCap::Butt, zoom);
            }
        }
        Shape::Dots { points, style, .. } => {
            // One by one, so that translucent dots darken each other.
            let paint = paint(style.colour, style.opacity);
            for &(x, y) in points {
                if let Some(circle) = PathBuilder::from_circle(x as f32, y as f32, (style.width / 2.0) as f32) {
                    canvas.fill_path(&circle, &paint, FillRule::Winding, zoom, None);
                }
            }
        }
        Shape::Text { at, text: words, size, anchor, colour, upright, rim } => {
            let Some(outlines) = text::outlines(words, *size) else { return };
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => text::width(words, *size) / 2.0,
                Anchor::End => text::width(words, *size),
            };
            let place = zoom.pre_translate(at.0 as f32, at.1 as f32);
            let place = if *upright { place.pre_rotate(-90.0) } else { place }.pre_translate(-back as f32, 0.0);
            if *rim {
                draw(canvas, Some(outlines.clone()), &Style::solid(super::colour::WHITE, 4.0), LineCap::Round, place);
            }
            canvas.fill_path(&outlines, &paint(*colour, 1.0), FillRule::Winding, place, None);
        }
        Shape::Image { place, columns, pixels } => {
            let Some(image) = image(*columns, pixels) else { return };
            let stretch = zoom
                .pre_translate(place.x as f32, place.y as f32)
                .pre_scale((place.w / f64::from(image.width())) as f32, (place.h / f64::from(image.height())) as f32);
            let nearest = PixmapPaint { quality: FilterQuality::Nearest, ..PixmapPaint::default() };
            canvas.draw_pixmap(0, 0, image.as_ref(), &nearest, stretch, None);
        }
        Shape::Open(_) | Shape::Close => {}
    }
}

fn paint(Colour(r, g, b): Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (opacity.clamp(0.0, 1.0) * 255.0).round() as u8);
    paint
}

fn draw(canvas: &mut Pixmap, path: Option<Path>, style: &Style, line_cap: LineCap, transform: Transform) {
    let Some(path) = path else { return };
    let lengths: Vec<f32> = style.dash.pattern().iter().map(|d| (d * style.width) as f32).collect();
    let dash = StrokeDash::new(lengths, 0.0);
    let stroke = Stroke { width: style.width as f32, line_cap, line_join: LineJoin::Round, dash, ..Stroke::default() };
    canvas.stroke_path(&path, &paint(style.colour, style.opacity), &stroke, transform, None);
}

fn path(pieces: &[Vec<Point>], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for piece in pieces {
        for (i, &(x, y)) in piece.iter().enumerate() {
            if i == 0 { path.move_to(x as f32, y as f32) } else { path.line_to(x as f32, y as f32) }
        }
        if closed {
            path.close();
        }
    }
    path.finish()
}
