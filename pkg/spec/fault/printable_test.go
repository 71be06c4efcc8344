package fault_test

import (
	"testing"

	"muster.dev/muster/pkg/spec/fault"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"spec.größe: is 日本":     "spec.größe: is 日本",
		`a "quoted" \ text's`:   `a "quoted" \ text's`,
		"templat\x7f":           `templat\x7f`,
		"\x1b[2Ja\r\nrow":       `\x1b[2Ja\r\nrow`,
		"a\u202eb\u00a0c\u200b": `a\u202eb\u00a0c\u200b`,
		"half \xff\xc3":         `half \xff\xc3`,
	} {
		t.Run(text, func(t *testing.T) {
			if got := fault.Printable(text); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		})
	}
}

// TestFaultsArePrintable: a value that is quoted stays as it is, and a path shows no
// more than its text.
func TestFaultsArePrintable(t *testing.T) {
	t.Parallel()
	f := fault.At("a\x1b[2Jb", "is %q\nand \x7f", "c\nd")
	if got, want := f.Error(), "a\\x1b[2Jb: is \"c\\nd\"\nand \\x7f"; got != want {
		t.Errorf("the fault reads %q, want %q", got, want)
	}
}
