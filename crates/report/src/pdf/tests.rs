use miniz_oxide::inflate::decompress_to_vec_zlib;

use super::*;
use crate::scene::{Anchor, Style};

/// What a page draws, and the file.
fn written(shapes: Vec<Shape>) -> (String, String) {
    let scene = Scene {
        width: 118.0,
        height: 59.0,
        title: String::new(),
        description: String::new(),
        shapes,
    };
    let pdf = document(&scene);
    let text = String::from_utf8_lossy(&pdf).into_owned();
    assert!(text.contains("/MediaBox [0 0 72 36]"), "{text}");
    let start = pdf.windows(7).position(|window| window == b"stream\n");
    let start = start.expect("a stream") + 7;
    let content = decompress_to_vec_zlib(&pdf[start..]);
    // What follows the stream is not of it.
    let content = content.or_else(|failure| match failure.output {
        output if !output.is_empty() => Ok(output),
        output => Err(output),
    });
    let content = String::from_utf8(content.expect("zlib")).expect("text");
    (content, text)
}

/// 118 pixels are 72 points, and the first row of pixels is at the top.
#[test]
fn shapes_are_drawn_from_the_top_in_pixels() {
    const RED: Color = Color::solid(0xff_0000);
    let blue = Color::solid(0x00_0080).with_opacity(0.5);
    let dashed = Stroke {
        dash: &[7.0, 3.0],
        ..Stroke::solid(blue, 1.5)
    };
    let (content, file) = written(vec![
        Shape::Rect {
            at: (1.0, 2.0),
            size: (30.0, 4.0),
            fill: RED,
        },
        Shape::Lines {
            lines: vec![vec![(1.0, 2.0), (3.0, 4.5)], vec![(5.0, 6.0), (7.0, 8.0)]],
            stroke: dashed,
        },
        Shape::Area {
            outline: vec![(0.0, 0.0), (9.0, 0.0), (0.0, 9.0)],
            fill: blue,
        },
        Shape::Dots {
            places: vec![(10.0, 20.0)],
            radius: 2.0,
            fill: RED,
        },
        Shape::Crosses {
            places: vec![(10.0, 20.0)],
            arm: 2.0,
            stroke: Stroke::solid(RED, 1.0),
        },
    ]);
    assert!(file.contains("/G50 << /ca 0.5 /CA 0.5 >>"), "{file}");
    let lines: Vec<&str> = content.lines().collect();
    let [matrix, rect, stroke, area, dot, cross] = lines[..] else {
        panic!("{content}")
    };
    let numbers: Vec<f32> = matrix
        .split(' ')
        .map_while(|word| word.parse().ok())
        .collect();
    let scale = 72.0 / 118.0;
    let expected = [scale, 0.0, 0.0, -scale, 0.0, 36.0];
    let near = |(found, wanted): (&f32, &f32)| (found - wanted).abs() < 1e-4;
    assert!(numbers.iter().zip(&expected).all(near), "{matrix}");
    assert!(matrix.ends_with(" cm 1 j"), "{matrix}");
    assert_eq!(rect, "/G100 gs 1 0 0 rg 1 2 30 4 re f");
    assert_eq!(
        stroke,
        "/G50 gs 0 0 0.502 RG 1.5 w 0 J [7 3] 0 d 1 2 m 3 4.5 l 5 6 m 7 8 l S"
    );
    assert_eq!(area, "/G50 gs 0 0 0.502 rg 0 0 m 9 0 l 0 9 l f");
    assert_eq!(dot, "/G100 gs 1 0 0 RG 4 w 1 J [] 0 d 10 20 m 10 20 l S");
    assert_eq!(
        cross,
        "/G100 gs 1 0 0 RG 1 w 1 J [] 0 d 8 18 m 12 22 l 12 18 m 8 22 l S"
    );
}

/// A quadratic curve as a cubic one: its control points are two thirds of the way to the quadratic one's.
#[test]
fn curves_of_the_font_keep_their_form() {
    let mut page = Page::default();
    page.move_to(0.0, 0.0);
    page.quad_to(3.0, 6.0, 6.0, 0.0);
    page.quad_to(9.0, 0.0, 12.0, 3.0);
    page.close();
    let expected = "0 0 m 2 4 4 4 6 0 c 8 0 10 1 12 3 c h ";
    assert_eq!(page.content, expected);
}

#[test]
fn text_is_outlines_at_its_place() {
    let style = Style::plain(12.0, Color::solid(0x1a_1a1a));
    let shape = |anchor| Shape::Text {
        at: (50.0, 40.0),
        anchor,
        style,
        text: "I".to_owned(),
    };
    let ends = |anchor| {
        let (content, _) = written(vec![shape(anchor)]);
        let mut points = Vec::new();
        let mut numbers: Vec<f32> = Vec::new();
        for word in content.lines().nth(1).expect("a text").split(' ').skip(6) {
            match word {
                "m" | "l" => points.push((numbers[0], numbers[1])),
                _ => {
                    numbers.extend(word.parse::<f32>().ok());
                    continue;
                }
            }
            numbers.clear();
        }
        let low = points.iter().map(|point| point.0).fold(f32::MAX, f32::min);
        let top = points.iter().map(|point| point.1).fold(f32::MAX, f32::min);
        let bottom = points.iter().map(|point| point.1).fold(f32::MIN, f32::max);
        (low, top, bottom)
    };
    let (left, top, bottom) = ends(Anchor::Start);
    assert!((50.0..54.0).contains(&left), "{left}");
    // A capital is three quarters of the size high, and stands on the line.
    assert!((30.0..32.5).contains(&top) && (bottom - 40.0).abs() < 0.01);
    assert!(ends(Anchor::End).0 < left - 2.0);
}
