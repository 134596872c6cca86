use super::*;

#[test]
fn several_data_options_are_joined() {
    let data = [
        Datum::Text("a=1".to_owned()),
        Datum::Binary("b".to_owned()),
        Datum::Text(String::new()),
    ];
    assert_eq!(body(&data), Ok(Some(b"a=1&b&".to_vec())));
    assert_eq!(body(&[]), Ok(None));
}
