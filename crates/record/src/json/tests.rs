use super::*;

#[test]
fn no_control_character_is_written_raw() {
    let mut text = String::new();
    string(&mut text, "\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{a0}é");
    assert_eq!(text, "\"\\u001b\\u007f\\u0080\\u009b\\u009f\u{a0}é\"");
}

#[test]
fn written_objects_are_valid_json() {
    let mut text = String::new();
    {
        let mut object = Object::new(&mut text);
        object
            .text("a \"quote\"", "back\\slash\nand \u{1} é")
            .integer("b", u64::MAX)
            .number("c", 1.500_000_1, 3)
            .number("d", f64::INFINITY, 3)
            .number("e", 200.0, 3)
            .number("f", -0.0001, 3)
            .boolean("g", true);
        let mut array = object.array("h");
        array.integer(1).array().integer(2).integer(3);
        array.object();
    }
    let expected = r#"{"a \"quote\"":"back\\slash\nand \u0001 é","b":18446744073709551615,"c":1.5,"d":null,"e":200,"f":0,"g":true,"h":[1,[2,3],{}]}"#;
    assert_eq!(text, expected);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["a \"quote\""], "back\\slash\nand \u{1} é");
}
