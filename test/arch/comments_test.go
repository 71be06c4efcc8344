package arch

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommentsNameCode: code of another package that a comment names exists.
func TestCommentsNameCode(t *testing.T) {
	t.Parallel()
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	declared, parsed := exportedNames{}, map[*Package][]file{}
	for _, pkg := range graph.Ours() {
		if parsed[pkg], err = parse(pkg); err != nil {
			t.Fatal(err)
		}
		declared.add(pkg, parsed[pkg])
	}
	for _, pkg := range graph.Ours() {
		for _, breach := range checkCommentNames(pkg.Short(), parsed[pkg], declared) {
			t.Error(breach)
		}
	}
}

// TestCommentNamesBite: a name that its package does not declare is found, others are not.
func TestCommentNamesBite(t *testing.T) {
	t.Parallel()
	const desk = `package desk
type Desk struct{ Drawer int }
func (d *Desk) Open() {}
const Legs = 4
`
	const room = `package room
import "example.org/chair"
import table "muster.dev/muster/house/desk"
// Look sees desk.Desk, desk.Desk.Open, desk.Desk.Drawer and desk.Legs (desk.Desk too), but
// not desk.Lamp or desk.Desk.Close; chair.Seat and shelf.Board are not ours.
// table.Legs and table.Top name desk by its alias.
func Look() {
	// desk.Inside is found in a function, too.
}
`
	declared := exportedNames{}
	read := func(name, text string) []file {
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return []file{{name, set, syntax}}
	}
	declared.add(&Package{Name: "desk"}, read("desk.go", desk))
	declared.add(&Package{Name: "chair"}, nil)
	got := checkCommentNames("house/room", read("room.go", room), declared)
	want := []string{
		"house/room/room.go:4 names desk.Lamp in a comment, which does not exist",
		"house/room/room.go:4 names desk.Desk.Close in a comment, which does not exist",
		"house/room/room.go:4 names table.Top in a comment, which does not exist",
		"house/room/room.go:8 names desk.Inside in a comment, which does not exist",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names in comments (-want +got):\n%s", diff)
	}
}
