package fault_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"muster.dev/muster/pkg/spec/fault"
)

// A character that does not fit whole is left out: half of one is no text.
func TestClipCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		most int
		want string
	}{
		"short":                  {"é", 2, "é"},
		"ASCII":                  {"abcd", 3, "abc..."},
		"before two bytes":       {"aaé", 2, "aa..."},
		"within two bytes":       {"aaé!", 3, "aa..."},
		"behind two bytes":       {"aaé!", 4, "aaé..."},
		"within three bytes":     {"a€!", 3, "a..."},
		"within four bytes":      {"😀!", 3, "..."},
		"behind four bytes":      {"😀!", 4, "😀..."},
		"nothing of it is shown": {"é", 0, "..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.ClipTo(c.text, c.most); got != c.want {
				t.Errorf("ClipTo(%q, %d) is %q, want %q", c.text, c.most, got, c.want)
			}
		})
	}
}

func TestQuoteShowsWholeCharacters(t *testing.T) {
	t.Parallel()
	for shift := range 4 {
		quoted := fault.Quote(strings.Repeat("a", shift) + strings.Repeat("€", 100))
		if strings.Contains(quoted, `\x`) || !utf8.ValidString(quoted) || !strings.HasSuffix(quoted, `..."`) {
			t.Errorf("shifted by %d: %s, want whole characters and the mark of a cut", shift, quoted)
		}
	}
}
