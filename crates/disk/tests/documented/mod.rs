//! Tables of the documentation that tests hold.

use std::path::Path;

/// Compares `table` with what `page` has between the marks called `name`, or writes it there if
/// the environment has `AGEWELL_UPDATE_DOCS`.
pub(crate) fn documented(page: &str, name: &str, table: &str) {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(page);
    let text = std::fs::read_to_string(&path).expect("a page of the documentation");
    let from = text.find(&begin).expect("the begin mark") + begin.len();
    let to = text.find(&end).expect("the end mark");
    if std::env::var_os("AGEWELL_UPDATE_DOCS").is_some() {
        let updated = format!("{}{table}{}", &text[..from], &text[to..]);
        std::fs::write(&path, updated).expect("a page that is writable");
        return;
    }
    assert_eq!(&text[from..to], table, "run this test with AGEWELL_UPDATE_DOCS=1 to rewrite it");
}
