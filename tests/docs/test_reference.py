"""The reference page is rendered from Bazel's own extraction."""

from tools.docs import reference

TEXT = """
module_docstring: "`thing`: does things\\n\\nMore on \\303\\251."
rule_info {
  rule_name: "thing"
  doc_string: "A thing."
  attribute {
    name: "name"
    type: NAME
    mandatory: true
  }
  attribute {
    name: "size"
    doc_string: "How large,\\nin a|b."
    type: STRING_LIST
    default_value: "[]"
  }
}
"""


def test_a_rule_becomes_a_section_with_a_table():
    page = reference.page([TEXT])
    assert "## `thing`: does things\n\nMore on é.\n\n### `thing`\n\nA thing.\n" in page
    assert "| `size` | string list | `[]` | How large, in a\\|b. |" in page
    assert "| `name` |" not in page


def test_a_page_that_is_out_of_date_is_refused(tmp_path, capsys):
    extracted, page = tmp_path / "a.textproto", tmp_path / "rules.md"
    extracted.write_text(TEXT)
    page.write_text("old")
    assert reference.main(["check", str(page), str(extracted)]) == 1
    assert "./bazelw run //docs:rules" in capsys.readouterr().out
    page.write_text(reference.page([TEXT]))
    assert reference.main(["check", str(page), str(extracted)]) == 0
