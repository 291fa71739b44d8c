"""check_readme_test.py -- every difference between a program in a page and its file is reported."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_readme  # noqa: E402

PROGRAM = "// hello.cpp -- greets.\n\n#include <x>\n\nint main() {}\n"
SHOWN = "#include <x>\n\nint main() {}\n"


def readme(program, name="examples/hello.cpp"):
    return f"# Title\n\n```cpp\nnot this one\n```\n<!-- {name} -->\n```cpp\n{program}```\n\nThe end.\n"


class CheckReadme(unittest.TestCase):
    def complaints(self, text, page=None):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            (root / "examples").mkdir()
            (root / "examples" / "hello.cpp").write_text(PROGRAM)
            (root / "README.md").write_text(text)
            if page:
                (root / "docs").mkdir()
                (root / "docs" / "page.md").write_text(page)
            return check_readme.check(root)

    def test_accepts_a_program_that_equals_its_file(self):
        self.assertEqual(self.complaints(readme(PROGRAM)), [])
        self.assertEqual(self.complaints(readme(SHOWN)), [])

    def test_rejects_every_difference(self):
        for text in (readme(SHOWN.replace("main", "Main")), readme(SHOWN + "int extra;\n"),
                     readme("#include <x>\n"), readme(SHOWN, "examples/absent.cpp"), "# no program\n"):
            self.assertEqual(len(self.complaints(text)), 1, text)

    def test_checks_pages_in_docs(self):
        self.assertEqual(self.complaints(readme(PROGRAM), readme(SHOWN) + readme(SHOWN)), [])
        self.assertEqual(self.complaints(readme(PROGRAM), "# no program\n"), [])
        self.assertEqual(len(self.complaints(readme(PROGRAM), readme(SHOWN) + readme("int x;\n"))), 1)


if __name__ == "__main__":
    unittest.main()
