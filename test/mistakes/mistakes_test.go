package mistakes

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page lists the answers.
const page = "../../docs/mistakes.md"

var update = flag.Bool("update", false, "write docs/mistakes.md")

// mistake is one wrong input. Exactly one of the ways to give it is set.
type mistake struct {
	name string
	// give gives the wrong input and returns the answer.
	give func(w *world) string
	// typed is what a person typed, for the page.
	typed string
}

// group is a section of the page.
type group struct {
	title, intro string
	mistakes     []mistake
}

// TestMistakes gives wrong input by each way in, and compares each answer with
// docs/mistakes.md, which -update writes:
//
//	go test ./test/mistakes -update
//
// Read a changed answer aloud: it says what is wrong, where, which value it is, and what
// would be right.
func TestMistakes(t *testing.T) {
	w := newWorld(t)
	var out strings.Builder
	out.WriteString(head)
	count, seen := 0, map[string]bool{}
	for _, g := range []group{messages(), manifests(), wrappers(), requests(), commandLines(), policies(), queuesFiles(), scenarios(), traces()} {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", g.title, g.intro)
		for _, m := range g.mistakes {
			count++
			if seen[m.name] {
				t.Errorf("%q is there twice", m.name)
			}
			seen[m.name] = true
			t.Run(m.name, func(t *testing.T) {
				w.t = t
				writeAnswer(&out, m, m.give(w))
			})
			w.t = t
		}
	}
	if count < 90 {
		t.Errorf("there are %d mistakes, want at least 90", count)
	}
	if *update {
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("docs/mistakes.md is not what Muster answers; `go test ./test/mistakes -update` writes it (-want +got):\n%s", diff)
	}
}

const head = `# Mistakes and their answers

This page lists what Muster answers to wrong input. Each answer says what is wrong, where, with which value, and what is valid. A test gives all of these inputs to the running services and the command line, and writes the page: ` + "`go test ./test/mistakes -update`" + `.
`

// writeAnswer adds a mistake to the page.
func writeAnswer(out *strings.Builder, m mistake, answer string) {
	fmt.Fprintf(out, "\n**%s**", m.name)
	if m.typed != "" {
		fmt.Fprintf(out, " (`%s`)", strings.ReplaceAll(m.typed, "`", "'"))
	}
	fmt.Fprintf(out, "\n\n```text\n%s\n```\n", strings.TrimSpace(answer))
}
