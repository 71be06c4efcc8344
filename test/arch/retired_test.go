package arch

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRetiredWordsStayAway holds the names of the workspace against the list.
func TestRetiredWordsStayAway(t *testing.T) {
	t.Parallel()
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, graph)
	for folder, parsed := range files {
		for _, breach := range checkRetired(folder, parsed, retiredWords()) {
			t.Error(breach)
		}
	}
	for _, pkg := range graph.Ours() {
		parsed, err := parseNamed(pkg, slices.Concat(pkg.GoFiles, pkg.TestGoFiles, pkg.XTestGoFiles))
		if err != nil {
			t.Fatal(err)
		}
		for _, breach := range checkRetiredComments(pkg.Short(), parsed, retiredWords()) {
			t.Error(breach)
		}
	}
	for _, r := range retiredWords() {
		if r.under == "" {
			continue
		}
		there := false
		for folder := range files {
			there = there || inFolder(folder, r.under)
		}
		if !there {
			t.Errorf("%s does not exist: that it has no %q enforces nothing", r.under, r.word)
		}
	}
}

// TestRetiredWordsBite: a retired word is found in each kind of name, as a whole word
// and where it has retired.
func TestRetiredWordsBite(t *testing.T) {
	t.Parallel()
	words := []retired{{word: "desk", now: "step"}, {word: "say", now: "emit", under: "pkg/state"}}
	const source = `package desk
type Desk struct{ ofDesk, say int; inner []struct{ desk int } }
type desktop interface{ Desk(sayDesk int); Say() }
var theDesk, desks int
const deskMost = 1
func (d *Desk) OpenDesk2() {}
func say() {}
func essay() {}
`
	for name, c := range map[string]struct {
		folder, file string
		want         []string
	}{
		"every kind of name": {"pkg/desk", "http_desk.go", []string{
			`pkg/desk: the folder desk has the retired word "desk": use "step"`,
			`pkg/desk: file http_desk.go has the retired word "desk": use "step"`,
			`pkg/desk: type Desk has the retired word "desk": use "step"`,
			`pkg/desk: field ofDesk has the retired word "desk": use "step"`,
			`pkg/desk: field desk has the retired word "desk": use "step"`,
			`pkg/desk: method Desk has the retired word "desk": use "step"`,
			`pkg/desk: variable theDesk has the retired word "desk": use "step"`,
			`pkg/desk: function OpenDesk2 has the retired word "desk": use "step"`,
		}},
		"a word of one folder, and those below": {"pkg/state/log", "log.go", []string{
			`pkg/state/log: package desk has the retired word "desk": use "step"`,
			`pkg/state/log: type Desk has the retired word "desk": use "step"`,
			`pkg/state/log: field ofDesk has the retired word "desk": use "step"`,
			`pkg/state/log: field desk has the retired word "desk": use "step"`,
			`pkg/state/log: method Desk has the retired word "desk": use "step"`,
			`pkg/state/log: variable theDesk has the retired word "desk": use "step"`,
			`pkg/state/log: function OpenDesk2 has the retired word "desk": use "step"`,
			`pkg/state/log: function say has the retired word "say": use "emit"`,
		}},
		"tests are free": {"pkg/state", "desk_test.go", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := parser.ParseFile(token.NewFileSet(), c.file, source, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, checkRetired(c.folder, []file{{name: c.file, syntax: parsed}}, words)); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWordsOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"setHTTPServer":      {"set", "http", "server"},
		"Server":             {"server"},
		"readV1Base":         {"read", "v", "base"},
		"queue-manager_x.go": {"queue", "manager", "x", "go"},
		"ID":                 {"id"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, wordsOf(name)); diff != "" {
				t.Errorf("words of %s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestRetiredCommentsBite: a retired word is found in each kind of comment, also in those
// of tests, but not in code and not in quoted code.
func TestRetiredCommentsBite(t *testing.T) {
	t.Parallel()
	words := []retired{
		{word: "volley", now: "batch"}, {word: "lane", now: "publisher", under: "services/relay"},
		{word: "says", now: "publishes", names: true},
	}
	parsed, err := parseNamed(&Package{Dir: filepath.Join("testdata", "retired")}, []string{"relay.go", "relay_test.go"})
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []string{
		`relay.go:4: the comment has the retired word "volley": use "batch"`,
		`relay.go:7: the comment has the retired word "volley": use "batch"`,
		`relay_test.go:3: the comment has the retired word "volley": use "batch"`,
	}
	for folder, want := range map[string][]string{
		"pkg/relay":      everywhere,
		"services/relay": slices.Insert(slices.Clone(everywhere), 2, `relay.go:12: the comment has the retired word "lane": use "publisher"`),
	} {
		t.Run(folder, func(t *testing.T) {
			got := checkRetiredComments(folder, parsed, words)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], folder+"/")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("breaches in %s (-want +got):\n%s", folder, diff)
			}
		})
	}
}
